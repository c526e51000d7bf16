"""A batch of sentence pairs as the models and the loss see it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.device import move
from nmt.tokens import BOS, EOS, PAD


class Batch(NamedTuple):
    """Right-padded rows; ``target_in`` is ``target_out`` shifted right behind BOS, with the same real positions."""

    source: Tensor  # [batch, src_len] int64, each row ends in EOS
    source_lengths: Tensor  # [batch] int64, EOS included
    target_in: Tensor  # [batch, tgt_len] int64, BOS first
    target_out: Tensor  # [batch, tgt_len] int64, EOS last
    target_lengths: Tensor  # [batch] int64, real positions of target_out (EOS included)
    indices: Tensor  # [batch] int64, position of each pair in its split

    @property
    def target_mask(self) -> Tensor:
        """[batch, tgt_len] bool, True where ``target_out`` is a real token."""
        positions = torch.arange(self.target_out.size(1), device=self.target_out.device)
        return positions < self.target_lengths[:, None]

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device; nothing waits for the copy."""
        return Batch(*(move(tensor, device) for tensor in self))

    def select(self, rows: slice) -> "Batch":
        """Some of the rows, as long as the longest of them."""
        source_lengths, target_lengths = self.source_lengths[rows], self.target_lengths[rows]
        source_length, target_length = (
            int(lengths.max()) if len(lengths) else 0 for lengths in (source_lengths, target_lengths)
        )
        return Batch(
            self.source[rows, :source_length],
            source_lengths,
            self.target_in[rows, :target_length],
            self.target_out[rows, :target_length],
            target_lengths,
            self.indices[rows],
        )

    def split(self, tokens: int) -> list["Batch"]:
        """The fewest batches, of numbers of rows that differ by one at most, each with no more than ``tokens`` places a
        side, or a single row; none of no rows."""
        rows = len(self.indices)
        for number in range(1, rows + 1):
            bounds = [rows * i // number for i in range(number + 1)]
            parts = [self.select(slice(begin, end)) for begin, end in pairwise(bounds)]
            if number == rows or all(max(part.source.numel(), part.target_out.numel()) <= tokens for part in parts):
                return parts
        return []


class Group(NamedTuple):
    """The batches of one update: a process's share of them, and what all processes have together.

    All but ``batches`` is of the whole update, however many processes make it.
    """

    batches: list[Batch]  # this process's share; none perhaps
    number: int  # batches
    sentences: int
    tokens: int  # real target tokens, EOS included
    filled: int  # real tokens, source and target
    slots: int  # rows x longest row, source and target: padding is what is not filled

    @classmethod
    def of(cls, batches: Sequence[Batch]) -> "Group":
        """The group of one process that has all of it."""
        tokens = sum(int(batch.target_lengths.sum()) for batch in batches)
        return cls(
            batches=list(batches),
            number=len(batches),
            sentences=sum(len(batch.indices) for batch in batches),
            tokens=tokens,
            filled=tokens + sum(int(batch.source_lengths.sum()) for batch in batches),
            slots=sum(batch.source.numel() + batch.target_out.numel() for batch in batches),
        )


def pad_rows(rows: Sequence[Sequence[int] | np.ndarray]) -> tuple[Tensor, Tensor]:
    """Right-pad rows of ids with PAD: ([batch, longest] int64, [batch] int64 lengths)."""
    lengths = [len(row) for row in rows]
    padded = np.full((len(rows), max(lengths, default=0)), PAD, dtype=np.int64)
    for row, ids in enumerate(rows):
        padded[row, : lengths[row]] = ids
    return torch.from_numpy(padded), torch.tensor(lengths, dtype=torch.int64)


def encode_source(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Subword ids of source sentences (no EOS) as the encoder takes them: EOS appended, padded."""
    return pad_rows([[*row, EOS] for row in rows])


def collate(
    sources: Sequence[Sequence[int] | np.ndarray], targets: Sequence[Sequence[int] | np.ndarray], indices: Sequence[int]
) -> Batch:
    """Make a batch of pairs; ``sources`` and ``targets`` both end in EOS already (as the prepared data stores them)."""
    source, source_lengths = pad_rows(sources)
    target_out, target_lengths = pad_rows(targets)
    target_in = shift_right(target_out, target_lengths)
    positions = torch.tensor(list(indices), dtype=torch.int64)
    return Batch(source, source_lengths, target_in, target_out, target_lengths, positions)


def shift_right(target_out: Tensor, target_lengths: Tensor) -> Tensor:
    """``target_in`` of a padded ``target_out`` [batch, tgt_len]: BOS, then every token but the row's last (its EOS)."""
    target_in = target_out.roll(1, dims=1)
    target_in[:, :1] = BOS
    positions = torch.arange(target_out.size(1), device=target_out.device)
    return target_in.masked_fill_(positions >= target_lengths[:, None], PAD)
