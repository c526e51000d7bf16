"""An engine in several processes: each has its own copy of the models and takes the next batch when it is free.

On a processor, translating with one thread in each of N processes is faster than with N threads in one: most operations
of a decoding step are too small to be worth sharing.
"""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import torch

from nmt.data.parallel import portable
from nmt.engine import Engine, Request
from nmt.search import Hypothesis

AHEAD = 2
"""Requests that a process holds, the one it works on included, so that it need not wait for the next."""


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection


class WorkerEngine:
    """Answers come in the order of the requests, whichever process is the first to finish.

    The processes end with :meth:`close`, with this object, or with the process that made them, whatever ends it.

    Args:
        make: makes the engine of a process, in that process; must be a function that can be pickled.
        workers: number of processes.
        threads: of torch in each.

    Raises:
        ValueError: what ``make`` raises, or a process that did not start.
    """

    def __init__(self, make: Callable[[], Engine], workers: int, threads: int = 1) -> None:
        if workers < 1:
            raise ValueError(f"workers (--workers): expected 1 or more, found {workers}")
        context = multiprocessing.get_context("spawn")  # a fork would inherit threads that do not run in the child
        self._workers: list[_Worker] = []
        self._left: _Feed | None = None  # of a run that ended early: there are answers to it that nobody fetched
        self.close = weakref.finalize(self, _stop, self._workers)
        for number in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, make, threads), name=f"worker {number}", daemon=True)
            process.start()
            theirs.close()
            self._workers.append(_Worker(process, ours))
        for worker in self._workers:
            _receive(worker)  # that it is ready

    def run(self, requests: Iterable[Request]) -> Iterator[list[list[Hypothesis]]]:
        """See :class:`nmt.engine.Engine`. Requests are taken in a thread of their own: one may be long in coming."""
        self._fetch_what_is_left()
        feed = _Feed(requests, self._workers)
        done: dict[int, list[list[Hypothesis]]] = {}
        given = 0
        try:
            while connections := feed.working():
                for connection in wait(connections):
                    assert isinstance(connection, Connection)
                    number = feed.finished(connection)
                    done[number] = _receive(next(w for w in self._workers if w[1] is connection))
                while given in done:
                    feed.room.release()
                    given += 1
                    yield done.pop(given - 1)
        finally:
            feed.stop()
            self._left = feed

    def _fetch_what_is_left(self) -> None:
        """What answers an earlier run may not answer the next; only here, so that what ends for good need not wait."""
        feed, self._left = self._left, None
        if feed is None:
            return
        for worker in self._workers:
            while feed.held[worker.connection]:
                feed.finished(worker.connection)
                with suppress(Exception):
                    _receive(worker)


class _Feed:
    """Sends requests to the workers that have least to do, from a thread.

    Args:
        requests: in order; what they raise, :meth:`working` raises.
        workers: who answers.
    """

    def __init__(self, requests: Iterable[Request], workers: list[_Worker]) -> None:
        self.held: dict[Connection, list[int]] = {worker.connection: [] for worker in workers}
        """Numbers of the requests that each has to answer, in order."""
        self.room = threading.Semaphore(2 * AHEAD * len(workers))
        """For requests that are not answered yet, or wait for the answer to an earlier one."""
        self._changed = threading.Condition()
        self._over = False
        self._error: BaseException | None = None
        threading.Thread(target=self._send_all, args=(requests, workers), daemon=True).start()

    def working(self) -> list[Connection]:
        """The connections on which an answer will come; waits for one. Empty when all is answered.

        What the requests raise comes after the answers to all that were taken before.
        """
        with self._changed:
            while not any(self.held.values()) and not self._over:
                self._changed.wait()
            found = [connection for connection, numbers in self.held.items() if numbers]
            if self._error is not None and not found:
                raise self._error
            return found

    def finished(self, connection: Connection) -> int:
        """The number of the request whose answer comes next on a connection."""
        with self._changed:
            self._changed.notify_all()
            return self.held[connection].pop(0)

    def stop(self) -> None:
        """Send no more."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self.room.release()

    def _send_all(self, requests: Iterable[Request], workers: list[_Worker]) -> None:
        try:
            for number, request in enumerate(requests):
                self.room.acquire()
                with self._changed:
                    least = self._least(workers)
                    while len(self.held[least.connection]) >= AHEAD and not self._over:
                        self._changed.wait()
                        least = self._least(workers)
                    if self._over:
                        return
                    self.held[least.connection].append(number)
                    self._changed.notify_all()
                # Unlocked: if its pipe is full, the process may be waiting for us to take an answer.
                _send(least, request)
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()

    def _least(self, workers: list[_Worker]) -> _Worker:
        return min(workers, key=lambda worker: len(self.held[worker.connection]))


def _serve(connection: Connection, make: Callable[[], Engine], threads: int) -> None:
    """What a process does: answer until the other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the one that owns the others ends them
    torch.set_num_threads(threads)
    try:
        try:
            engine = make()
        except Exception as error:
            connection.send_bytes(pickle.dumps(portable(error)))
            return
        connection.send_bytes(pickle.dumps(None))
        while True:
            request = pickle.loads(connection.recv_bytes())
            answer: Any
            try:
                [answer] = engine.run([request])
            except Exception as error:
                answer = portable(error)
            connection.send_bytes(pickle.dumps(answer))
    except (EOFError, OSError):  # the other end is gone
        os._exit(0)


def _send(worker: _Worker, request: Request) -> None:
    try:
        worker.connection.send_bytes(pickle.dumps(request))
    except OSError:
        raise _died(worker) from None


def _receive(worker: _Worker) -> Any:
    try:
        answer = pickle.loads(worker.connection.recv_bytes())
    except (EOFError, OSError):
        raise _died(worker) from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _died(worker: _Worker) -> OSError:
    worker.process.join(timeout=10)
    status = worker.process.exitcode
    why = signal.Signals(-status).name if status is not None and status < 0 else f"status {status}"
    hint = "; if memory ran out, use fewer --workers or a smaller --batch-tokens" if why == "SIGKILL" else ""
    return OSError(f"{worker.process.name} of the translation has ended ({why}){hint}")


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.connection.close()
        worker.process.terminate()
    for worker in workers:
        worker.process.join(timeout=10)
        if worker.process.is_alive():
            print(f"{worker.process.name} does not end; killed", file=sys.stderr)
            worker.process.kill()
