"""An epoch: which rows occur in it, how often, and in which batches.

Memory, a pair: 4 bytes of lengths that a data set keeps, 4 of the order (for each time that it occurs), 8 more while it
is sorted. With the order of the epoch before, which may still be in use then, the most is 20 bytes: 0.8 GB for 40
million pairs, of which 0.5 GB are for a moment.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from nmt.data.store import PairDataset, RowRange

_CHUNK = 1 << 18  # rows whose keys are computed at once
_MIXING = 1  # tells the generator of a part's permutation from those of epochs


class Epoch:
    """The batches of an epoch, each as positions in the split.

    Args:
        rows: of all batches, one batch after the other.
        cuts: where batches begin in ``rows``, and where the last one ends.
        order: of the batches.
    """

    def __init__(self, rows: np.ndarray, cuts: np.ndarray, order: np.ndarray) -> None:
        self._rows = rows
        self._cuts = cuts
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, number: int) -> np.ndarray:
        batch = self._order[number]
        return self._rows[self._cuts[batch] : self._cuts[batch + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return map(self.__getitem__, range(len(self)))


def draw(parts: Sequence[RowRange], rows: np.ndarray, seed: int, epoch: int) -> np.ndarray:
    """Rows of an epoch of a mixture, each as often as it occurs, in no order that matters.

    A row of a part of weight w occurs floor(w) times, and once more if it is among the fraction * rows (rounded to a
    whole number) that the epoch draws from the part. Epochs draw by walking round one permutation of the part, seeded
    with ``seed``, each from where the one before stopped: after any number of epochs no row was drawn twice more than
    another of its part.

    Args:
        parts: which tile the split in its order.
        rows: in use, ascending.
        seed: of the draw.
        epoch: which pass.
    """
    occurring = [rows[:0]]
    for number, part in enumerate(parts):
        own = rows[np.searchsorted(rows, part.first) : np.searchsorted(rows, part.end)]
        whole, count = int(part.weight), drawn(part.weight, len(own))
        occurring += [own] * whole
        if count:
            generator = np.random.Generator(np.random.PCG64([seed, number, _MIXING]))
            walk = (epoch * count + np.arange(count)) % len(own)
            occurring.append(generator.permutation(own)[walk])
    return np.concatenate(occurring)


def drawn(weight: float, rows: int) -> int:
    """How many rows an epoch draws from a part for the fraction of its weight."""
    return round(weight % 1 * rows)


def sort_by_length(dataset: PairDataset, rows: np.ndarray) -> None:
    """Sort rows in place: by length of the target, then of the source; equal ones stay as they are.

    Every other target length runs through its source lengths backwards, so that they do not jump between two.
    """
    bits = len(rows).bit_length()
    sources = int(dataset.source_lengths.max(initial=0)) + 1
    assert sources * (int(dataset.target_lengths.max(initial=0)) + 1) << bits < 1 << 63
    keys = np.empty(len(rows), np.int64)  # target, source, place among `rows`: no two are equal, so any sort is stable
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        source, target = (side[part].astype(np.int64) for side in (dataset.source_lengths, dataset.target_lengths))
        key = target * sources + np.where(target % 2, source, sources - 1 - source)
        keys[start : start + len(part)] = (key << bits) + np.arange(start, start + len(part))
    keys.sort()
    for start in range(0, len(rows), _CHUNK):
        keys[start : start + _CHUNK] = rows[keys[start : start + _CHUNK] & ((1 << bits) - 1)]
    rows[:] = keys


def cut(dataset: PairDataset, rows: np.ndarray, batch_tokens: int, batch_sentences: int | None) -> np.ndarray:
    """Where batches of sorted rows begin, and where the last ends: each takes rows while both sides stay in the budget.

    Returns:
        [batches + 1] int64; [0] if there are no rows.
    """
    cuts = [0]
    while (start := cuts[-1]) < len(rows):
        source, target = (int(side[rows[start]]) for side in (dataset.source_lengths, dataset.target_lengths))
        # No batch holds more rows than the budget divided by its first row.
        most = max(1, batch_tokens // max(source, target))
        most = min(most, batch_sentences or most)
        window = rows[start : start + most]
        longest = np.maximum.accumulate(np.maximum(dataset.source_lengths[window], dataset.target_lengths[window]))
        fitting = np.count_nonzero(longest.astype(np.int64) * np.arange(1, len(window) + 1) <= batch_tokens)
        cuts.append(start + max(1, int(fitting)))
    return np.array(cuts)
