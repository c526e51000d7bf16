"""Work in a fresh process, where nothing came before, and how much memory a process has held at its peak."""

import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TypeVar

import torch

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_fresh_process(work: Callable[[Task], Result], task: Task, what: str) -> Result:
    """``work(task)``, computed by a process that has just been started and ends with it.

    Args:
        work: a function at the top level of a module.
        task: what it gets; sent to the process, as is the result.
        what: the process does, for the message: "trained ...".

    Raises:
        ValueError: the process was killed, for want of memory perhaps.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        done = pool.submit(work, task)
        try:
            return done.result()
        except BrokenProcessPool:
            raise ValueError(f"the process that {what} was killed: not enough memory, perhaps") from None


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
