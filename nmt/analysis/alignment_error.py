"""How far hard alignments are from gold: precision, recall and alignment error rate (Och and Ney 2003, section 6).

Gold has sure links S and possible links P, which include the sure ones. Of an alignment A,

    precision = |A & P| / |A|    recall = |A & S| / |S|    AER = 1 - (|A & S| + |A & P|) / (|A| + |S|)

summed over all sentences before anything is divided. Where everything that is possible is sure, AER is 1 - F1.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np

from nmt.analysis.symmetrize import Link, Links
from nmt.evaluation.metrics import RESAMPLES

SEED = 12345
"""Of the resamples; the one of all other intervals."""


class GoldMasks(NamedTuple):
    """Gold links of a pair as matrices, [target words, source words] bool."""

    sure: np.ndarray
    possible: np.ndarray  # the sure ones included


class Extraction(NamedTuple):
    """How weights become links.

    ``argmax``: every target word has the source word of most weight, whatever went to nothing (EOS, the empty word).
    ``argmax or none``: ... unless nothing has more. ``threshold``: all of at least that weight.
    """

    kind: Literal["argmax", "argmax or none", "threshold"] = "argmax"
    threshold: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.threshold:g}" if self.kind == "threshold" else self.kind


EXTRACTIONS = (
    Extraction(),
    Extraction("argmax or none"),
    *(Extraction("threshold", value) for value in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)),
)
"""Among which the best is chosen on one half of the gold."""


class Quality(NamedTuple):
    """An alignment beside gold; fractions of 1."""

    aer: float
    low: float  # 95 % interval, from sentences drawn from the sentences
    high: float
    precision: float
    recall: float
    links: int


def masks(sure: Iterable[Link], possible: Iterable[Link], source_words: int, target_words: int) -> GoldMasks:
    """Gold links as matrices."""
    both = np.zeros((2, target_words, source_words), dtype=bool)
    for matrix, links in zip(both, (sure, possible), strict=True):
        for source, target in links:
            matrix[target, source] = True
    return GoldMasks(both[0], both[0] | both[1])


def extract(weights: np.ndarray, extraction: Extraction) -> np.ndarray:
    """Links of weights [..., target words, source words + 1], whose last column is nothing: bool, without that column.

    Of equal weights the leftmost wins; a word without any weight on words has no link.
    """
    words, nothing = weights[..., :-1], weights[..., -1:]
    if extraction.kind == "threshold":
        return words >= extraction.threshold
    best = words.max(axis=-1, keepdims=True)
    found = np.zeros(words.shape, dtype=bool)
    linked = (best > 0.0) if extraction.kind == "argmax" else (best > 0.0) & (best >= nothing)
    np.put_along_axis(found, words.argmax(axis=-1)[..., None], linked, axis=-1)
    return found


def as_links(found: np.ndarray) -> Links:
    """Links of a matrix [target words, source words] bool."""
    return frozenset((int(source), int(target)) for target, source in np.argwhere(found))


def counts(found: np.ndarray, gold: GoldMasks) -> np.ndarray:
    """|A|, |A & S|, |A & P|, |S| of one pair: [..., 4] for links [..., target words, source words]."""
    parts = [(found & each).sum(axis=(-2, -1)) for each in (np.True_, gold.sure, gold.possible)]
    return np.stack([*parts, np.broadcast_to(gold.sure.sum(), parts[0].shape)], axis=-1)


def error_rate(totals: np.ndarray) -> np.ndarray:
    """AER of counts [..., 4]; 1 where there is neither a link nor a sure one."""
    links, in_sure, in_possible, sure = np.moveaxis(np.asarray(totals, dtype=np.float64), -1, 0)
    found: np.ndarray = 1.0 - (in_sure + in_possible) / np.maximum(links + sure, 1.0)
    return found


def quality(rows: np.ndarray) -> Quality:
    """Of the counts of all pairs, [pairs, 4]."""
    total = rows.sum(axis=0)
    low, high = np.quantile(error_rate(_resampled(rows)), (0.025, 0.975))
    links, in_sure, in_possible, sure = (int(value) for value in total)
    precision, recall = in_possible / max(links, 1), in_sure / max(sure, 1)
    return Quality(float(error_rate(total)), float(low), float(high), precision, recall, links)


def difference(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """AER of the second less that of the first, on the same pairs [pairs, 4] each, with its 95 % interval."""
    drawn = error_rate(_resampled(second)) - error_rate(_resampled(first))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(error_rate(second.sum(axis=0)) - error_rate(first.sum(axis=0))), float(low), float(high)


def _resampled(rows: np.ndarray) -> np.ndarray:
    """Totals of sets of pairs drawn from the pairs, [resamples, 4]; the same pairs whatever is counted."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    size = len(rows)
    drawn: np.ndarray = generator.multinomial(size, np.full(size, 1 / size), size=RESAMPLES) @ rows
    return drawn
