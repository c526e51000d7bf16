"""Training pairs cut anew: what decides how, what stays as it is stored, and budgets that hold all the same."""

import random
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from nmt.config import ConfigError, TokenizerConfig
from nmt.data.batch import Batch, Group
from nmt.data.corpus import DataError
from nmt.data.loader import Loader
from nmt.data.regularization import SubwordSampler, row_seeds
from nmt.data.store import SIDES, LineWriter, PairDataset, RowWriter, Side
from nmt.data.tokenizer import TokenizerPair, check_tokenizer_config, train_tokenizers
from nmt.tokens import EOS
from tests.data_configs import data_config

ROWS = 120


def tokenizer_config(**changes: Any) -> TokenizerConfig:
    return data_config("demo", Path("unused"), changes).tokenizer


def sentences(count: int) -> list[str]:
    generator = random.Random(4)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = ["".join(generator.choices(syllables, k=generator.randint(1, 4))) for _ in range(200)]
    return [" ".join(generator.choices(words, k=generator.randint(1, 12))) for _ in range(count)]


LINES = sentences(2 * ROWS)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizers(request: pytest.FixtureRequest) -> TokenizerPair:
    config = tokenizer_config(kind=request.param, vocabulary_size=180, joint=True)
    return train_tokenizers(config, LINES[:ROWS], LINES[ROWS:], ROWS, seed=1)


@pytest.fixture(scope="module")
def dataset(tokenizers: TokenizerPair, tmp_path_factory: pytest.TempPathFactory) -> PairDataset:
    return write(tmp_path_factory.mktemp("pairs"), tokenizers, LINES[:ROWS], LINES[ROWS:])


def write(folder: Path, tokenizers: TokenizerPair, sources: list[str], targets: list[str]) -> PairDataset:
    sizes = (tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size)
    for side, lines, tokenizer, size in zip(SIDES, (sources, targets), tokenizers, sizes, strict=True):
        ids = RowWriter(folder, "train", side, size)
        ids.write([tokenizer.encode(line) for line in lines])
        ids.close()
        text = LineWriter(folder, "train", side)
        text.write([f"{line}\n".encode() for line in lines])
        text.close()
    return PairDataset(folder, "train", sizes)


def kind_of(tokenizers: TokenizerPair) -> Literal["bpe", "unigram"]:
    """Scores of BPE pieces count merges: whole numbers."""
    bpe = all(score == int(score) for _, score in tokenizers.source.normal_pieces().values())
    return "bpe" if bpe else "unigram"


def usual(tokenizers: TokenizerPair) -> float:
    """A rate, or an alpha, at which most lines change."""
    return 0.3 if kind_of(tokenizers) == "bpe" else 0.03


def sampler(
    dataset: PairDataset, tokenizers: TokenizerPair, seed: int = 1, rate: float | None = None, longest: int = 60
) -> SubwordSampler:
    return SubwordSampler(dataset, tokenizers, kind_of(tokenizers), rate or usual(tokenizers), seed, longest)


def loader(dataset: PairDataset, tokenizers: TokenizerPair, rate: float | None = None) -> Loader:
    return Loader(dataset, 150, None, seed=3, shuffle=True, sampler=sampler(dataset, tokenizers, rate=rate))


def rows_of(batches: list[Batch]) -> dict[int, tuple[list[int], list[int]]]:
    """Source and target of each pair."""
    found = {}
    for batch in batches:
        for row, index in enumerate(batch.indices.tolist()):
            source = batch.source[row, : batch.source_lengths[row]].tolist()
            assert index not in found
            found[index] = source, batch.target_out[row, : batch.target_lengths[row]].tolist()
    return found


def same(one: Batch, other: Batch) -> bool:
    return all(torch.equal(left, right) for left, right in zip(one, other, strict=True))


# --- rows -------------------------------------------------------------------------------------------------------------


def test_a_rate_of_nearly_nothing_gives_the_stored_rows(dataset: PairDataset, tokenizers: TokenizerPair) -> None:
    """Of the unigram model: an alpha so large that the best segmentation has all of the probability."""
    cut = loader(dataset, tokenizers, rate=1e-9 if kind_of(tokenizers) == "bpe" else 1e3)
    stored = Loader(dataset, 150, None, seed=3, shuffle=True)
    assert all(same(one, other) for one, other in zip(cut.batches(0), stored.batches(0), strict=True))


def test_what_a_row_is_cut_into_follows_from_seed_epoch_row_and_side(
    dataset: PairDataset, tokenizers: TokenizerPair
) -> None:
    every = np.arange(ROWS)
    one = rows_of([sampler(dataset, tokenizers).batch(0, every)])
    for rows in (every[::-1], every[::7]):
        again = rows_of([sampler(dataset, tokenizers).batch(0, rows)])
        assert all(again[row] == one[row] for row in rows)
    for other in (
        rows_of([sampler(dataset, tokenizers).batch(1, every)]),
        rows_of([sampler(dataset, tokenizers, seed=2).batch(0, every)]),
    ):
        assert sum(other[row] != one[row] for row in range(ROWS)) > ROWS / 2


def test_equal_sides_and_rows_are_cut_differently(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    line = " ".join(LINES[:3])
    dataset = write(tmp_path, tokenizers, [line] * 20, [line] * 20)
    cut = sampler(dataset, tokenizers, longest=1000).batch(0, np.arange(20))
    rows = [row for pair in rows_of([cut]).values() for row in pair]
    assert len({tuple(row) for row in rows}) > 35


def test_seeds_are_of_31_bits_and_all_but_never_the_same() -> None:
    rows = np.arange(2000)
    sides: tuple[Side, ...] = SIDES
    seeds = np.concatenate(
        [row_seeds(seed, epoch, side, rows) for seed in (1, 2) for epoch in (0, 1) for side in sides]
    )
    assert seeds.max() < 1 << 31
    assert len(set(seeds.tolist())) > len(seeds) - 5
    ones = [(seeds >> np.uint64(bit) & np.uint64(1)).mean() for bit in range(31)]
    assert np.abs(np.array(ones) - 0.5).max() < 0.03, "each bit is a coin"


def test_a_row_that_becomes_too_long_is_taken_as_it_is_stored(dataset: PairDataset, tokenizers: TokenizerPair) -> None:
    longest = int(max(dataset.source_lengths.max(), dataset.target_lengths.max()))
    free = rows_of([sampler(dataset, tokenizers, longest=10_000).batch(0, np.arange(ROWS))])
    cut = rows_of([sampler(dataset, tokenizers, longest=longest).batch(0, np.arange(ROWS))])
    replaced = 0
    for row, sides in cut.items():
        for found, wild, stored in zip(sides, free[row], dataset.pair(row), strict=True):
            assert found == (wild if len(wild) <= longest else stored.tolist())
            assert found[-1] == EOS
            replaced += len(wild) > longest
    assert replaced


# --- batches ----------------------------------------------------------------------------------------------------------


def test_batches_begin_where_they_do_without_and_hold_the_budget(
    dataset: PairDataset, tokenizers: TokenizerPair
) -> None:
    made, plain = loader(dataset, tokenizers), Loader(dataset, 150, None, seed=3, shuffle=True)
    assert [rows.tolist() for rows in made.epoch_batches(1)] == [rows.tolist() for rows in plain.epoch_batches(1)]
    overflowing = 0
    for number, rows in enumerate(plain.epoch_batches(1)):
        [group] = list(made.groups(1, number, 1, 0, 1))[:1]
        assert group.number == 1
        assert [i for batch in group.batches for i in batch.indices.tolist()] == rows.tolist()
        for batch in group.batches:
            assert len(batch.indices) == 1 or max(batch.source.numel(), batch.target_out.numel()) <= 150
        overflowing += len(group.batches) > 1
    assert overflowing


@pytest.mark.parametrize(("accumulate", "size"), [(1, 1), (1, 2), (4, 3), (3, 2), (5, 8)])
def test_shares_of_an_update_are_the_update(
    dataset: PairDataset, tokenizers: TokenizerPair, accumulate: int, size: int
) -> None:
    """Whatever the number of processes: each row is with one of them, cut as one process cuts it, and all know the
    sums."""
    alone = list(loader(dataset, tokenizers).groups(2, 1, accumulate, 0, 1))
    dealt = [list(loader(dataset, tokenizers).groups(2, 1, accumulate, rank, size)) for rank in range(size)]
    batches = loader(dataset, tokenizers).batches_in_epoch(2)
    assert sum(group.number for group in alone) == batches - 1
    for whole, *groups in zip(alone, *dealt, strict=True):
        assert whole[2:] == Group.of(whole.batches)[2:]
        assert all(group[1:] == whole[1:] for group in groups)
        together = [batch for group in groups for batch in group.batches]
        assert rows_of(together) == rows_of(whole.batches)
        assert all(len(batch.indices) for batch in together)


def test_a_resumed_epoch_is_the_tail_of_the_whole(dataset: PairDataset, tokenizers: TokenizerPair) -> None:
    whole = list(loader(dataset, tokenizers).groups(2, 0, 2, 0, 1))
    tail = list(loader(dataset, tokenizers).groups(2, 4, 2, 0, 1))
    assert len(tail) == len(whole) - 2
    for left, right in zip(tail, whole[2:], strict=True):
        assert left[1:] == right[1:]
        assert all(same(one, other) for one, other in zip(left.batches, right.batches, strict=True))


# --- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "rate", "expected"),
    [
        ("bpe", 0.0, "rate of BPE-dropout between 0 and 1"),
        ("bpe", 1.0, "rate of BPE-dropout between 0 and 1"),
        ("bpe", float("nan"), "rate of BPE-dropout between 0 and 1"),
        ("unigram", 0.0, "alpha, above 0"),
        ("unigram", float("inf"), "alpha, above 0"),
    ],
)
def test_rates_out_of_range(kind: str, rate: float, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"data.tokenizer.subword_regularization: expected .*{expected}"):
        check_tokenizer_config(tokenizer_config(kind=kind, subword_regularization=rate))


def test_without_text_nothing_can_be_cut(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    dataset = write(tmp_path, tokenizers, LINES[:3], LINES[3:6])
    (tmp_path / "train.source.lines").unlink()
    with pytest.raises(DataError, match="no text is kept"):
        sampler(dataset, tokenizers)
