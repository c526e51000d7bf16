"""The mean of several checkpoints of one run (Vaswani et al. 2017, section 6.1)."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from nmt.checkpoint import load_weights


def average(folders: Sequence[Path]) -> dict[str, Tensor]:
    """Mean of the weights of several checkpoints of one run, summed in float64; integer buffers are the last one's."""
    total: dict[str, Tensor] = {}
    for folder in folders:
        weights, _ = load_weights(folder)
        for name, tensor in weights.items():
            if not tensor.is_floating_point():
                total[name] = tensor
            elif name in total:
                total[name] += tensor
            else:
                total[name] = tensor.double()
    return {n: t / len(folders) if t.is_floating_point() else t for n, t in total.items()}
