"""A test set cut into groups of sentences that are hard for the same reason, each group scored by itself.

Two cuts: by source length, where the fixed vector is claimed to fail (Cho et al. 2014; Bahdanau et al. 2015, figure 2),
and by how rare the rarest source word is in training (Koehn and Knowles 2017, section 3.2). A word is what white space
separates; for its frequency it goes without case and without punctuation at its ends.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nmt.evaluation.metrics import Score, bleu

LENGTHS = (10, 20, 30, 40, 50, 60)
"""Longest source of each group, in words; one more group holds what is longer."""

FREQUENCIES = (0, 1, 10, 100, 1000, 10000)
"""Most occurrences in training of the rarest source word of each group; one more group holds what is commoner."""

_WORD = re.compile(r"\w(?:.*\w)?")  # from the first letter or digit to the last


class Slice(NamedTuple):
    """Some sentences of a test set."""

    name: str  # "11-20", "over 60"
    rows: list[int]  # their positions


def by_source_length(sources: Sequence[str], bounds: Sequence[int] = LENGTHS) -> list[Slice]:
    """Groups by the number of source words: 1-10, 11-20, ..., over 60. Those without sentences are left out."""
    return _cut([len(source.split()) for source in sources], bounds, lowest=1)


def by_rarest_word(sources: Sequence[str], counts: Counter[str], bounds: Sequence[int] = FREQUENCIES) -> list[Slice]:
    """Groups by how often the rarest source word occurs in training (``counts`` by :func:`words`): 0, 1, 2-10, ...

    A sentence without any word (numbers count as words, lone punctuation does not) is in no group.
    """
    rarest = [min((counts[word] for word in words(source)), default=-1) for source in sources]
    return _cut(rarest, bounds, lowest=0)


def words(sentence: str) -> list[str]:
    """Words of a sentence as their frequency is counted."""
    return [found[0].casefold() for found in map(_WORD.search, sentence.split()) if found]


def count_words(sentences: Iterable[str]) -> Counter[str]:
    """Occurrences of every word of :func:`words`."""
    return Counter(word for sentence in sentences for word in words(sentence))


def _cut(values: Sequence[int], bounds: Sequence[int], lowest: int) -> list[Slice]:
    slices, low = [], lowest
    for high in bounds:
        name = str(high) if low == high else f"{low}-{high}"
        slices.append(Slice(name, [row for row, value in enumerate(values) if low <= value <= high]))
        low = high + 1
    slices.append(Slice(f"over {bounds[-1]}", [row for row, value in enumerate(values) if value > bounds[-1]]))
    return [part for part in slices if part.rows]


def scores_by_slice(slices: Sequence[Slice], hypotheses: Sequence[str], references: Sequence[str]) -> list[Score]:
    """BLEU 13a of each group with its 95 % interval, in order."""
    return [
        bleu([hypotheses[row] for row in part.rows], [references[row] for row in part.rows], interval=True)
        for part in slices
    ]
