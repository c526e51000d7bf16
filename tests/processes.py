"""Several real processes, as torchrun would start them, but forked from a server that has imported everything.

Starting Python with torch takes seconds; forking takes none, and what is forked is a process like any other.
"""

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

LIMIT = 300.0
"""Seconds after which a test gives up on its processes: they hang."""

_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(
    ["nmt.train", "nmt.training.trainer", "torch.utils.tensorboard", "matplotlib.figure", "tests.processes"]
)


class Ended(NamedTuple):
    """What became of a process."""

    status: int  # negative: the signal that killed it
    stderr: str


class Launched:
    """Processes that run ``work(rank, *arguments)``; every one has ended, or is killed, when the context is left."""

    def __init__(
        self, folder: Path, size: int, work: Callable[..., None], *arguments: Any, missing: Sequence[int] = ()
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self._errors = [folder / f"stderr{rank}" for rank in range(size)]
        for path in self._errors:
            path.write_text("")
        port = _free_port()
        self.processes: list[ForkServerProcess] = [
            _server.Process(target=_run, args=(rank, size, port, str(self._errors[rank]), work, arguments))
            for rank in range(size)
            if rank not in missing
        ]
        for process in self.processes:
            process.start()

    def __enter__(self) -> "Launched":
        return self

    def __exit__(self, *unused: object) -> None:
        for process in self.processes:
            if process.is_alive():
                process.kill()
                process.join()

    def wait_for(self, text: str, rank: int = 0) -> None:
        """Until a process has written this to stderr."""
        deadline = time.monotonic() + LIMIT
        while text not in (written := self._errors[rank].read_text()):
            assert time.monotonic() < deadline, written
            assert self.processes[rank].is_alive(), written
            time.sleep(0.01)

    def send(self, rank: int, number: signal.Signals) -> None:
        """Send a signal to one process."""
        pid = self.processes[rank].pid
        assert pid is not None
        os.kill(pid, number)

    def ended(self, *ranks: int) -> list[Ended]:
        """Wait for the end of processes (all, if none is named)."""
        deadline = time.monotonic() + LIMIT
        for rank in ranks or range(len(self.processes)):
            self.processes[rank].join(max(0.0, deadline - time.monotonic()))
            assert self.processes[rank].exitcode is not None, f"process {rank} hangs: {self._errors[rank].read_text()}"
        found = []
        for rank in ranks or range(len(self.processes)):
            status = self.processes[rank].exitcode
            assert status is not None
            found.append(Ended(status, self._errors[rank].read_text()))
        return found


def train_as_command(config: Any) -> None:
    """What ``python -m nmt.train`` does once the configuration is composed; exits with its status."""
    from nmt.cli import run
    from nmt.train import _train

    run(lambda: _train(config))


def _run(rank: int, size: int, port: int, errors: str, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in places.items()})
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115 (as long as the process)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the server ignores it
    work(rank, *arguments)


def _free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port: int = some.getsockname()[1]
    return port


def processes_of(parent: int) -> list[int]:
    """Processes that this one has started and that are at work."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found
