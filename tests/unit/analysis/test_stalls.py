"""Loops, stays and variety: by hand, and loops against trying everything."""

import itertools

import numpy as np
import pytest

from nmt.analysis.stalls import LOOP, UNIT, longest_loop, longest_stay, loops, repeats, variety


def test_the_longest_stay() -> None:
    weights = np.eye(5)[[0, 0, 1, 1, 1, 4, 0]]
    assert longest_stay(weights) == (3, 1)
    assert longest_stay(weights[:2]) == (2, 0)
    assert longest_stay(weights[5:]) == (1, 4)  # the first of equals


def times_by_trying(tokens: tuple[int, ...]) -> int:
    """The most often that any piece of the tokens stands in a row."""
    best = 1
    for unit in range(1, UNIT + 1):
        for begin in range(len(tokens)):
            piece, count = tokens[begin : begin + unit], 0
            while len(piece) == unit and tokens[begin + count * unit : begin + (count + 1) * unit] == piece:
                count += 1
            best = max(best, count)
    return best


@pytest.mark.parametrize("length", range(9))
def test_the_longest_loop_is_found(length: int) -> None:
    for tokens in itertools.product((4, 5), repeat=length):
        found = longest_loop(tokens)
        assert found.times == times_by_trying(tokens)
        if found.times > 1:
            row = found.unit * found.times
            assert any(tokens[begin : begin + len(row)] == row for begin in range(length))


def test_a_loop_of_words_is_one_only_where_the_source_has_none() -> None:
    some_sort = [4, 5, 6, 7] + [8, 9, 10] * LOOP
    assert loops([4, 5, 6], some_sort)
    assert longest_loop(some_sort) == (LOOP, (8, 9, 10))
    assert not loops([4, 5, 6], some_sort[:-1])
    assert not loops([11] * LOOP, some_sort)  # as often in the source
    assert loops([11] * LOOP, [8] * (LOOP + 1))
    assert not loops([], [])


def test_an_n_gram_that_comes_twice() -> None:
    assert repeats([4, 5, 6, 7, 9, 4, 5, 6, 7])
    assert not repeats([4, 5, 6, 7, 9, 4, 5, 6])
    assert repeats([4] * 5)
    assert not repeats([4] * 4)
    assert not repeats([])


def test_variety_is_counted() -> None:
    found = variety({"a": "the dog", "b": "the dog", "c": "the cat sleeps", "d": ""})
    assert (found.inputs, found.outputs, found.most_frequent, found.times) == (4, 3, "the dog", 2)
    assert found.unique_ratio == 0.75
    assert found.distinct_1 == pytest.approx(4 / 7)
    assert found.distinct_2 == pytest.approx(3 / 4)
    assert variety({"a": ""}).distinct_2 == 0.0
