"""How widely attention is spread, and what of the source it reaches: by position, and in numbers for a sentence.

    entropy     of a row of weights, divided by log of the number of source positions: 0 is one position, 1 is uniform
    coverage    the weight that a position gets from all rows, divided by what uniform rows would give it: 1 is as much
    reached     a position that some row gives a weight of :data:`REACHED`, and twice the uniform one

Positions are subwords; EOS is told apart, since much weight on it is usual and says nothing of words.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

BINS = 10
"""Parts of a sentence, by relative position."""

REACHED = 0.1
"""Weight from which a position counts as reached; below it a read is one among ten. In a short sentence, where uniform
weights come near to it, it has to be twice the uniform weight. Uniform weights reach nothing."""


class Read(NamedTuple):
    """What the weights of one sentence say."""

    entropy: np.ndarray  # [tgt_len], from 0 to 1
    coverage: np.ndarray  # [source subwords]
    reached: np.ndarray  # [source subwords], bool
    end: float  # share of all weight that is on EOS


class Spread(NamedTuple):
    """Of several sentences. A part by position, from the beginning to the end, is NaN where nothing lies in it."""

    sentences: int
    entropy: float  # mean over target tokens
    entropy_by_target: list[float]  # of each of BINS parts of the target
    coverage_by_source: list[float]  # of each of BINS parts of the source
    reached_by_source: list[float]  # share of the subwords in each of BINS parts of the source
    reached_before: float  # share of the subwords in the first three quarters of their sentence
    reached_last: float  # share of the subwords in the last quarter
    sentences_last: float  # share of the sentences of four or more subwords some of whose last quarter is reached
    end: float  # mean share of the weight on EOS


def read(weights: np.ndarray) -> Read:
    """Of weights [tgt_len, src_len], the last column is EOS's; there are two columns or more."""
    tgt_len, src_len = weights.shape
    words = weights[:, :-1]
    return Read(
        entropy(weights),
        words.sum(axis=0) * src_len / tgt_len,
        words.max(axis=0) >= max(REACHED, 2 / src_len),
        float(weights[:, -1].mean()),
    )


def entropy(weights: np.ndarray) -> np.ndarray:
    """Of rows [..., src_len], from 0 to 1: [...]."""
    logarithms = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    found: np.ndarray = np.abs(-(weights * logarithms).sum(axis=-1)) / np.log(weights.shape[-1])
    return found


def spread(reads: Sequence[Read]) -> Spread:
    """All of them together, every subword counting as one."""
    entropies = [each.entropy for each in reads]
    reached = [each.reached.astype(float) for each in reads]
    last = [_in_last_quarter(len(each)) for each in reached]
    with_quarter = [each[where] for each, where in zip(reached, last, strict=True) if where.any()]
    before = [each[~where] for each, where in zip(reached, last, strict=True)]
    return Spread(
        len(reads),
        _mean(np.concatenate(entropies)),
        by_position(entropies),
        by_position([each.coverage for each in reads]),
        by_position(reached),
        _mean(np.concatenate(before)),
        _mean(np.concatenate([*with_quarter, np.zeros(0)])),
        _mean(np.array([each.max() for each in with_quarter])),
        _mean(np.array([each.end for each in reads])),
    )


def by_position(values: Sequence[np.ndarray]) -> list[float]:
    """Means over the parts of sequences of any lengths, by relative position."""
    parts = np.concatenate([np.arange(len(each)) * BINS // max(len(each), 1) for each in values])
    every = np.concatenate(values)
    return [_mean(every[parts == part]) for part in range(BINS)]


def _in_last_quarter(length: int) -> np.ndarray:
    """Of positions; of fewer than four none is."""
    return np.arange(length) * 4 >= 3 * length


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
