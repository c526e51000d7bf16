"""Batches of pairs of like length under a token budget, in an order that follows from (seed, epoch) alone."""

import warnings
from collections.abc import Iterator

import numpy as np
import torch

from nmt.data.batch import Batch, Group, shift_right
from nmt.data.store import PairDataset


class Loader:
    """Cuts a split into batches.

    A batch of n pairs satisfies n * longest source <= ``batch_tokens`` and n * longest target <= ``batch_tokens``,
    EOS and padding included, and n <= ``batch_sentences``. A pair longer than the budget is a batch of its own in
    evaluation (``shuffle=False``) and left out, counted in ``dropped``, in training; both with a warning.

    Args:
        dataset: the split.
        batch_tokens: budget a side.
        batch_sentences: most pairs a batch, or None.
        seed: of the order.
        shuffle: another order of batches, and other pairs side by side, every epoch; else always the same order, from
            short to long.
    """

    def __init__(
        self, dataset: PairDataset, batch_tokens: int, batch_sentences: int | None, seed: int, shuffle: bool
    ) -> None:
        if batch_tokens < 1 or (batch_sentences is not None and batch_sentences < 1):
            raise ValueError(
                f"training.batch_tokens, batch_sentences: expected 1 or more, found {batch_tokens}, {batch_sentences}"
            )
        self.dataset = dataset
        self._batch_tokens = batch_tokens
        self._batch_sentences = batch_sentences
        self._seed = seed
        self._shuffle = shuffle
        self._latest: tuple[int, list[np.ndarray]] | None = None
        longest = np.maximum(dataset.source_lengths, dataset.target_lengths)
        over = int(np.count_nonzero(longest > batch_tokens))
        self.dropped = over if shuffle else 0
        """Pairs over the budget, left out of every epoch (training only)."""
        self._usable = np.flatnonzero(longest <= batch_tokens) if self.dropped else np.arange(len(dataset))
        if over:
            fate = "left out of training" if shuffle else "each a batch of its own"
            warnings.warn(
                f"{dataset.name}: {over} pairs are longer than batch_tokens={batch_tokens}: {fate}", stacklevel=2
            )

    def epoch_batches(self, epoch: int) -> list[np.ndarray]:
        """Positions in the split of each batch's pairs, in the order of the epoch."""
        if self._latest is None or self._latest[0] != epoch:  # sorting a large corpus takes seconds
            self._latest = epoch, self._cut_epoch(epoch)
        return self._latest[1]

    def _cut_epoch(self, epoch: int) -> list[np.ndarray]:
        generator = np.random.Generator(np.random.PCG64([self._seed, epoch]))
        order = self._usable
        if self._shuffle:
            order = generator.permutation(order)  # so that the stable sort below breaks ties at random
        source, target = self.dataset.source_lengths[order], self.dataset.target_lengths[order]
        # Every other target length runs through its source lengths backwards, so that they do not jump between two.
        order = order[np.lexsort((np.where(target % 2, source, -source), target))]
        batches = np.split(order, self._cuts(order))
        if self._shuffle:
            batches = [batches[i] for i in generator.permutation(len(batches))]
        return batches if len(order) else []

    def batches_in_epoch(self, epoch: int) -> int:
        """Number of batches of an epoch; it may differ by a few between epochs."""
        return len(self.epoch_batches(epoch))

    def batches(self, epoch: int, start: int = 0, every: int = 1) -> Iterator[Batch]:
        """Batches of an epoch from number ``start`` on, or of these the first of ``every`` so many."""
        for indices in self.epoch_batches(epoch)[start::every]:
            yield self.batch(indices)

    def groups(self, epoch: int, start: int, accumulate: int, rank: int, size: int) -> Iterator[Group]:
        """The updates of an epoch from batch ``start`` on, as one of several processes makes them.

        Args:
            epoch: which pass over the data.
            start: batches of it that are done already.
            accumulate: batches an update; a pass ends with a smaller group if it must.
            rank: of the process.
            size: number of processes.
        """
        batches = self.epoch_batches(epoch)
        for first in range(start, len(batches), accumulate):
            yield self._group(batches[first : first + accumulate], rank, size)

    def _group(self, batches: list[np.ndarray], rank: int, size: int) -> Group:
        """Deal the batches of one update: whole ones while there is one for every process, the others row by row.

        Rows of a batch are of like length, so shares are even. Only the share of ``rank`` is read from the data.
        """
        source, target = self.dataset.source_lengths, self.dataset.target_lengths
        whole = len(batches) - len(batches) % size
        share = [*batches[rank:whole:size], *(indices[rank::size] for indices in batches[whole:])]
        tokens = sum(int(target[indices].sum()) for indices in batches)
        return Group(
            batches=[self.batch(indices) for indices in share if len(indices)],
            number=len(batches),
            sentences=sum(len(indices) for indices in batches),
            tokens=tokens,
            filled=tokens + sum(int(source[indices].sum()) for indices in batches),
            slots=sum(len(indices) * int(side[indices].max()) for indices in batches for side in (source, target)),
        )

    def batch(self, indices: np.ndarray) -> Batch:
        """The batch of the given pairs, in that order."""
        source, target_out = self.dataset.source.padded(indices), self.dataset.target.padded(indices)
        target_lengths = torch.from_numpy(self.dataset.target_lengths[indices].astype(np.int64))
        return Batch(
            torch.from_numpy(source),
            torch.from_numpy(self.dataset.source_lengths[indices].astype(np.int64)),
            shift_right(torch.from_numpy(target_out), target_lengths),
            torch.from_numpy(target_out),
            target_lengths,
            torch.from_numpy(np.asarray(indices, np.int64)),
        )

    def _cuts(self, order: np.ndarray) -> list[int]:
        """Where batches begin (but the first): each takes pairs while both sides stay in the budget."""
        sides = self.dataset.source_lengths[order], self.dataset.target_lengths[order]
        cuts: list[int] = []
        start = 0
        while True:
            # No batch holds more rows than the budget divided by its first row.
            most = max(1, self._batch_tokens // int(max(sides[0][start], sides[1][start]))) if start < len(order) else 0
            most = min(most, self._batch_sentences or most)
            longest = np.maximum(*(np.maximum.accumulate(side[start : start + most]) for side in sides))
            rows = int(np.count_nonzero(longest * np.arange(1, len(longest) + 1) <= self._batch_tokens))
            start += max(1, rows)
            if start >= len(order):
                return cuts
            cuts.append(start)
