"""Shortlists: a lexicon that is learned, what it offers a batch, and a search over that against one over all."""

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt import lexicon
from nmt.data.batch import encode_source
from nmt.lexicon import RESERVED, Shortlist, build, learn
from nmt.search import search
from nmt.tokens import EOS
from tests.fakes import AutomatonModel
from tests.oracles import options

VOCABULARY = 30
TRANSLATION = {word: 10 + word for word in range(4, 14)}  # 4 -> 14, ..., 13 -> 23


def pairs(count: int, seed: int = 1) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sentences in which each word has its translation, in any order, and 24 stands for nothing in the source."""
    generator = random.Random(seed)
    made = []
    for _ in range(count):
        source = generator.sample(sorted(TRANSLATION), k=generator.randint(2, 6))
        target = [TRANSLATION[word] for word in source] + [24] * generator.randint(0, 1)
        generator.shuffle(target)
        made.append((np.array([*source, EOS]), np.array([*target, EOS])))
    return made


def shortlist(per_word: int, frequent: int = 1, count: int = 200) -> Shortlist:
    return build(pairs(count), (VOCABULARY, VOCABULARY), "digest", per_word, frequent)


def test_the_best_candidate_of_a_word_is_its_translation() -> None:
    best = shortlist(per_word=1).candidates[:, 0]
    assert {word: int(best[word]) for word in TRANSLATION} == TRANSLATION


def test_probabilities_are_those_of_model_1() -> None:
    """Two pairs whose likelihood is best where each word has one translation: the expectation maximisation of Brown et
    al. 1993 written as loops over pairs, by another route than sums over a table of cells."""
    from nmt.lexicon import _cells, _learn

    corpus = [([4, 5], [14, 15]), ([4], [14]), ([5, 5, 6], [15, 16])]
    table = {(e, f): 1 / VOCABULARY for e in (0, 4, 5, 6) for f in (14, 15, 16)}
    for _ in range(3):
        counts = dict.fromkeys(table, 0.0)
        for source, target in corpus:
            for f in target:
                total = sum(table[e, f] for e in [0, *source])
                for e in [0, *source]:
                    counts[e, f] += table[e, f] / total
        sums = {e: sum(value for (given, _), value in counts.items() if given == e) for e in (0, 4, 5, 6)}
        table = {(e, f): value / sums[e] for (e, f), value in counts.items()}
    cells, frequency = _cells([(np.array(s), np.array(t)) for s, t in corpus], VOCABULARY)
    learned = _learn(cells, VOCABULARY, VOCABULARY, iterations=3)
    assert [frequency[f] for f in (14, 15, 16)] == [2, 2, 1]
    for e, f, value in zip(cells.source.tolist(), cells.target.tolist(), learned.tolist(), strict=True):
        assert value == pytest.approx(table[e, f], abs=1e-12)


@pytest.mark.parametrize("size", [1, 40, 300])
def test_parts_are_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = [*pairs(60), (np.array([4, 5]), np.array([], dtype=np.int64)), *pairs(5, seed=2)]
    whole = learn(corpus, (VOCABULARY, VOCABULARY))
    monkeypatch.setattr(lexicon, "_PART", size)
    parts = learn(corpus, (VOCABULARY, VOCABULARY))
    assert np.array_equal(parts.keys, whole.keys)
    np.testing.assert_allclose(parts.probability, whole.probability, rtol=1e-12)


def test_a_sentence_has_its_words_candidates_the_frequent_and_the_reserved_ones() -> None:
    words = shortlist(per_word=1).of(torch.tensor([[4, 5, EOS], [6, EOS, 0]]))
    ids = words.ids.tolist()
    assert ids == sorted(set(ids))
    assert ids[:RESERVED] == list(range(RESERVED))
    for row, own in enumerate(({14, 15}, {16})):
        allowed = {word for word, bar in zip(ids, words.barred[row].tolist(), strict=True) if bar == 0.0}
        assert own < allowed
        assert not (({14, 15, 16} - own) & allowed)
        assert all(bar in (0.0, -torch.inf) for bar in words.barred[row].tolist())
    assert {14, 15, 16} < set(ids)
    assert 13 not in ids  # no sentence has it


def test_a_prefix_is_always_allowed() -> None:
    words = shortlist(per_word=1).of(torch.tensor([[4, EOS], [5, EOS]]), [[27, 28], []])
    places = words.places([27, 28])
    assert words.ids[places].tolist() == [27, 28]
    assert words.barred[0, places].tolist() == [0.0, 0.0]
    assert words.barred[1, places].tolist() == [-torch.inf, -torch.inf]


def everything() -> Shortlist:
    return Shortlist(torch.full((VOCABULARY, 1), EOS), torch.arange(VOCABULARY), VOCABULARY, "digest")


SOURCES = [[4, 5, 6], [7], [4, 4, 8, 9, 5, 6, 7, 11], [5, 9], [6, 6, 6, 6]]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_shortlist_of_everything_changes_nothing(beam_size: int) -> None:
    config = options(beam_size=beam_size, max_length_b=8)
    source = encode_source(SOURCES)
    models = [AutomatonModel(seed, VOCABULARY) for seed in (1, 2)]
    expected = search(models, *source, config, n_best=beam_size)
    assert search(models, *source, config, n_best=beam_size, shortlist=everything()) == expected


class Restricted(AutomatonModel):
    """The same with all but some target words out of reach."""

    def __init__(self, allowed: set[int]) -> None:
        super().__init__(seed=3, vocabulary=VOCABULARY)
        self.bar = torch.full((VOCABULARY,), -torch.inf)
        self.bar[sorted(allowed)] = 0.0

    def project(self, features: torch.Tensor) -> torch.Tensor:
        return super().project(features) + self.bar


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("prefix", [[], [28, 14]])
def test_a_search_is_that_of_a_model_without_the_other_words(beam_size: int, prefix: list[int]) -> None:
    """Sentence by sentence against a model of its own; together, so that what one may use does not reach another."""
    config = options(beam_size=beam_size, max_length_b=8, no_repeat_ngram=2)
    short = shortlist(per_word=1)
    together = search(
        [AutomatonModel(3, VOCABULARY)],
        *encode_source(SOURCES),
        config,
        n_best=beam_size,
        prefixes=[prefix for _ in SOURCES],
        shortlist=short,
    )
    for source, found in zip(SOURCES, together, strict=True):
        words = short.of(torch.tensor([[*source, EOS]]), [prefix])
        alone = Restricted(set(words.ids.tolist()))
        [expected] = search([alone], *encode_source([source]), config, n_best=beam_size, prefixes=[prefix])
        assert [h.tokens for h in found] == [h.tokens for h in expected]
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-5)
        assert all(h.tokens[: len(prefix)] == prefix for h in found)


def test_samples_are_refused() -> None:
    from nmt.config import Sampling

    with pytest.raises(ValueError, match="whole vocabulary"):
        search(
            [AutomatonModel(1, VOCABULARY)],
            *encode_source([[4]]),
            options(),
            sampling=Sampling(1.0, 0, 1.0, 1),
            keys=[0],
            shortlist=everything(),
        )


def test_saved_and_loaded(tmp_path: Path) -> None:
    made = shortlist(per_word=3, frequent=4)
    made.save(tmp_path / "short")
    loaded = Shortlist.load(tmp_path / "short", "digest")
    assert torch.equal(loaded.candidates, made.candidates)
    assert torch.equal(loaded.always, made.always)
    assert loaded[2:] == made[2:]


def test_others_are_refused(tmp_path: Path) -> None:
    made = shortlist(per_word=1)
    made.save(tmp_path / "short")
    with pytest.raises(ValueError, match=r"other subwords .* nmt\.shortlist"):
        Shortlist.load(tmp_path / "short", "another")
    (tmp_path / "cut").write_bytes((tmp_path / "short").read_bytes()[:60])
    for name in ("cut", "missing"):
        with pytest.raises(ValueError, match=r"no shortlist .* nmt\.shortlist"):
            Shortlist.load(tmp_path / name, "digest")


# --- patience ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [2, 5])
def test_without_end_patience_changes_nothing(beam_size: int) -> None:
    config = options(beam_size=beam_size, max_length_b=9)
    endless = dataclasses.replace(config, patience=1000.0)
    model, source = AutomatonModel(5, VOCABULARY), encode_source(SOURCES)
    assert search([model], *source, endless, n_best=2) == search([model], *source, config, n_best=2)


def test_little_patience_stops_earlier_and_finds_no_better() -> None:
    model, source = AutomatonModel(5, VOCABULARY, end_bias=2.0), encode_source(SOURCES)
    config = options(beam_size=4, length_penalty="simple", alpha=1.0, max_length_b=25)
    hasty = dataclasses.replace(config, patience=0.5)
    [full], [short] = (zip(*search([model], *source, each), strict=True) for each in (config, hasty))
    assert all(one.score >= other.score - 1e-6 for one, other in zip(full, short, strict=True))
    assert any(one.score > other.score + 1e-6 for one, other in zip(full, short, strict=True))
    assert all(each.finished for each in short)


@pytest.mark.parametrize("patience", [0.0, -1.0])
def test_no_patience_is_refused(patience: float) -> None:
    with pytest.raises(ValueError, match="--patience"):
        search([AutomatonModel(1, VOCABULARY)], *encode_source([[4]]), options(patience=patience))
