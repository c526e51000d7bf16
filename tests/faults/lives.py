"""Lives of a training run: real processes, cheap to start because a server that has imported everything forks them.

The server (``multiprocessing``'s own) trains nothing itself. A life runs what ``python -m nmt.train`` runs once the
configuration is composed, with its exit status and its one-line errors, and can be given a fault to meet.
"""

import errno
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import torch._dynamo
import torch._refs
import torch.utils.tensorboard
from matplotlib.figure import Figure
from tensorboard.summary.writer.record_writer import RecordWriter

from nmt.cli import run
from nmt.config import TrainConfig
from nmt.data.batch import Batch
from nmt.train import _train as train_command
from nmt.training import trainer
from nmt.training.loss import LossSums
from nmt.training.update import Update, Updater

_SLOW_TO_IMPORT = (torch.utils.tensorboard, torch._dynamo, torch._refs)  # once for all lives
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["tests.faults.lives"])


@dataclass(frozen=True)
class Fault:
    """What goes wrong in a life."""

    largest_file: int | None = None  # bytes: from the first update on, no file may grow larger (a disk quota of a kind)
    poisoned: frozenset[int] = frozenset()  # the gradient of every batch with one of these training pairs is NaN
    board_records: int | None = None  # so many records fit on the disk for TensorBoard
    slow: float = 0.0  # seconds that every update takes longer


class Life:
    """A process that trains; ``said()`` is what it has written to stderr so far."""

    def __init__(self, config: TrainConfig, fault: Fault | None = None) -> None:
        self.config = config
        descriptor, self._output = tempfile.mkstemp(suffix=".stderr")
        os.close(descriptor)
        self.process: ForkServerProcess = _SERVER.Process(target=_live, args=(config, self._output, fault or Fault()))
        self.process.start()

    def said(self) -> str:
        """Everything on stderr so far."""
        return Path(self._output).read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str) -> None:
        """Until stderr holds ``text``."""
        self.wait_until(lambda: text in self.said())

    def wait_until(self, arrived: Callable[[], bool]) -> None:
        """Until something is so, or the process has ended."""
        while not arrived():
            assert self.process.is_alive(), self.said()
            time.sleep(0.003)

    def status(self) -> int:
        """Wait for the end; the exit status, or minus the number of the signal that ended it."""
        self.process.join(300)
        assert self.process.exitcode is not None, self.said()
        return self.process.exitcode

    def kill_after(self, seconds: float) -> int:
        """SIGKILL when it has computed for so long from now on; the status."""
        clock = Path(f"/proc/{self.process.pid}/schedstat")  # nanoseconds on a processor, however busy the machine is
        end = int(clock.read_text().split()[0]) + seconds * 1e9
        self.wait_until(lambda: int(clock.read_text().split()[0]) > end)
        self.process.kill()
        return self.status()


def _live(config: TrainConfig, output: str, fault: Fault) -> None:
    os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND), sys.stderr.fileno())
    trainer.attention_figure = lambda *arguments: Figure(figsize=(1, 1))  # drawing takes longer than training here
    _meet(fault)
    run(lambda: train_command(config))


def _meet(fault: Fault) -> None:
    update, backward = Updater.update, Updater._backward

    def limited_update(self: Updater, group: list[Batch], rate: float) -> Update:
        if fault.largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (fault.largest_file, resource.RLIM_INFINITY))
        time.sleep(fault.slow)
        return update(self, group, rate)

    def poisoned_backward(self: Updater, batch: Batch, scale: float) -> LossSums:
        bad = not fault.poisoned.isdisjoint(batch.indices.tolist())
        return backward(self, batch, float("nan") if bad else scale)

    write: Callable[[RecordWriter, bytes], None] = RecordWriter.write
    written = count(1)

    def limited_write(self: RecordWriter, data: bytes) -> None:
        if fault.board_records is not None and next(written) > fault.board_records:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, data)

    RecordWriter.write = limited_write
    Updater.update = limited_update  # type: ignore[method-assign, assignment]
    Updater._backward = poisoned_backward  # type: ignore[method-assign]
