"""Error rates against sums made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.alignment import hard_links
from nmt.analysis.alignment_error import (
    Extraction,
    as_links,
    counts,
    difference,
    error_rate,
    extract,
    masks,
    quality,
)


def test_the_example_is_that_of_the_definition() -> None:
    """A has 3 links: one sure, one only possible, one wrong; S has 2, P 3."""
    gold = masks({(0, 0), (1, 1)}, {(2, 1)}, source_words=4, target_words=3)
    found = masks({(0, 0), (2, 1), (3, 2)}, (), 4, 3).sure
    row = counts(found, gold)
    assert row.tolist() == [3, 1, 2, 2]
    assert float(error_rate(row)) == pytest.approx(1 - (1 + 2) / (3 + 2))
    measured = quality(np.array([row, row]))
    assert (measured.precision, measured.recall, measured.links) == (pytest.approx(2 / 3), pytest.approx(1 / 2), 6)
    assert measured.aer == measured.low == measured.high == pytest.approx(0.4)  # any two equal pairs are the same


PAIR = st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5]), min_size=4, max_size=4), min_size=1, max_size=4)


@given(PAIR)
def test_the_usual_links_are_those_of_translate(rows: list[list[float]]) -> None:
    found = extract(np.array(rows), Extraction())
    assert sorted(as_links(found)) == hard_links(rows, 3, len(rows))


@given(PAIR)
def test_nothing_may_win_and_thresholds_let_through(rows: list[list[float]]) -> None:
    weights = np.array(rows)
    none = extract(weights, Extraction("argmax or none"))
    for target, row in enumerate(rows):
        best = max(row[:3])
        expected = [row.index(best)] if best > 0 and best >= row[3] else []
        assert np.flatnonzero(none[target]).tolist() == expected
    some = as_links(extract(weights, Extraction("threshold", 0.2)))
    assert some == {(i, j) for j, row in enumerate(rows) for i in range(3) if row[i] >= 0.2}


def test_all_settings_at_once_are_each_alone() -> None:
    generator = np.random.default_rng(1)
    weights = generator.random((2, 3, 5, 7))
    gold = masks({(0, 0), (3, 4)}, {(1, 1)}, 6, 5)
    together = counts(extract(weights, Extraction()), gold)
    for place in np.ndindex(2, 3):
        assert together[place].tolist() == counts(extract(weights[place], Extraction()), gold).tolist()


@given(st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_without_possible_links_it_is_one_less_f1(links: frozenset[tuple[int, int]]) -> None:
    gold = masks({(0, 0), (1, 1), (2, 3)}, (), 4, 4)
    measured = quality(np.array([counts(masks(links, (), 4, 4).sure, gold)]))
    total = measured.precision + measured.recall
    f1 = 2 * measured.precision * measured.recall / total if total else 0.0
    assert measured.aer == pytest.approx(1 - f1)


def test_an_interval_covers_as_often_as_it_says() -> None:
    """Pairs whose links are right with probability 0.7: in about 95 of 100 test sets the interval holds 0.3."""
    generator = np.random.default_rng(7)
    inside = 0
    for _ in range(200):
        right = generator.binomial(10, 0.7, size=100)
        rows = np.stack([np.full(100, 10), right, right, np.full(100, 10)], axis=1)
        measured = quality(rows)
        inside += measured.low <= 0.3 <= measured.high
    assert 0.90 <= inside / 200 <= 0.99


def test_a_difference_is_paired() -> None:
    """One makes the mistakes of the other and one more in each pair: without pairing that could be chance."""
    generator = np.random.default_rng(3)
    right = generator.integers(2, 10, size=60)
    one = np.stack([np.full(60, 10), right, right, np.full(60, 10)], axis=1)
    other = np.stack([np.full(60, 10), right - 1, right - 1, np.full(60, 10)], axis=1)
    value, low, high = difference(one, other)
    assert value == pytest.approx(0.1)
    assert 0.099 < low <= high < 0.101
    assert difference(one, one) == (0.0, 0.0, 0.0)
