"""Batches: nothing lost, budgets kept, an order that follows from (seed, epoch) alone, exact tails."""

import random
import tempfile
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.batch import Group, collate
from nmt.data.loader import Loader
from nmt.data.store import PairDataset, RowWriter
from nmt.tokens import BOS, EOS, PAD

VOCABULARY = 100


def dataset(lengths: list[tuple[int, int]], name: str = "train") -> PairDataset:
    """A split whose pairs have the given lengths (EOS included) and recognisable ids."""
    with tempfile.TemporaryDirectory() as folder:
        for column, side in enumerate(("source", "target")):
            writer = RowWriter(Path(folder), name, side, VOCABULARY)  # type: ignore[arg-type]
            writer.write([[4 + (row + i) % 96 for i in range(pair[column] - 1)] for row, pair in enumerate(lengths)])
            writer.close()
        return PairDataset(Path(folder), name, (VOCABULARY, VOCABULARY))


def order(loader: Loader, epoch: int) -> list[list[int]]:
    return [batch.tolist() for batch in loader.epoch_batches(epoch)]


pairs = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=60)
budgets = st.integers(1, 200)
sentence_limits = st.none() | st.integers(1, 9)


@settings(deadline=None)
@given(pairs, budgets, sentence_limits, st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_every_pair_once_within_every_budget(
    lengths: list[tuple[int, int]], tokens: int, sentences: int | None, seed: int, epoch: int, shuffle: bool
) -> None:
    loader = Loader(dataset(lengths), tokens, sentences, seed, shuffle)
    batches = order(loader, epoch)
    fits = [i for i, pair in enumerate(lengths) if max(pair) <= tokens]
    assert sorted(i for batch in batches for i in batch) == (fits if shuffle else list(range(len(lengths))))
    assert loader.dropped == (len(lengths) - len(fits) if shuffle else 0)
    for batch in batches:
        assert batch
        assert len(batch) <= (sentences or len(batch))
        for side in (0, 1):
            assert len(batch) == 1 or len(batch) * max(lengths[i][side] for i in batch) <= tokens
    assert loader.batches_in_epoch(epoch) == len(batches)


@settings(deadline=None, max_examples=50)
@given(pairs, budgets, st.booleans(), st.data())
def test_a_resumed_epoch_is_the_tail_of_the_whole(
    lengths: list[tuple[int, int]], tokens: int, shuffle: bool, data: st.DataObject
) -> None:
    loader = Loader(dataset(lengths), tokens, None, 3, shuffle)
    whole = list(loader.batches(2))
    start = data.draw(st.integers(0, len(whole)))
    tail = list(Loader(dataset(lengths), tokens, None, 3, shuffle).batches(2, start))
    assert len(tail) == len(whole) - start
    for left, right in zip(tail, whole[start:], strict=True):
        assert all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


@settings(deadline=None, max_examples=50)
@given(pairs, budgets, st.integers(1, 5), st.integers(1, 4), st.data())
def test_shares_of_an_update_are_the_update(
    lengths: list[tuple[int, int]], tokens: int, accumulate: int, size: int, data: st.DataObject
) -> None:
    """Whatever the number of processes: each pair is with one of them, all know the sums, and shares are even."""
    loader = Loader(dataset(lengths), tokens, None, 3, True)
    whole = list(loader.batches(2))
    start = data.draw(st.integers(0, len(whole)))
    dealt = [list(loader.groups(2, start, accumulate, rank, size)) for rank in range(size)]
    assert all(len(groups) == -(-(len(whole) - start) // accumulate) for groups in dealt)
    for number, groups in enumerate(zip(*dealt, strict=True)):
        first = start + number * accumulate
        expected = Group.of(whole[first : first + accumulate])
        for group in groups:
            assert group[1:] == expected[1:]
            assert all(len(batch.indices) for batch in group.batches)
        rows = [[i for batch in group.batches for i in batch.indices.tolist()] for group in groups]
        assert sorted(chain(*rows)) == sorted(i for batch in expected.batches for i in batch.indices.tolist())
        batches = [len(group.batches) for group in groups]
        assert max(batches) - min(batches) <= len(expected.batches) % size
        if len(expected.batches) < size:
            assert max(map(len, rows)) - min(map(len, rows)) <= len(expected.batches)


def test_one_process_has_the_batches_as_they_are() -> None:
    loader = Loader(dataset([(3, 4)] * 40), 20, None, seed=1, shuffle=True)
    [first, *_] = loader.groups(0, 2, 3, rank=0, size=1)
    for mine, whole in zip(first.batches, loader.batches(0, 2), strict=False):
        assert all(torch.equal(one, other) for one, other in zip(mine, whole, strict=True))


@settings(deadline=None, max_examples=50)
@given(pairs, budgets)
def test_a_batch_is_its_pairs_padded(lengths: list[tuple[int, int]], tokens: int) -> None:
    data = dataset(lengths)
    for batch in Loader(data, tokens, None, 1, True).batches(0):
        rows = [data.pair(int(i)) for i in batch.indices]
        expected = collate([source for source, _ in rows], [target for _, target in rows], batch.indices.tolist())
        assert all(torch.equal(one, other) for one, other in zip(batch, expected, strict=True))
        assert all(tensor.dtype == torch.int64 for tensor in batch)
        for row, (source, target) in enumerate(rows):
            n, m = len(source), len(target)
            assert source[-1] == target[-1] == EOS
            assert batch.source[row].tolist() == [*source, *[PAD] * (batch.source.size(1) - n)]
            assert batch.target_in[row, :m].tolist() == [BOS, *target[:-1]]
            assert batch.target_in[row, m:].eq(PAD).all()
            assert batch.target_out[row].tolist() == [*target, *[PAD] * (batch.target_out.size(1) - m)]
            assert batch.target_mask[row].sum() == m


@pytest.fixture(scope="module")
def natural() -> PairDataset:
    """Lengths as text has them: skewed, the two sides correlated."""
    generator = np.random.default_rng(0)
    source = np.clip(generator.gamma(8, 1.8, 20_000), 3, 60)
    target = np.clip(source * generator.normal(1, 0.2, len(source)), 3, 60)
    return dataset(list(zip(source.astype(int).tolist(), target.astype(int).tolist(), strict=True)))


def test_the_order_follows_from_seed_and_epoch_alone(natural: PairDataset) -> None:
    expected = order(Loader(natural, 4096, None, seed=5, shuffle=True), 1)
    loader = Loader(natural, 4096, None, seed=5, shuffle=True)
    order(loader, 0)
    np.random.seed(1)
    random.seed(1)
    torch.manual_seed(1)
    assert order(loader, 1) == expected
    assert order(loader, 1) == expected
    others = [order(loader, 2), order(Loader(natural, 4096, None, seed=6, shuffle=True), 1)]
    assert all(other != expected for other in others)


def test_drawing_batches_leaves_global_generators_alone(natural: PairDataset) -> None:
    states = random.getstate(), str(np.random.get_state()), torch.get_rng_state()
    next(Loader(natural, 4096, None, seed=5, shuffle=True).batches(0))
    assert states[0] == random.getstate()
    assert states[1] == str(np.random.get_state())
    assert torch.equal(states[2], torch.get_rng_state())


def test_epochs_put_other_pairs_side_by_side(natural: PairDataset) -> None:
    loader = Loader(natural, 4096, None, seed=5, shuffle=True)
    first, second = ({frozenset(batch) for batch in order(loader, epoch)} for epoch in (0, 1))
    assert len(first & second) < len(first) / 10


def test_lengths_are_not_learned_in_order(natural: PairDataset) -> None:
    means = [natural.target_lengths[batch].mean() for batch in Loader(natural, 4096, None, 5, True).epoch_batches(0)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.5


def padding(batches: list[np.ndarray], lengths: np.ndarray) -> float:
    """Share of positions that are padding."""
    places = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    return 1 - sum(int(lengths[batch].sum()) for batch in batches) / places


def test_little_padding(natural: PairDataset) -> None:
    batches = Loader(natural, 4096, None, seed=1, shuffle=True).epoch_batches(0)
    at_random = np.array_split(np.random.default_rng(0).permutation(len(natural)), len(batches))
    assert padding(batches, natural.target_lengths) < 0.015
    assert padding(batches, natural.source_lengths) < padding(at_random, natural.source_lengths) / 3


def test_validation_is_in_one_order_whatever_the_seed(natural: PairDataset) -> None:
    orders = [order(Loader(natural, 4096, None, seed=seed, shuffle=False), epoch) for seed, epoch in ((1, 0), (2, 7))]
    assert orders[0] == orders[1]


def test_one_long_pair_does_not_blow_a_batch_up() -> None:
    data = dataset([(5, 5)] * 50 + [(5, 100)], "validation")
    batches = order(Loader(data, 100, None, seed=1, shuffle=False), 0)
    assert [50] in batches
    assert max(len(batch) for batch in batches) == 20


def test_a_pair_over_the_budget_is_written_down() -> None:
    loader = Loader(dataset([(3, 11), (4, 4)], "validation"), 10, None, seed=1, shuffle=False)
    assert loader.warnings == ["validation: 1 pairs are longer than batch_tokens=10: each a batch of its own"]
    assert order(loader, 0) == [[1], [0]]
    loader = Loader(dataset([(11, 3), (4, 4)]), 10, None, seed=1, shuffle=True)
    assert loader.warnings == ["train: 1 pairs are longer than batch_tokens=10: left out of training"]
    assert order(loader, 0) == [[1]]
    assert loader.dropped == 1
    assert Loader(dataset([(3, 10)]), 10, None, seed=1, shuffle=True).warnings == []


def test_an_empty_split_has_no_batches() -> None:
    assert order(Loader(dataset([]), 100, None, seed=1, shuffle=True), 0) == []
    assert list(Loader(dataset([]), 100, None, seed=1, shuffle=False).batches(0)) == []


@pytest.mark.parametrize("budget", [(0, None), (10, 0)])
def test_impossible_budgets(budget: tuple[int, int | None]) -> None:
    with pytest.raises(ValueError, match="expected 1 or more"):
        Loader(dataset([(1, 1)]), *budget, seed=1, shuffle=True)
