"""What the length of a translation costs, and how long it may be. |y| counts subwords, EOS among them.

gnmt    penalty(n) = ((5 + n) / 6)^alpha      (Wu et al. 2016, equation 14)
simple  penalty(n) = n^alpha
none    penalty(n) = 1
"""

from typing import TypeVar

from torch import Tensor

from nmt.config import SearchConfig

Length = TypeVar("Length", float, Tensor)


def length_penalty(length: Length, config: SearchConfig) -> Length:
    """The divisor of the log probability of a hypothesis of ``length`` subwords, EOS counted."""
    base = {"gnmt": (5 + length) / 6, "simple": length, "none": length**0}[config.length_penalty]
    penalty: Length = base**config.alpha
    return penalty


def length_limit(source_lengths: Tensor, config: SearchConfig) -> Tensor:
    """Most subwords (EOS counted) that translations of sources of these lengths (EOS counted) may have, int64."""
    limit = (config.max_length_a * source_lengths.double() + config.max_length_b).long()
    return limit.clamp(min=config.min_length + 1)
