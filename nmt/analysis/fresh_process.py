"""Work in a fresh process, where nothing came before."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

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
