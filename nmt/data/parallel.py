"""Work on pieces of a corpus in processes of their own; the results come in the order of the pieces.

The processes are fresh interpreters (what ``multiprocessing`` calls spawn): a fork would inherit the threads of the
subword trainer and of torch, which do not run in the child, and ``multiprocessing`` itself, with spawn as with
forkserver, first imports the caller's main module again: seconds and hundreds of megabytes each for Hydra and torch,
and a crash for a script without a guard. Here they import what the work needs. They speak pickles over pipes, one
question and one answer at a time, and end with their input: whatever ends the process that made them, none stays.
"""

import os
import pickle
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, Generic, NamedTuple, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

ALONE = 4
"""Pieces that are done in this process before others are started: a small corpus is done by then."""

MOST = 16
"""Workers at most: the process that reads and writes for them can feed no more."""

_BOOTSTRAP = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the one that owns the others ends them
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from nmt.data.parallel import serve
serve()
"""


class _Worker(NamedTuple):
    process: subprocess.Popen[bytes]
    questions: IO[bytes]
    answers: IO[bytes]


class Parallel(Generic[Item, Result]):
    """``work`` on items, a queue: :meth:`put` them in, :meth:`get` the results in the same order.

    Leaving the context ends the processes at once, whatever they are at.

    Args:
        work: what is done with an item; it goes to every process once, so it must survive a pickle, and it must give
            the same result wherever it runs.
        workers: number of processes; None: one a core. With one, there is none: the work is done here.
    """

    def __init__(self, work: Callable[[Item], Result], workers: int | None = None) -> None:
        self._work = work
        self._size = min(_cores(), MOST) if workers is None else workers
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._done: dict[int, Result] = {}
        self._busy: dict[int, int] = {}  # process id -> number of the item that it has
        self._put = self._given = 0

    def __enter__(self) -> "Parallel[Item, Result]":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    @property
    def pending(self) -> int:
        """Items whose result has not been fetched."""
        return self._put - self._given

    @property
    def full(self) -> bool:
        """Whether results should be fetched before more is put in: what waits is held in memory."""
        return self.pending >= 2 * max(1, self._size)

    def put(self, item: Item) -> None:
        """Give an item to a process; waits while all are at work.

        Raises:
            OSError: a process has ended.
        """
        number = self._put
        self._put += 1
        if self._size < 2 or number < ALONE:
            self._done[number] = self._work(item)
            return
        if not self._workers:
            self._start()
        while not self._idle:
            self._collect()
        worker = self._idle.pop(0)
        self._busy[worker.process.pid] = number
        _send(worker, item)

    def get(self) -> Result:
        """The next result; waits for it. What the work raised is raised here.

        Raises:
            OSError: a process has ended.
        """
        assert self.pending, "there is nothing to get"
        while self._given not in self._done:
            self._collect()
        self._given += 1
        return self._done.pop(self._given - 1)

    def close(self) -> None:
        """End the processes."""
        self._selector.close()
        for worker in self._workers:
            worker.process.kill()  # it holds nothing that is worth an orderly end
        for worker in self._workers:
            worker.process.wait()
            worker.answers.close()
            with suppress(BrokenPipeError):  # a question that it did not live to read
                worker.questions.close()
        self._workers.clear()

    def _start(self) -> None:
        for _ in range(self._size):
            process = subprocess.Popen(
                [sys.executable, "-c", _BOOTSTRAP], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            assert process.stdin is not None
            assert process.stdout is not None
            worker = _Worker(process, process.stdin, process.stdout)
            self._workers.append(worker)
            self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        for worker in self._workers:  # once all have begun to start
            _send(worker, sys.path)
            _send(worker, self._work)
            self._idle.append(worker)

    def _collect(self) -> None:
        """Take the answers that are there; waits for one."""
        for key, _ in self._selector.select():
            worker: _Worker = key.data
            result = _receive(worker)
            self._done[self._busy.pop(worker.process.pid)] = result
            self._idle.append(worker)


def _cores() -> int:
    """As ``nmt.device.cores``, which imports torch."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _send(worker: _Worker, message: Any) -> None:
    try:
        pickle.dump(message, worker.questions, pickle.HIGHEST_PROTOCOL)
        worker.questions.flush()
    except BrokenPipeError:
        raise _died(worker) from None


def _receive(worker: _Worker) -> Any:
    try:
        good, answer = pickle.load(worker.answers)
    except (EOFError, pickle.UnpicklingError):  # nothing, or half an answer
        raise _died(worker) from None
    if not good:
        raise answer
    return answer


def _died(worker: _Worker) -> OSError:
    try:
        status = worker.process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return OSError("a process of the preparation does not answer any more; nothing was kept")
    why = signal.Signals(-status).name if status < 0 else f"status {status}"
    hint = " (out of memory?)" if why == "SIGKILL" else ""
    return OSError(f"a process of the preparation has ended: {why}{hint}; nothing was kept: run the same command again")


def serve() -> None:
    """What a process does: answer until the other end is gone."""
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever a library prints is no answer
    try:
        work = pickle.load(questions)
        while True:
            item = pickle.load(questions)
            answer: tuple[bool, Any]
            try:
                answer = True, work(item)
            except Exception as error:
                answer = False, portable(error)
            pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
    except (EOFError, pickle.UnpicklingError, BrokenPipeError):  # the other end is gone
        os._exit(0)  # the interpreter's own end would complain that the pipe is closed


def portable(error: Exception) -> Exception:
    """The error itself if it survives the journey, else one with its message."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
