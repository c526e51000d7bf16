"""Rate of a square matrix product on this machine, right now:  python probe.py THREADS

Prints {"fp32": GFLOP/s, "bf16": GFLOP/s} for 2048 x 2048 by 2048 x 2048, the median of about a second of repetitions.
bf16 is null where the hardware does not multiply it: emulated, one product takes many seconds.
"""

import json
import statistics
import sys
import time

import torch

from nmt.device import has_bf16

SIZE = 2048


def rate(dtype: torch.dtype, seconds: float = 1.0) -> float:
    """GFLOP/s; a product of n x n matrices takes 2 n^3 floating-point operations."""
    left, right = torch.randn(SIZE, SIZE).to(dtype), torch.randn(SIZE, SIZE).to(dtype)
    times: list[float] = []
    for _ in range(2):  # the first calls allocate and choose a kernel
        left @ right
    while sum(times) < seconds or len(times) < 3:
        started = time.perf_counter()
        left @ right
        times.append(time.perf_counter() - started)
    return 2 * SIZE**3 / statistics.median(times) / 1e9


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    bf16 = rate(torch.bfloat16) if has_bf16(torch.device("cpu")) else None
    print(json.dumps({"fp32": rate(torch.float32), "bf16": bf16}))
