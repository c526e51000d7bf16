"""How long a recurrent translator has to hold a word: steps between reading it and writing its translation.

The *minimal time lag* of Hochreiter and Schmidhuber (1997), which Sutskever, Vinyals and Le (2014, section 3.3) give as
the reason why reversing the source helps. The fixed-vector model reads n source words and EOS, then BOS and the target
words. The state that word j has gone into (both counted from 0) is handed on

    (n - j) + 1 + i  times  until target word i is chosen,  or, with the source reversed,  j + 2 + i  times:

a test finds the same numbers in the gradients of the model (:mod:`nmt.analysis.paths`). Counted in words: a model reads
subwords, of which there are more.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

FIRST_WORDS = 5
"""Target words that count as the beginning of a sentence, which reversal brings closer to the source's."""

Links = Sequence[tuple[int, int]]
"""(source word, target word), counted from 0."""


class Lags(NamedTuple):
    """Of the aligned words of some sentences, in steps.

    Means over the sentences that have such a link; a link that is given twice is one.
    """

    mean: float  # over all links of a sentence
    smallest: float  # of any link of a sentence
    first_words: float  # over the links of its first five target words
    first_words_smallest: float  # of any of those
    counts: Mapping[int, int]  # links by their lag, of all sentences


def time_lag(source: int, target: int, words: int, reversed_source: bool) -> int:
    """Steps from reading a source word to writing a target word.

    Args:
        source: place of the source word, from 0.
        target: place of the target word, from 0.
        words: of the source, without EOS.
        reversed_source: whether the words are read from the last to the first; EOS is read last all the same.
    """
    position = words - 1 - source if reversed_source else source
    return (words - position) + 1 + target


def time_lags(alignments: Sequence[Links], source_lengths: Sequence[int], reversed_source: bool) -> Lags:
    """Lags of a test set.

    Args:
        alignments: links of each sentence.
        source_lengths: words of each source, without EOS.
        reversed_source: as for :func:`time_lag`.

    Raises:
        ValueError: not as many alignments as sources; a link is of a word that is not there; no sentence has a link of
            its first target words.
    """
    if len(alignments) != len(source_lengths):
        raise ValueError(f"{len(alignments)} alignments of {len(source_lengths)} sources: expected one of each")
    every, beginnings = [], []  # lags of each sentence that has any
    for number, (links, words) in enumerate(zip(alignments, source_lengths, strict=True), 1):
        if any(not 0 <= source < words or target < 0 for source, target in links):
            found = " ".join(f"{source}-{target}" for source, target in links)
            raise ValueError(
                f"sentence {number}: found links {found}, expected source words below {words}, none below 0"
            )
        lags = {(source, target): time_lag(source, target, words, reversed_source) for source, target in links}
        every.append(list(lags.values()))
        beginnings.append([lag for (_, target), lag in lags.items() if target < FIRST_WORDS])
    every, beginnings = [each for each in every if each], [each for each in beginnings if each]
    if not beginnings:
        raise ValueError("no sentence has an alignment link of its first words: nothing to measure")
    return Lags(
        mean=fmean(map(fmean, every)),
        smallest=fmean(map(min, every)),
        first_words=fmean(map(fmean, beginnings)),
        first_words_smallest=fmean(map(min, beginnings)),
        counts=dict(sorted(Counter(lag for lags in every for lag in lags).items())),
    )
