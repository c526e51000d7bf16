"""The machine that a process runs on: its processor, and how much of its memory the process has held."""

import platform
import resource
import sys
from multiprocessing import active_children
from pathlib import Path

import torch


def processor() -> str:
    """What the processor calls itself."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def peak_memory(device: torch.device) -> int:
    """Most bytes that this process has held at once: resident, or allocated by torch on a GPU.

    Of processes that this one has started and that are still there, each one's peak is added.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    started = [_peak_on_linux(str(process.pid)) for process in active_children()]
    return peak_resident() + sum(peak for peak in started if peak is not None)


def peak_resident() -> int:
    """Largest resident size of this process so far, in bytes."""
    # getrusage would also count what the parent held when it started this process.
    peak = _peak_on_linux("self")
    if peak is None:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return peak


def _peak_on_linux(process: str) -> int | None:
    """Of any process; None where there is no such process, or no Linux."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").split("\n")
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024
    except (OSError, StopIteration):
        return None
