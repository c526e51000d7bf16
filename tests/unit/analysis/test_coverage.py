"""Entropy, coverage and what is reached: by hand, and against scipy."""

import math

import numpy as np
import pytest
import scipy.stats

from nmt.analysis.coverage import BINS, by_position, entropy, read, spread

TWO_ROWS = np.array([[0.5, 0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.6, 0.4]])


def test_one_sentence_by_hand() -> None:
    found = read(TWO_ROWS)
    assert found.coverage.tolist() == pytest.approx([1.25, 1.25, 0.0, 1.5])
    assert found.reached.tolist() == [True, True, False, True]  # from 2/5 on
    assert found.end == pytest.approx(0.2)


def test_entropy_is_scipys() -> None:
    weights = np.random.default_rng(1).dirichlet(np.full(7, 0.3), size=(4, 2))
    np.testing.assert_allclose(entropy(weights), scipy.stats.entropy(weights, axis=-1) / math.log(7))
    assert entropy(np.eye(3)).tolist() == [0.0, 0.0, 0.0]
    assert entropy(np.full((2, 9), 1 / 9)).tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("source", [2, 5, 9, 40])
def test_uniform_weights_cover_everything_and_reach_nothing(source: int) -> None:
    found = read(np.full((3, source), 1 / source))
    assert found.coverage.tolist() == pytest.approx([1.0] * (source - 1))
    assert not found.reached.any()


def test_a_long_sentence_is_reached_from_the_stated_weight_on() -> None:
    weights = np.full((1, 41), 0.0)
    weights[0, :3] = 0.1, 0.0999, 0.8001
    assert read(weights).reached.tolist() == [True, False, True] + [False] * 37


def test_the_last_quarter_apart() -> None:
    """Eight subwords: the last two are the quarter; a source of three has none."""
    one = np.zeros((2, 9))
    one[0, 0] = one[1, 6] = 1.0
    short = np.array([[0.0, 0.0, 1.0, 0.0]])
    found = spread([read(one), read(short)])
    assert found.sentences == 2
    assert found.reached_last == pytest.approx(1 / 2)
    assert found.reached_before == pytest.approx(2 / 9)  # one of six, one of three
    assert found.sentences_last == 1.0
    assert found.entropy == 0.0
    ignored = np.zeros((2, 9))
    ignored[:, 0] = 1.0
    half = spread([read(one), read(ignored)])
    assert half.sentences_last == pytest.approx(0.5)
    assert math.isnan(spread([read(short)]).reached_last)
    assert math.isnan(spread([read(short)]).sentences_last)


def test_parts_by_relative_position() -> None:
    found = by_position([np.arange(4.0), np.array([10.0])])
    assert found[0] == 5.0  # the first of four and the only one of one
    assert [found[part] for part in (2, 5, 7)] == [1.0, 2.0, 3.0]
    assert all(math.isnan(found[part]) for part in (1, 3, 4, 6, 8, 9))
    assert by_position([np.arange(100.0)]) == [10 * part + 4.5 for part in range(BINS)]
