"""Signs that a decoder has stalled, in its attention and in what it says; and outputs that are hardly outputs of their
inputs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

STUCK = 6
"""Steps in a row that look most at one position: more than a subword of the source usually has as its translation."""

UNIT = 8
"""Longest unit of a loop, in subwords."""

LOOP = 3
"""Times in a row from which a repeated unit is a loop, if it is not as often in the source (digits, dots, names)."""

ORDER = 4
"""Subwords of an n-gram that is not expected twice in a sentence."""


class Stay(NamedTuple):
    """The longest time that attention stays where it is."""

    steps: int
    place: int  # in the source


class Loop(NamedTuple):
    """The unit that is repeated most."""

    times: int  # in a row; 1: nothing is repeated
    unit: tuple[int, ...]


class Variety(NamedTuple):
    """How different the outputs for different inputs are."""

    inputs: int  # different ones
    outputs: int  # different ones among theirs
    most_frequent: str
    times: int  # inputs that have it
    distinct_1: float  # different words / words of all outputs (Li et al. 2016, arXiv 1510.03055)
    distinct_2: float  # the same of pairs of words

    @property
    def unique_ratio(self) -> float:
        """Different outputs for each input."""
        return self.outputs / self.inputs


def longest_stay(weights: np.ndarray) -> Stay:
    """Of weights [tgt_len, src_len]; the first of equals."""
    best = Stay(0, 0)
    begin, places = 0, weights.argmax(axis=1).tolist()
    for step, place in enumerate(places):
        if place != places[begin]:
            begin = step
        if step - begin + 1 > best.steps:
            best = Stay(step - begin + 1, place)
    return best


def longest_loop(tokens: Sequence[int]) -> Loop:
    """The unit of up to :data:`UNIT` subwords that comes most often in a row; the shortest of equals."""
    best = Loop(1, ())
    for unit in range(1, min(UNIT, len(tokens) // 2) + 1):
        same = 0  # tokens in a row that are those of one unit before
        for place in range(unit, len(tokens)):
            same = same + 1 if tokens[place] == tokens[place - unit] else 0
            times = same // unit + 1
            if times > best.times:
                best = Loop(times, tuple(tokens[place - unit + 1 : place + 1]))
    return best


def loops(source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether the target is in a loop that the source does not have."""
    times = longest_loop(target).times
    return times >= LOOP and times > longest_loop(source).times


def repeats(tokens: Sequence[int]) -> bool:
    """Whether an n-gram of :data:`ORDER` subwords comes twice."""
    grams = [tuple(tokens[place : place + ORDER]) for place in range(len(tokens) - ORDER + 1)]
    return len(set(grams)) < len(grams)


def variety(outputs: Mapping[str, str]) -> Variety:
    """Of outputs by their inputs, at least one."""
    counts = Counter(outputs.values())
    ((most_frequent, times),) = counts.most_common(1)
    words = [text.split() for text in outputs.values()]
    return Variety(
        len(outputs),
        len(counts),
        most_frequent,
        times,
        _distinct([word for each in words for word in each]),
        _distinct([pair for each in words for pair in pairwise(each)]),
    )


def _distinct(grams: Sequence[object]) -> float:
    return len(set(grams)) / len(grams) if grams else 0.0
