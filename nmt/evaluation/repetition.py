"""How much a text repeats itself: what loops of a decoder look like in the figures."""

from collections import Counter
from collections.abc import Iterable

ORDER = 4
"""Words of an n-gram that count as a repetition when they come again."""


def repeated_share(lines: Iterable[str], order: int = ORDER) -> float:
    """Share of all n-grams that have occurred in the same line before: 1 - distinct / all, the rate seq-rep-n of
    Welleck et al. (2020, arXiv 1908.04319), over all lines together. 0 where no line is so long.

    Words are what white space separates, without case.
    """
    total = again = 0
    for line in lines:
        words = line.casefold().split()
        grams = Counter(zip(*(words[start:] for start in range(order)), strict=False))
        total += grams.total()
        again += grams.total() - len(grams)
    return again / total if total else 0.0
