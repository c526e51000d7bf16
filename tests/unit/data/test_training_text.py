"""Reading, filtering, duplicates, held-out text and samples against doing it all by hand."""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data import duplicates, parallel, training_text
from nmt.data.cleaning import Cleaner, Comparable, HeldOut
from nmt.data.corpus import DataError, Part, TextPair
from nmt.data.filters import Filters
from nmt.data.preparation import NO_FILTERS
from nmt.data.quarantine import Record, unpack
from nmt.data.training_text import TrainingText, gather

Pair = tuple[str, str]
COMPARABLE = Comparable("nmt_nfkc", None)


class Options(NamedTuple):
    duplicates: str = "keep"
    held_out: str = "keep"
    max_words: int | None = None
    max_pairs: int | None = None
    sample_seed: int | None = None
    shuffled: bool = False
    to_the_end: bool = False


@pytest.fixture(autouse=True)
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates, "BLOCK", 4)
        patch.setattr(duplicates, "_FILES", 4)
        patch.setattr(training_text, "BLOCK", 4)
        patch.setattr(training_text, "CHUNK", 3)
        patch.setattr(parallel, "_cores", lambda: 1)
        yield


class Counting:
    """A part that counts what is taken from it."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.pairs = pairs
        self.taken = 0
        self.closed = False

    def read(self) -> Iterator[TextPair]:
        try:
            for pair in self.pairs:
                self.taken += 1
                yield TextPair(*pair)
        finally:
            self.closed = True


def gathered(scratch: Path, sources: list[Counting], held: list[Pair], options: Options) -> TrainingText:
    filters = replace(NO_FILTERS, max_words=options.max_words)
    parts = tuple(
        Part(f"part{i}", source.read, to_the_end=options.to_the_end, shuffled=options.shuffled)
        for i, source in enumerate(sources)
    )
    arguments: Any = (options.held_out, options.duplicates)
    held_out = HeldOut(COMPARABLE.keys(held))
    cleaner = Cleaner(Filters(filters, "en", "de"), COMPARABLE, held_out, *arguments, quarantine=True)
    kind: Any = options.duplicates
    return gather(scratch, parts, cleaner, kind, True, options.max_pairs, options.sample_seed)


def used(text: TrainingText) -> list[Pair]:
    return list(zip(text.lines("source"), text.lines("target"), strict=True))


def normal(text: str) -> str:
    return " ".join(text.split())


class Expected(NamedTuple):
    used: list[Pair]
    dropped: Counter[str]
    read: int


def by_hand(pairs: list[Pair], held: list[Pair], options: Options) -> Expected:
    """The first that pass, one after the other."""
    held_pairs = {(normal(source), normal(target)) for source, target in held}
    sides = [{pair[0] for pair in held_pairs} - {""}, {pair[1] for pair in held_pairs} - {""}]
    taken: set[tuple[str, Any]] = set()
    result = Expected([], Counter(), 0)
    read = 0
    for source, target in pairs:
        if options.max_pairs is not None and options.sample_seed is None and len(result.used) == options.max_pairs:
            break
        read += 1
        pair = left, right = normal(source), normal(target)
        occurs = {"source": left in sides[0], "target": right in sides[1], "pair": pair in held_pairs, "keep": False}
        occurs["either"] = occurs["source"] or occurs["target"]
        texts: list[tuple[str, Any]] = {
            "keep": [],
            "pair": [("pair", pair)],
            "source": [("source", left)],
            "target": [("target", right)],
            "either": [("source", left), ("target", right)],
        }[options.duplicates]
        if not left or not right:
            result.dropped["empty"] += 1
        elif options.max_words is not None and max(len(left.split()), len(right.split())) > options.max_words:
            result.dropped["too_many_words"] += 1
        elif occurs[options.held_out]:
            result.dropped["held_out"] += 1
        elif taken.intersection(texts):
            result.dropped["duplicate"] += 1
        else:
            taken.update(texts)
            result.used.append((source, target))
    return result._replace(read=read)


sentences = st.sampled_from(["a", "b", "a b", "a  b", "c", "d e f", "", " ", "ä", "c\td"])
pairs_strategy = st.lists(st.tuples(sentences, sentences), max_size=30)
KINDS = ["keep", "pair", "source", "target", "either"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(pairs_strategy, min_size=1, max_size=3),
    st.lists(st.tuples(sentences, sentences), max_size=3),
    st.builds(
        Options,
        duplicates=st.sampled_from(KINDS),
        held_out=st.sampled_from(KINDS),
        max_words=st.none() | st.just(2),
        max_pairs=st.none() | st.integers(1, 12),
        sample_seed=st.none(),
        shuffled=st.booleans(),
        to_the_end=st.booleans(),
    ),
)
def test_what_is_left_is_what_one_finds_by_hand(parts: list[list[Pair]], held: list[Pair], options: Options) -> None:
    pairs = [pair for part in parts for pair in part]
    expected = by_hand(pairs, held, options)
    sources = [Counting(part) for part in parts]
    with tempfile.TemporaryDirectory() as folder:
        text = gathered(Path(folder), sources, held, options)
        assert used(text) == expected.used
        assert text.used == len(expected.used)
        assert text.read == expected.read
        found = text.dropped + Counter({"duplicate": text.repeats if options.duplicates != "keep" else 0})
        assert found == expected.dropped
        ends = [sum(map(len, parts[: i + 1])) for i in range(len(parts))]
        assert text.ends == [min(end, expected.read) for end in ends]
        for side, name in enumerate(("source", "target")):
            read = "".join(f"{pair[side]}\n" for pair in pairs[: expected.read])
            assert text.sha256[name] == hashlib.sha256(read.encode()).hexdigest()
        taken = len(pairs) if options.to_the_end else expected.read
        assert sum(source.taken for source in sources) == taken, "never a pair more is asked for than is used"
        assert all(source.closed or not source.taken for source in sources)
        numbers = [record.number for record in unpack(Path(folder) / "dropped")]
        assert numbers == sorted(numbers)
        assert len(numbers) == sum(text.dropped.values())


@pytest.mark.parametrize("kind", KINDS)
def test_what_occurs_in_held_out_text_is_counted_whether_it_is_dropped_or_not(tmp_path: Path, kind: str) -> None:
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("", "x"), ("a b c", "x"), ("a", "x")]
    held = [("a", "x"), ("c", "z"), ("", "y")]
    text = gathered(tmp_path, [Counting(pairs)], held, Options("pair", kind, max_words=2))
    assert text.held_out == {"source": 3, "target": 5, "pair": 2}


def test_spaces_and_forms_that_the_subwords_do_not_see_make_no_other_sentence(tmp_path: Path) -> None:
    pairs = [("a b", "ﬁx"), ("a\u00a0 b ", "fix"), ("A b", "fix"), ("\x01a b", "fi\u200bx")]
    text = gathered(tmp_path, [Counting(pairs)], [("½", "ü")], Options("pair", "either"))
    assert used(text) == [("a b", "ﬁx"), ("A b", "fix"), ("a b", "fi\u200bx")]
    assert text.control == 1


# --- samples ----------------------------------------------------------------------------------------------------------

MANY = [(f"s{i}", f"t{i % 7}") for i in range(23)]


def sample(seed: int, count: int, pairs: list[Pair] = MANY, **options: Any) -> list[Pair]:
    with tempfile.TemporaryDirectory() as folder:
        text = gathered(Path(folder), [Counting(pairs)], [], Options(max_pairs=count, sample_seed=seed, **options))
        assert text.read == len(pairs)
        assert text.not_drawn == max(0, text.candidates - text.repeats * (text.duplicates != "keep") - count)
        return used(text)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**64), st.integers(1, 30), st.sampled_from(KINDS))
def test_a_sample_is_of_what_passes_in_the_order_of_the_corpus(seed: int, count: int, kind: str) -> None:
    passing = by_hand(MANY, [], Options(kind)).used
    drawn = sample(seed, count, duplicates=kind)
    assert drawn == [pair for pair in passing if pair in set(drawn)]
    assert len(drawn) == min(count, len(passing))
    assert sample(seed, count, duplicates=kind) == drawn


def test_every_subset_is_drawn_as_often_as_the_others() -> None:
    """15 subsets, 450 draws over fixed seeds: 30 of each expected, below 12 or above 52 would be 3.5 sigma off."""
    counts = Counter(tuple(sample(seed, 2, MANY[:6])) for seed in range(450))
    assert len(counts) == 15
    assert all(12 <= count <= 52 for count in counts.values()), counts


def test_of_parts_in_a_seeded_order_the_first_that_pass_are_the_sample(tmp_path: Path) -> None:
    source = Counting(MANY)
    text = gathered(tmp_path, [source], [], Options("target", max_pairs=3, sample_seed=5, shuffled=True))
    assert used(text) == MANY[:3]
    assert source.taken == 3


# --- in other processes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, 200])
def test_other_processes_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None) -> None:
    pairs = [(f"s {i * i % 97} x", f"t {i % 5} " * (1 + i % 3)) for i in range(400)]
    options = Options("pair", "source", max_words=4, max_pairs=limit)
    found = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(parallel, "_cores", partial(int, cores))
        monkeypatch.setattr(parallel, "ALONE", 2)
        scratch = tmp_path / str(cores)
        scratch.mkdir()
        text = gathered(scratch, [Counting(pairs[:150]), Counting(pairs[150:])], [("s 4 x", "")], options)
        found.append((replace(text, scratch=tmp_path), {path.name: path.read_bytes() for path in scratch.iterdir()}))
    assert found[0][0].used > 50
    assert found[0] == found[1] == found[2]


def test_an_error_of_a_part_comes_through(tmp_path: Path) -> None:
    def broken() -> Iterator[TextPair]:
        yield from (TextPair(*pair) for pair in MANY)
        raise DataError("line 24: no")

    cleaner = Cleaner(None, COMPARABLE, HeldOut([]), "keep", "keep", quarantine=False)
    with pytest.raises(DataError, match="line 24"):
        gather(tmp_path, (Part("broken", broken),), cleaner, "keep", False, None, None)


def test_a_dropped_pair_is_written_down_as_it_was_seen(tmp_path: Path) -> None:
    gathered(tmp_path, [Counting([("a", "b"), ("a\tb\\ \x00c", " ")])], [], Options())
    assert list(unpack(tmp_path / "dropped")) == [Record(1, "empty", b"a\\tb\\\\ c\t ")]
