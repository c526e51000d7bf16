"""What an epoch is made of: in which order, the same as ever without a mixture, and how often a row occurs in one."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.batch import Group
from nmt.data.loader import Loader
from nmt.data.store import PairDataset, RowRange
from tests.unit.data.test_loader import dataset, order

pairs = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=60)


def plain_order(data: PairDataset, tokens: int, sentences: int | None, seed: int, epoch: int) -> list[list[int]]:
    """Shuffle, sort by target and then source length, fill batches one row after the other, shuffle them."""
    generator = np.random.Generator(np.random.PCG64([seed, epoch]))
    source, target = data.source_lengths.astype(int), data.target_lengths.astype(int)
    rows = generator.permutation(np.flatnonzero(np.maximum(source, target) <= tokens)).tolist()
    rows.sort(key=lambda row: (target[row], source[row] if target[row] % 2 else -source[row]))
    batches: list[list[int]] = []
    for row in rows:
        grown = [*batches[-1], row] if batches else []
        longest = max((max(source[i], target[i]) for i in grown), default=0)
        if grown and len(grown) * longest <= tokens and len(grown) <= (sentences or len(grown)):
            batches[-1] = grown
        else:
            batches.append([row])
    return [batches[i] for i in generator.permutation(len(batches))]


@settings(deadline=None)
@given(pairs, st.integers(1, 200), st.none() | st.integers(1, 9), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_the_order_is_that_of_a_stable_sort(
    lengths: list[tuple[int, int]], tokens: int, sentences: int | None, seed: int, epoch: int, weighted: bool
) -> None:
    """So that a run goes on from its checkpoints in the order it began with; with parts of weight 1 as well."""
    data = dataset(lengths)
    parts = [RowRange("a", 1.0, 0, len(lengths) // 3), RowRange("b", 1.0, len(lengths) // 3, len(lengths))]
    loader = Loader(data, tokens, sentences, seed, shuffle=True, parts=parts if weighted else ())
    assert order(loader, epoch) == plain_order(data, tokens, sentences, seed, epoch)


# --- mixtures ---------------------------------------------------------------------------------------------------------

SIZES, WEIGHTS = (40, 30, 50, 7), (1.0, 2.4, 0.3, 0.5)


def mixture(*weights: float) -> tuple[PairDataset, list[RowRange]]:
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 20, (sum(SIZES), 2)).tolist()
    ends = np.cumsum(SIZES).tolist()
    parts = [
        RowRange(f"part {i}", weight, end - size, end)
        for i, (weight, size, end) in enumerate(zip(weights, SIZES, ends, strict=True))
    ]
    return dataset([(a, b) for a, b in lengths]), parts


def occurrences(loader: Loader, epoch: int) -> Counter[int]:
    return Counter(row for batch in order(loader, epoch) for row in batch)


def test_a_pair_occurs_as_often_as_its_part_says() -> None:
    data, parts = mixture(*WEIGHTS)
    loader = Loader(data, 100, None, seed=1, shuffle=True, parts=parts)
    for epoch in range(4):
        counts = occurrences(loader, epoch)
        for part in parts:
            whole, fraction = divmod(part.weight, 1)
            times = [counts[row] for row in range(part.first, part.end)]
            assert set(times) <= {int(whole), int(whole) + 1}
            assert sum(times) == whole * len(times) + round(fraction * len(times))


def test_epochs_draw_evenly_from_a_part() -> None:
    """After any number of epochs the draws of two rows of a part differ by one at most."""
    data, parts = mixture(*WEIGHTS)
    loader = Loader(data, 100, None, seed=1, shuffle=True, parts=parts)
    for begin in (0, 5):
        counts: Counter[int] = Counter()
        for epoch in range(begin, begin + 12):
            counts += occurrences(loader, epoch)
            for part in parts:
                times = [counts[row] for row in range(part.first, part.end)]
                assert max(times) - min(times) <= 1


def test_draws_differ_between_epochs_and_seeds_and_follow_from_them_alone() -> None:
    data, parts = mixture(*WEIGHTS)
    loader = Loader(data, 100, None, seed=1, shuffle=True, parts=parts)
    first, second = occurrences(loader, 0), occurrences(loader, 1)
    again = Loader(data, 100, None, seed=1, shuffle=True, parts=parts)
    assert order(again, 1) == order(loader, 1)
    assert second != first
    assert occurrences(Loader(data, 100, None, seed=2, shuffle=True, parts=parts), 0) != first


def test_pairs_over_the_budget_take_no_place_in_a_draw() -> None:
    data = dataset([(3, 3), (30, 3)] * 20)
    loader = Loader(data, 20, None, seed=1, shuffle=True, parts=[RowRange("all", 1.5, 0, 40)])
    counts = occurrences(loader, 0)
    assert loader.dropped == 20
    assert sorted(counts.values()) == [1] * 10 + [2] * 10
    assert all(row % 2 == 0 for row in counts)


@pytest.mark.parametrize(("accumulate", "size"), [(1, 2), (4, 3), (2, 1)])
def test_shares_of_an_update_of_a_mixture_are_the_update(accumulate: int, size: int) -> None:
    data, parts = mixture(*WEIGHTS)
    loader = Loader(data, 60, None, seed=1, shuffle=True, parts=parts)
    whole = list(loader.batches(2, 3))
    dealt = [list(loader.groups(2, 3, accumulate, rank, size)) for rank in range(size)]
    for number, groups in enumerate(zip(*dealt, strict=True)):
        expected = Group.of(whole[number * accumulate : (number + 1) * accumulate])
        assert all(group[1:] == expected[1:] for group in groups)
        rows = [i for group in groups for batch in group.batches for i in batch.indices.tolist()]
        assert sorted(rows) == sorted(i for batch in expected.batches for i in batch.indices.tolist())


def test_a_part_that_never_occurs_is_said_so() -> None:
    data, parts = mixture(1.0, 1.0, 1.0, 0.05)
    loader = Loader(data, 100, None, seed=1, shuffle=True, parts=parts)
    assert loader.warnings == ["part 3: weight 0.05 of 7 pairs is none in any epoch"]
    assert set(occurrences(loader, 0)) == set(range(sum(SIZES[:3])))
