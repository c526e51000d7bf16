"""Dropout (Srivastava et al. 2014) whose mask is cheap to draw on a CPU.

On a CPU ``torch.nn.functional.dropout`` can cost as much as the matrix product before it: it draws a double per element
and copies bools slowly. Here an element costs 16 random bits and two vectorised passes. On a GPU torch's own kernel is
used. Either way all random bits come from torch's default generator of the device, so that seeding or restoring that
generator repeats every mask.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 1 << 16  # a probability is realised as a multiple of 1 / LEVELS


class Dropout(nn.Module):
    """:func:`dropout` while training, nothing in eval mode.

    Args:
        p: probability of a zero, 0 <= p < 1.

    Raises:
        ValueError: ``p`` is out of range.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout: expected 0 <= p < 1, found {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Same shape and number format as ``x``; ``x`` itself in eval mode."""
        return dropout(x, self.p) if self.training else x

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"p={self.p}"


def dropout(x: Tensor, p: float) -> Tensor:
    """Zero each element with probability ``p`` and scale the others by 1 / (1 - p), so that the mean stays.

    On a CPU ``p`` is rounded to the nearest multiple of 2^-16 and the scale is that of the rounded ``p``.
    """
    if p == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    dropped = min(round(p * LEVELS), LEVELS - 1)  # of the LEVELS values that 16 bits have
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64)
    words.random_(-(1 << 63), None)  # all 64 bits are random: four draws of 16
    draws = words.view(torch.int16)[: x.numel()].view(x.shape)
    keep = torch.empty(x.shape, dtype=x.dtype)  # 0 or 1
    torch.ge(draws, dropped - LEVELS // 2, out=keep)  # the smallest int16 is -LEVELS / 2
    return x * keep.mul_(LEVELS / (LEVELS - dropped))  # the scale in the mask: one pass less in the backward
