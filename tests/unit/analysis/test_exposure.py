"""Exposure: models whose dependence on the prefix is known, exactly; and words against numbers."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from nmt.analysis.diagnosis import LeftOut, Subject
from nmt.analysis.exposure import DRAWN, LEVELS, SLIPS, Exposure, measure, other_words
from nmt.analysis.exposure_report import exposure, statements, text
from nmt.analysis.ratios import Ratio
from tests.model_configs import CONFIGS, VOCABULARY, lively
from tests.oracles import options
from tests.readers import Reader
from tests.subjects import WORDS, subject


def sentences(number: int = 40, shortest: int = 6) -> tuple[str, ...]:
    generator = np.random.default_rng(1)
    sizes = generator.integers(shortest, 14, number)
    return tuple(" ".join(generator.choice(WORDS[2:], size)) for size in sizes)


def asked_of(model: torch.nn.Module, tmp_path, **changes: object) -> Subject:
    """The sentences are their own references. ``w0`` and ``w1``, which the reader alone says, are in none."""
    made = subject("bahdanau", tmp_path, lines=sentences(), references=sentences())
    search = options(beam_size=1, max_length_a=0.0, max_length_b=20)
    return dataclasses.replace(made, checkpoint=made.checkpoint._replace(model=model), search=search, **changes)


def every(found: Exposure) -> list[float]:
    """All excesses there are."""
    curves = [each.by_place for own in found.corrupted.values() for each in own] + [found.own, found.drawn]
    return [mean.value for each in curves for mean in each.means if mean.tokens]


def test_a_model_indifferent_to_its_prefix_has_no_excess(tmp_path) -> None:
    found = measure(asked_of(Reader(VOCABULARY, errs=True), tmp_path))
    assert found.differing.means[2].value > 0  # its own prefixes are not the reference's
    assert max(map(abs, every(found))) < 1e-9
    said = statements(found)
    assert "False prefixes do not throw it off" in said[0]
    assert "Exposure mismatch: not shown" in said[-1]


def test_one_that_anything_throws_off_pays_for_what_is_not_its_own_alike(tmp_path) -> None:
    """Lost from the first false token on: the third of its own, or the same place of words drawn."""
    reader = Reader(VOCABULARY, thrown_off_by="anything", errs=True)
    found = measure(asked_of(reader, tmp_path))
    assert found.own.names[:3] == ["1", "2", "4"]
    for curve in (found.own, found.drawn):
        for name, mean in zip(curve.names, curve.means, strict=True):
            expected = 0.0 if int(name) <= 2 else reader.lost()
            assert mean.value == pytest.approx(expected, abs=0.01 if int(name) <= 2 else 1e-6), name
    assert found.own_less_drawn == (pytest.approx(0), pytest.approx(0), pytest.approx(0), found.own_all.tokens)
    for kind in (DRAWN, SLIPS):
        by_level = [each.excess.value for each in found.corrupted[kind]]
        assert by_level == sorted(by_level)
        assert by_level[0] > 0.1
        first = found.corrupted[kind][0].by_place.means[0]
        assert first.value == 0  # nothing is before the first token but BOS
    said = statements(found)
    assert "It leans on the prefix" in said[0]
    assert "add up" in said[1]
    assert "not shown: its own prefixes cost as much as equally many words drawn" in said[-1]


def test_one_that_only_its_own_mistake_throws_off_shows_it(tmp_path) -> None:
    reader = Reader(VOCABULARY, thrown_off_by="itself", errs=True)
    found = measure(asked_of(reader, tmp_path))
    assert found.drawn_all.value == pytest.approx(0, abs=1e-9)
    assert found.own_less_drawn.value == pytest.approx(found.own_all.value)
    assert found.own.means[2].value == pytest.approx(reader.lost(), abs=1e-6)
    assert found.corrupted[DRAWN][-1].excess.value == pytest.approx(0, abs=1e-9)
    assert found.corrupted[SLIPS][-1].excess.low > 0  # what it would have said itself, in the third place
    assert "Exposure mismatch: shown" in statements(found)[-1]


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer"])
def test_all_models_can_be_asked_and_the_same_seed_says_the_same(name: str, tmp_path) -> None:
    made = asked_of(lively(CONFIGS[name]), tmp_path)
    found = measure(made)
    assert measure(made) == found
    assert measure(dataclasses.replace(made, seed=2)) != found
    assert [each.level for each in found.corrupted[SLIPS]] == list(LEVELS)
    finding = exposure(made)
    json.dumps(finding.tree, allow_nan=False)
    assert set(finding.figures) == {"exposure"}


def test_the_batch_has_no_part_in_what_is_behind_own_prefixes(tmp_path) -> None:
    """Sentences one by one: the likelihoods of what follows own prefixes are those of all together."""
    lines = sentences(6)
    model = lively(CONFIGS["transformer"])
    together = measure(asked_of(model, tmp_path, lines=lines, references=lines))
    alone = [measure(asked_of(model, tmp_path, lines=(line,), references=(line,))) for line in lines]
    for place, name in enumerate(together.own.names):
        parts = [each.own.means[each.own.names.index(name)] for each in alone if name in each.own.names]
        total = sum(part.value * part.tokens for part in parts)
        mean = together.own.means[place]
        assert mean.tokens == sum(part.tokens for part in parts)
        assert mean.value == pytest.approx(total / mean.tokens, abs=1e-4)


def test_words_drawn_are_others() -> None:
    generator = np.random.default_rng(1)
    true = generator.integers(4, 9, (5, 8))
    others = other_words(true, lambda generator, number: generator.integers(4, 9, number), generator)
    assert (others != true).all()
    alone = np.full((2, 2), 4)
    assert (other_words(alone, lambda _, number: np.full(number, 4), generator) == alone).all()  # there is no other


def test_without_references_there_is_nothing_to_compare_with(tmp_path) -> None:
    with pytest.raises(LeftOut, match="--reference"):
        measure(asked_of(Reader(VOCABULARY), tmp_path, references=None))


# --- words ------------------------------------------------------------------------------------------------------------


def around(value: float, width: float = 0.05) -> Ratio:
    return Ratio(value, value - width, value + width, 100)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"own_all": around(0.0)}, ["cost no more", "Exposure mismatch: not shown: what it has written itself"]),
        ({"own_less_drawn": around(0.2)}, ["Exposure mismatch: shown: its own prefixes cost 0.20 [0.15, 0.25]"]),
        ({"own_less_drawn": around(0.0)}, ["not shown: its own prefixes cost as much as"]),
        ({"own_less_drawn": around(-0.2)}, ["not shown: its own prefixes cost less than"]),
        ({"slips_less_drawn": around(-0.2)}, ["less than those"]),
        ({"slips_less_drawn": around(0.2)}, ["more than those"]),
    ],
)
def test_words_say_what_the_numbers_do(changes: dict[str, object], said: list[str], tmp_path) -> None:
    found = measure(asked_of(Reader(VOCABULARY, thrown_off_by="anything", errs=True), tmp_path))._replace(**changes)
    shown = " ".join(statements(found))
    for words in said:
        assert words in shown
    assert shown in " ".join(line.removeprefix("- ") for line in text(found).split("\n"))
