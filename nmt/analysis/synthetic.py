"""Sentence pairs for measuring speed and memory where no corpus is at hand: random subwords, realistic lengths.

What a training step costs depends on the lengths of its pairs and not on what they say, so the lengths follow those of
a real corpus and the subwords are uniform over the vocabulary. Lengths are those of Multi30k German-English in 8,000
joint subwords (29,000 pairs; EOS counted), fitted by a log-normal distribution that keeps both sides correlated:

    m = exp(N(2.682, 0.295)) target tokens            n = m exp(N(0.021, 0.169)) source tokens

rounded and kept between 4 and 53, the corpus's shortest and longest. Mean 15.3 target and 15.8 source tokens, as there.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.data.store import SIDES, PairDataset, RowWriter

FIRST_SUBWORD = 4  # the ids before are reserved


class Lengths(NamedTuple):
    """Tokens of each pair, EOS included."""

    source: np.ndarray  # [pairs] int64
    target: np.ndarray  # [pairs] int64


def corpus_lengths(pairs: int, seed: int) -> Lengths:
    """Lengths as in a corpus of image descriptions; the module's docstring has the distribution."""
    generator = np.random.default_rng(seed)
    target = np.exp(generator.normal(2.682, 0.295, pairs))
    source = target * np.exp(generator.normal(0.021, 0.169, pairs))
    return Lengths(*(np.clip(np.rint(side), 4, 53).astype(np.int64) for side in (source, target)))


def uniform_lengths(pairs: int, longest: int, seed: int) -> Lengths:
    """Every length from 2 to ``longest`` as often as any other, both sides alike; the last pair is the longest."""
    lengths = np.random.default_rng(seed).integers(2, longest, pairs, endpoint=True)
    lengths[-1] = longest
    return Lengths(lengths, lengths)


def write_pairs(folder: Path, lengths: Lengths, vocabulary: int, seed: int) -> PairDataset:
    """Write pairs of these lengths as a prepared training split, and open it.

    Args:
        folder: of the files.
        lengths: of the pairs.
        vocabulary: subwords of each side.
        seed: of the subwords.

    Raises:
        ValueError: the vocabulary has no subwords but the reserved ones.
    """
    if vocabulary <= FIRST_SUBWORD:
        raise ValueError(f"vocabulary: expected more than the {FIRST_SUBWORD} reserved subwords, found {vocabulary}")
    generator = np.random.default_rng(seed)
    for side, counts in zip(SIDES, lengths, strict=True):
        words = generator.integers(FIRST_SUBWORD, vocabulary, int(counts.sum()) - len(counts))
        writer = RowWriter(folder, "train", side, vocabulary)
        writer.write([row.tolist() for row in np.split(words, np.cumsum(counts - 1)[:-1])])  # which adds EOS
        writer.close()
    return PairDataset(folder, "train", (vocabulary, vocabulary))
