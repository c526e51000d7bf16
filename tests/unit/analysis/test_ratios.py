"""Means over tokens: against numpy's, and intervals that know that sentences, not tokens, are drawn."""

import math

import numpy as np
import pytest

from nmt.analysis.ratios import bins, grouped, ratios, show, slope


def test_a_group_is_the_mean_of_its_tokens() -> None:
    generator = np.random.default_rng(3)
    values = [generator.random(size) for size in (3, 7, 1, 5)]
    groups = [generator.integers(-1, 3, len(own)) for own in values]
    found = ratios(grouped(values, groups, 4), seed=1)
    flat, places = np.concatenate(values), np.concatenate(groups)
    for group in range(3):
        chosen = flat[places == group]
        assert found[group].value == pytest.approx(chosen.mean())
        assert found[group].tokens == len(chosen)
        assert found[group].low <= found[group].value <= found[group].high
    assert math.isnan(found[3].value)
    assert found[3].tokens == 0
    assert show(found[3]) == "-"


def test_tokens_of_one_sentence_are_not_independent() -> None:
    """Sentences of equal tokens: the interval is that of a mean of sentences, however many tokens each has."""
    generator = np.random.default_rng(4)
    means = generator.normal(size=400)
    few, many = ([np.full(size, value) for value in means] for size in (1, 50))
    for values in (few, many):
        data = grouped(values, [np.zeros(len(own), dtype=np.int64) for own in values], 1)
        (found,) = ratios(data, seed=1)
        half = 1.96 * means.std() / 400**0.5
        assert found.low == pytest.approx(means.mean() - half, abs=half / 5)
        assert found.high == pytest.approx(means.mean() + half, abs=half / 5)


def test_a_slope_is_that_of_the_line() -> None:
    """Tokens on a line have its slope; without noise, in every resample, too."""
    places = [np.arange(1, size + 1) for size in (4, 9, 6)]
    axis = bins(np.concatenate(places), range(1, 9))
    values = [3.0 - 0.25 * own for own in places]
    found = slope(grouped(values, list(map(axis.place, places)), len(axis.names)), axis.at, seed=1)
    assert found[:3] == (pytest.approx(-0.25), pytest.approx(-0.25), pytest.approx(-0.25))
    assert axis.names == ["1", "2", "3", "4", "5", "6", "7", "8", "over 8"]


def test_one_group_has_no_slope() -> None:
    data = grouped([np.ones(2), np.zeros(3)], [np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64)], 1)
    assert math.isnan(slope(data, [1.0], seed=1).value)


def test_groups_are_named_by_what_they_hold() -> None:
    axis = bins(np.array([1, 2, 3, 7, 6]), (2, 5, 10, 20))
    assert axis.names == ["1-2", "3-5", "6-10"]
    assert axis.at == [1.5, 3.0, 6.5]
    assert axis.place(np.array([1, 2, 3, 5, 6, 10])).tolist() == [0, 0, 1, 1, 2, 2]
