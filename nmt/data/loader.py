"""Batches of pairs of like length under a token budget, in an order that follows from (seed, epoch) alone."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from nmt.data.batch import Batch, Group, shift_right
from nmt.data.epoch import Epoch, cut, draw, drawn, sort_by_length
from nmt.data.regularization import SubwordSampler
from nmt.data.store import PairDataset, RowRange

Share = list[tuple[int, slice]]
"""What a process has of an update: which of its batches, and which rows of each."""


class Loader:
    """Cuts a split into batches.

    A batch of n pairs satisfies n * longest source <= ``batch_tokens`` and n * longest target <= ``batch_tokens``,
    EOS and padding included, and n <= ``batch_sentences``. A pair longer than the budget is a batch of its own in
    evaluation (``shuffle=False``) and left out, counted in ``dropped``, in training; ``warnings`` says so.

    Memory and speed are those of :mod:`nmt.data.epoch`: an epoch's order is made at once, what is in its batches is
    read as they are asked for.

    Args:
        dataset: the split.
        batch_tokens: budget a side.
        batch_sentences: most pairs a batch, or None.
        seed: of the order.
        shuffle: another order of batches, and other pairs side by side, every epoch; else always the same order, from
            short to long.
        parts: of a mixture, with their weights (:func:`nmt.data.epoch.draw`); none, or all weights 1: every pair occurs
            once.
        sampler: of other subwords than the stored ones; None: the stored ones. Batches are still cut by the stored
            lengths, so that where an epoch's batches begin and how many there are follows from its order; one that
            overflows the budget with its longer rows is made as several, in the same update.
    """

    def __init__(
        self,
        dataset: PairDataset,
        batch_tokens: int,
        batch_sentences: int | None,
        seed: int,
        shuffle: bool,
        parts: Sequence[RowRange] = (),
        sampler: SubwordSampler | None = None,
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
        self._parts = parts if any(part.weight != 1 for part in parts) else ()
        self._sampler = sampler
        self._latest: tuple[int, Epoch] | None = None
        fits = (dataset.source_lengths <= batch_tokens) & (dataset.target_lengths <= batch_tokens)
        over = len(dataset) - int(np.count_nonzero(fits))
        self.dropped = over if shuffle else 0
        """Pairs over the budget, left out of every epoch (training only)."""
        self._usable = np.flatnonzero(fits).astype(np.int32) if self.dropped else None
        self.warnings: list[str] = []
        """What someone should be told about the data, a line each."""
        if over:
            fate = "left out of training" if shuffle else "each a batch of its own"
            self.warnings.append(f"{dataset.name}: {over:,} pairs are longer than batch_tokens={batch_tokens}: {fate}")
        for part in self._parts:
            if not int(part.weight) and not drawn(part.weight, rows := part.end - part.first):
                self.warnings.append(f"{part.name}: weight {part.weight} of {rows:,} pairs is none in any epoch")

    def epoch_batches(self, epoch: int) -> Epoch:
        """Positions in the split of each batch's pairs, in the order of the epoch."""
        if self._latest is None or self._latest[0] != epoch:  # sorting a large corpus takes seconds
            self._latest = None
            self._latest = epoch, self._cut_epoch(epoch)
        return self._latest[1]

    def _cut_epoch(self, epoch: int) -> Epoch:
        generator = np.random.Generator(np.random.PCG64([self._seed, epoch]))
        rows = np.arange(len(self.dataset), dtype=np.int32) if self._usable is None else self._usable.copy()
        if self._parts:
            rows = draw(self._parts, rows, self._seed, epoch)
        if self._shuffle:
            generator.shuffle(rows)  # so that the sort below breaks ties at random
        sort_by_length(self.dataset, rows)
        cuts = cut(self.dataset, rows, self._batch_tokens, self._batch_sentences)
        order = np.arange(len(cuts) - 1)
        if self._shuffle:
            generator.shuffle(order)
        return Epoch(rows, cuts, order)

    def batches_in_epoch(self, epoch: int) -> int:
        """Number of batches of an epoch; it may differ by a few between epochs."""
        return len(self.epoch_batches(epoch))

    def batches(self, epoch: int, start: int = 0, every: int = 1) -> Iterator[Batch]:
        """Batches of an epoch from number ``start`` on, or of these the first of ``every`` so many."""
        batches = self.epoch_batches(epoch)
        for number in range(start, len(batches), every):
            if self._sampler is None:
                yield self.batch(batches[number])
            else:
                yield from self._sampler.batch(epoch, batches[number]).split(self._batch_tokens)

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
            update = [batches[number] for number in range(first, min(first + accumulate, len(batches)))]
            share = _share(len(update), rank, size)
            yield self._group(update, share) if self._sampler is None else self._sampled_group(epoch, update, share)

    def _group(self, update: list[np.ndarray], share: Share) -> Group:
        """An update of stored rows. Only a process's share is read from the data."""
        own = [update[number][rows] for number, rows in share]
        source, target = self.dataset.source_lengths, self.dataset.target_lengths
        tokens = sum(int(target[indices].sum()) for indices in update)
        return Group(
            batches=[self.batch(indices) for indices in own if len(indices)],
            number=len(update),
            sentences=sum(len(indices) for indices in update),
            tokens=tokens,
            filled=tokens + sum(int(source[indices].sum()) for indices in update),
            slots=sum(len(indices) * int(side[indices].max()) for indices in update for side in (source, target)),
        )

    def _sampled_group(self, epoch: int, update: list[np.ndarray], share: Share) -> Group:
        """An update of rows that are cut anew. Every process cuts all of them, though it trains on its share alone: the
        sums need every length, and cutting is quick beside training."""
        assert self._sampler is not None
        cut = [self._sampler.batch(epoch, indices) for indices in update]
        own = [cut[number].select(rows) for number, rows in share]
        together = Group.of([batch for each in cut for batch in each.split(self._batch_tokens)])
        batches = [batch for each in own for batch in each.split(self._batch_tokens)]
        return together._replace(batches=batches, number=len(update))

    def batch(self, indices: np.ndarray) -> Batch:
        """The batch of the given pairs, in that order, as they are stored."""
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


def _share(batches: int, rank: int, size: int) -> Share:
    """Deal the batches of one update: whole ones while there is one for every process, the others row by row.

    Rows of a batch are of like length, so shares are even.
    """
    whole = batches - batches % size
    return [
        *((number, slice(None)) for number in range(rank, whole, size)),
        *((number, slice(rank, None, size)) for number in range(whole, batches)),
    ]
