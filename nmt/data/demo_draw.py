"""Random choices of the demo grammar."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Choices from one seeded stream."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self.random() * (high - low + 1))

    def weighted(self, options: Sequence[tuple[T, float]]) -> T:
        point = self.random() * sum(weight for _, weight in options)
        for option, weight in options:
            point -= weight
            if point < 0:
                return option
        return options[-1][0]
