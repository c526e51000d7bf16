"""Every rule about text, subwords and batches, for every form that text is read from.

What a form cannot hold, and why, stands in ``CANNOT_HOLD``; why a rule says nothing about a form, in ``NOT_FOR``.
"""

import json
import os
import re
import subprocess
import sys
import unicodedata
import warnings
from pathlib import Path

import pytest
import torch

from nmt.config import to_tree
from nmt.data.corpus import DataError
from nmt.data.dataset import PreparedData
from nmt.data.loader import Loader
from nmt.tokens import BOS, EOS, PAD
from tests.data_configs import ENGLISH, GERMAN
from tests.sources import (
    CANNOT_HOLD,
    COMMON,
    HUB,
    KINDS,
    LINES,
    RARE,
    SPLITS,
    as_read,
    held,
    prepared,
    read_split,
    rewrite,
    rewrite_text,
)

NOT_FOR = {
    "mark": {"hub parquet": "no text file", "tmx UTF-16": "has one", "hub json": "`datasets` takes it for no JSON"},
    "line ends": {"hub parquet": "no text file"},
    "last line": {"hub parquet": "no text file"},
    "bad byte": {"tmx UTF-16": "any two bytes are a character"},
    "cut short": dict.fromkeys(["prefix", "pair", "tsv", "jsonl", "hub json"], "between two lines nothing is missing"),
}
MAX_LENGTH = 40


def kinds(rule: str = "") -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in NOT_FOR.get(rule, {})])


def is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc" and character not in "\t\r\n"


def as_cleaned(text: str) -> str:
    """Word for word what a model may see, by the properties of Unicode."""
    spaced = ("" if is_control(char) and not char.isspace() else char for char in text)
    return " ".join(word for word in re.split(r"[\s\x1c-\x1f\x85]+", "".join(spaced)) if word)


TRAIN = list(zip(ENGLISH, GERMAN, strict=True))


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PreparedData]:
    """What was prepared from each form: all that it holds, in training behind some whole sentences."""
    made = {}
    for kind, form in KINDS.items():
        folder = tmp_path_factory.mktemp("data")
        form.write(folder / "text", train=TRAIN + held(kind), validation=held(kind), test=COMMON)
        changes = {"max_length": MAX_LENGTH, "tokenizer": {"vocabulary_size": 110}}
        made[kind] = prepared(form.config(folder / "text", folder / "cache", **changes))
    return made


# --- text in ----------------------------------------------------------------------------------------------------------


@kinds()
def test_text_is_kept_as_it_was_and_only_ends_where_a_line_or_record_does(ready: dict, kind: str) -> None:
    data, pairs = ready[kind], held(kind)
    assert data.validation.sources() == [as_read(kind, source) for source, _ in pairs]
    assert data.validation.references() == [as_read(kind, target) for _, target in pairs]
    assert (data.test.sources(), data.test.references()) == tuple(map(list, zip(*COMMON, strict=True)))


@kinds()
def test_model_input_is_clean_and_what_went_is_counted(ready: dict, kind: str) -> None:
    data, pairs = ready[kind], held(kind)
    for row, texts in enumerate(pairs):
        for tokenizer, ids, text in zip(data.tokenizers, data.validation.pair(row), texts, strict=True):
            assert ids.tolist() == [*tokenizer.encode(as_cleaned(text)), EOS]
    count = sum(is_control(character) for pair in pairs for text in pair for character in as_read(kind, text))
    assert count > 0
    for split in ("train", "validation"):
        assert data.report["splits"][split]["control_characters"] == count


@kinds()
def test_an_empty_side_or_too_many_subwords_cost_that_pair_and_nothing_but_it(ready: dict, kind: str) -> None:
    data = ready[kind]
    cleaned = [(as_cleaned(source), as_cleaned(target)) for source, target in TRAIN + held(kind)]
    full = [pair for pair in cleaned if all(pair)]
    rows = [
        [[*tokenizer.encode(text), EOS] for tokenizer, text in zip(data.tokenizers, pair, strict=True)] for pair in full
    ]
    short = [row for row in rows if max(map(len, row)) <= MAX_LENGTH]
    assert [[side.tolist() for side in data.train.pair(row)] for row in range(len(data.train))] == short
    counts = data.report["splits"]
    assert counts["train"]["read"] == len(cleaned)
    assert counts["train"]["dropped"]["empty"] == len(cleaned) - len(full) > 0
    assert counts["train"]["dropped"]["too_long"] == len(rows) - len(short) > 0
    for split in ("validation", "test"):
        assert len(getattr(data, split)) == counts[split]["read"] == counts[split]["kept"]
        assert sum(counts[split]["dropped"].values()) == 0


@kinds("line ends")
def test_windows_line_ends_are_line_ends(tmp_path: Path, kind: str) -> None:
    """In the source's file only, where there are two."""
    form = KINDS[kind]
    form.write(tmp_path, train=COMMON, validation=COMMON, test=COMMON)
    for path in [path for path in tmp_path.iterdir() if ".de" not in path.name]:
        rewrite_text(path, lambda text: text.replace("\n", "\r\n"))
    assert read_split(form.config(tmp_path, tmp_path)) == COMMON


@kinds("mark")
def test_a_byte_order_mark_is_no_text(tmp_path: Path, kind: str) -> None:
    form = KINDS[kind]
    form.write(tmp_path, train=COMMON, validation=COMMON, test=COMMON)
    for path in tmp_path.iterdir():
        rewrite_text(path, lambda text: f"\ufeff{text}")
    assert read_split(form.config(tmp_path, tmp_path)) == COMMON


@kinds("last line")
def test_the_last_line_needs_no_end(tmp_path: Path, kind: str) -> None:
    form = KINDS[kind]
    form.write(tmp_path, train=COMMON, validation=COMMON, test=COMMON)
    for path in tmp_path.iterdir():
        rewrite_text(path, lambda text: text.removesuffix("\n"))
    assert read_split(form.config(tmp_path, tmp_path)) == COMMON


@pytest.mark.parametrize(
    ("kind", "split"),
    [(kind, split) for kind in KINDS if kind not in NOT_FOR["bad byte"] for split in SPLITS[: 1 if kind in HUB else 3]],
)
def test_a_bad_byte_stops_everything_before_training(tmp_path: Path, kind: str, split: str) -> None:
    form = KINDS[kind]
    pairs = [*TRAIN[:3], ("a caf\u00e9 .", "x"), *TRAIN[3:]]
    form.write(tmp_path / "text", **dict.fromkeys(SPLITS, pairs))
    for path in (tmp_path / "text").glob(f"{split}[-.]*"):
        rewrite(path, lambda data: data.replace(b"caf\xc3\xa9", b"caf\xe9 "))  # as long as before
    with pytest.raises(DataError) as caught:
        prepared(form.config(tmp_path / "text", tmp_path / "cache"))
    place = {"tmx": r"line 6, column \d+: not XML", "hub parquet": "UnicodeDecodeError", "hub json": "UTF8|utf-8"}
    assert re.search(place.get(kind, r"line 4: not UTF-8: byte \d+ of the line \(0xe9\)"), str(caught.value))
    assert split in str(caught.value)
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("kind", sorted(LINES))
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("short", ["en", "de"])
def test_unequal_counts_name_both(tmp_path: Path, kind: str, split: str, short: str) -> None:
    form = KINDS[kind]
    form.write(tmp_path, **dict.fromkeys(SPLITS, TRAIN[:10]))
    [path] = tmp_path.glob(f"{split}.{short}*")
    rewrite_text(path, lambda text: text[: text.rindex("\n", 0, -1) + 1])
    sides = ["has 9 lines", "has 10"] if short == "en" else ["has 10 lines", "has 9"]
    with pytest.raises(DataError, match=rf"{split}\.en.* {sides[0]} but .*{split}\.de.* {sides[1]}:"):
        read_split(form.config(tmp_path, tmp_path), split)


@kinds("cut short")
@pytest.mark.parametrize("keep", [0.5, 0.97])
def test_a_file_that_was_cut_short_is_no_shorter_split(tmp_path: Path, kind: str, keep: float) -> None:
    form = KINDS[kind]
    form.write(tmp_path, **dict.fromkeys(SPLITS, TRAIN * 5))
    for path in tmp_path.glob("train[-.]*"):
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(DataError, match=r"train|corrupted"):
        read_split(form.config(tmp_path, tmp_path))


def test_what_a_form_cannot_hold_is_another_text_or_refused(tmp_path: Path) -> None:
    """Never the same text: the table says nothing that is not so."""
    for number, (forms, pattern, reason) in enumerate(CANNOT_HOLD):
        for kind in sorted(forms):
            pair = next(pair for pair in RARE if any(re.search(pattern, text) for text in pair))
            folder = tmp_path / f"{number} {kind}"
            KINDS[kind].write(folder, train=[pair, pair], validation=COMMON, test=COMMON)
            try:
                assert read_split(KINDS[kind].config(folder, tmp_path)) != [pair, pair], reason
            except DataError as error:
                assert re.search(r"line \d[:,]|has \d lines", str(error))  # noqa: PT017


def test_everything_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    local = [kind for kind in KINDS if KINDS[kind].group == "files"]
    trees = []
    for kind in local:
        KINDS[kind].write(tmp_path / kind, **dict.fromkeys(SPLITS, COMMON))
        trees.append(to_tree(KINDS[kind].config(tmp_path / kind, tmp_path)))
    code = f"""
import json
from nmt.config import FilesData, parse
from nmt.data.files import open_files
for tree in json.loads({json.dumps(trees)!r}):
    [part] = open_files(parse(FilesData, tree)).splits["train"]
    print(json.dumps(list(part.read())))
"""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | plain, capture_output=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == [[[*pair, None] for pair in COMMON]] * len(local)


def test_the_name_of_a_file_may_be_any_bytes(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    KINDS["tsv"].write(folder, **dict.fromkeys(SPLITS, TRAIN))
    data = prepared(KINDS["tsv"].config(folder, tmp_path / "cache"))
    assert data.report["origin"]["files"]["train"] == [str(folder / "train.tsv")]


# --- subwords ---------------------------------------------------------------------------------------------------------


@kinds()
def test_what_is_typed_is_text_and_every_row_has_one_end(ready: dict, kind: str) -> None:
    for split in (ready[kind].train, ready[kind].validation, ready[kind].test):
        for row in range(len(split)):
            for ids in split.pair(row):
                assert ids[-1] == EOS
                assert not {PAD, BOS, EOS} & set(ids[:-1].tolist())


@kinds()
def test_only_the_normalizer_that_is_named_changes_what_the_model_sees(ready: dict, kind: str) -> None:
    data = ready[kind]
    row = COMMON.index(("½ ﬁx ²", "\u3000½\ufeffﬁx²"))
    assert data.test.pair(row)[0].tolist() == [*data.tokenizers.source.encode("1⁄2 fix 2"), EOS]
    assert data.test.sources()[row] == "½ ﬁx ²"


# --- all the rest -----------------------------------------------------------------------------------------------------


def content(data: PreparedData) -> object:
    """All that training and evaluation go by, batches included."""
    splits = [split for split in (data.train, data.validation, data.test) if split is not None]
    counts = ("read", "kept", "dropped", "duplicates", "tokens", "unknown", "control_characters", "sha256")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pairs over the budget
        loaders = [Loader(split, 60, None, seed=1, shuffle=split is data.train) for split in splits]
    return (
        data.report["vocabulary"],
        data.report["overlap"],
        [{key: data.report["splits"][split.name][key] for key in counts} for split in splits],
        [[[side.tolist() for side in split.pair(row)] for row in range(len(split))] for split in splits],
        [[[tensor.tolist() for tensor in batch] for batch in loader.batches(0)] for loader in loaders],
    )


def test_whatever_the_form_the_same_pairs_are_the_same_data(tmp_path: Path) -> None:
    """So what is tested of subwords and batches with one form holds for all of them."""
    contents = {}
    for kind, form in KINDS.items():
        form.write(tmp_path / kind, train=TRAIN + COMMON, validation=COMMON, test=TRAIN[:4])
        changes = {"name": kind, "max_length": 100, "tokenizer": {"vocabulary_size": 330, "byte_fallback": True}}
        contents[kind] = content(prepared(form.config(tmp_path / kind, tmp_path / "cache", **changes)))
    expected = contents["prefix"]
    assert [kind for kind in KINDS if contents[kind] != expected] == []


@kinds()
def test_a_batch_is_within_its_budget_and_a_pair_over_it_alone(ready: dict, kind: str) -> None:
    data = ready[kind]
    loader = Loader(data.validation, 60, None, seed=1, shuffle=False)
    (warning,) = loader.warnings
    assert "longer than batch_tokens=60: each a batch of its own" in warning
    rows = []
    for batch in loader.batches(0):
        rows += batch.indices.tolist()
        assert len(batch.indices) == 1 or max(batch.source.numel(), batch.target_out.numel()) <= 60
        for row, source, target in zip(batch.indices, batch.source, batch.target_out, strict=True):
            for padded, ids in zip((source, target), data.validation.pair(int(row)), strict=True):
                assert torch.equal(padded[: len(ids)], torch.from_numpy(ids.astype("int64")))
                assert padded[len(ids) :].eq(PAD).all()
    assert sorted(rows) == list(range(len(data.validation)))
