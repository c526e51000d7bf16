"""Something happens to one of several processes: all of them end or go on together, and nothing hangs."""

import dataclasses
import errno
import itertools
import math
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from nmt import checkpoint
from nmt.config import TrainConfig
from nmt.training import trainer, update
from nmt.training.loss import LossSums
from nmt.training.resume import lock
from tests.processes import LIMIT, Launched, train_as_command
from tests.tiny_run import metrics, tiny_config

ENDLESS = ("training.max_steps=1000000", "training.validate_every=1000000", "training.log_every=1")
LOST = "another process of this run ended or stopped answering while process {} of {} was "


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("distributed_faults")


def train_rank(rank: int, config: TrainConfig) -> None:
    """One process of a run that nothing happens to from within."""
    trainer.attention_figure = lambda *arguments: Figure(figsize=(1, 1))
    train_as_command(config)


def with_nan(rank: int, config: TrainConfig, bad: set[int]) -> None:
    """Some updates (numbered from 1, skipped ones counted) get a NaN in one parameter's gradient, on rank 1 only."""
    attempts, backward = itertools.count(1), update.backward

    def broken(model: torch.nn.Module, *arguments: object) -> LossSums:
        sums = backward(model, *arguments)  # type: ignore[arg-type]
        if next(attempts) in bad:
            gradient = next(model.parameters()).grad
            assert gradient is not None
            gradient.view(-1)[0] = math.nan
        return sums

    if rank == 1:
        update.backward = broken  # type: ignore[assignment]
    train_rank(rank, config)


def stopped_in_validation(rank: int, config: TrainConfig) -> None:
    """Rank 1 is asked to stop while it validates."""

    def endless(*arguments: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(LIMIT)

    if rank == 1:
        trainer.validate = endless  # type: ignore[assignment]
    train_rank(rank, config)


def on_a_full_disk(rank: int, config: TrainConfig) -> None:
    """No checkpoint can be written."""
    write = Path.write_bytes

    def no_space(self: Path, data: bytes) -> int:
        if self.name == checkpoint.MODEL_FILE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, data)

    Path.write_bytes = no_space  # type: ignore[method-assign, assignment]
    train_rank(rank, config)


def launch(folder: Path, size: int, work: object, config: TrainConfig, *more: object) -> Launched:
    return Launched(folder / "stderr" / config.tag, size, work, config, *more)  # type: ignore[arg-type]


def test_nan_on_one_rank_is_skipped_by_all_and_too_many_stop_all(shared: Path) -> None:
    config = tiny_config(shared, "seq2seq", *ENDLESS, "training.max_bad_steps=3", "tag=broken_gradient")
    with launch(shared, 2, with_nan, config, {3, 6, 7, 8}) as launched:
        main, other = launched.ended()
    assert (main.status, other.status) == (2, 2)
    assert "update 3 skipped: gradient norm nan (1 in a row)" in main.stderr
    assert "error: training.max_bad_steps=3: so many updates in a row, after update 4" in main.stderr
    assert other.stderr.startswith("error: process 1: training.max_bad_steps=3: ")
    assert len(other.stderr.splitlines()) == 1
    lines = metrics(config.run_dir, "train")
    assert [(line["step"], line["skipped"]) for line in lines] == [(1, 0), (2, 0), (3, 1), (4, 0)]
    assert all(line["loss"] is not None for line in lines)


def test_sigterm_to_one_rank_saves_and_stops_all(shared: Path) -> None:
    config = tiny_config(shared, "seq2seq", *ENDLESS, "tag=sigterm")
    with launch(shared, 2, train_rank, config) as launched:
        launched.wait_for("update 5 ")
        launched.send(1, signal.SIGTERM)
        main, other = launched.ended()
    assert (main.status, other.status) == (143, 143), (main, other)
    assert "saved: the same command resumes this run" in main.stderr
    assert other.stderr == ""
    last = checkpoint.follow(config.run_dir / "checkpoints", "last")
    assert last is not None
    assert f"SIGTERM at update {checkpoint.step_of(last)}, saved" in main.stderr
    assert len(checkpoint.load_training(last)["generators"]) == 2


def test_sigterm_to_one_rank_breaks_a_validation_off(shared: Path) -> None:
    config = tiny_config(shared, "seq2seq", "tag=validating")
    with launch(shared, 2, stopped_in_validation, config) as launched:
        ended = launched.ended()
    assert [each.status for each in ended] == [143, 143], ended
    assert metrics(config.run_dir, "validation") == []
    assert "SIGTERM at update 6, saved" in ended[0].stderr


def test_killed_rank_ends_the_others(shared: Path) -> None:
    config = tiny_config(shared, "seq2seq", *ENDLESS, "tag=killed")
    with launch(shared, 3, train_rank, config) as launched:
        launched.wait_for("update 5 ")
        launched.send(1, signal.SIGKILL)
        ended = launched.ended()
    assert [each.status for each in ended] == [1, -signal.SIGKILL, 1]
    assert "error: " + LOST.format(0, 3) in ended[0].stderr
    assert "error: process 2: " + LOST.format(2, 3) in ended[2].stderr
    assert all("Traceback" not in each.stderr for each in ended)
    assert "stopped: " + LOST.format(0, 3) in (config.run_dir / "train.log").read_text()


def test_stopped_rank_ends_the_others_after_the_timeout(shared: Path) -> None:
    config = tiny_config(shared, "seq2seq", *ENDLESS, "training.timeout=8", "tag=sleeping")
    with launch(shared, 2, train_rank, config) as launched:
        launched.wait_for("update 5 ")
        launched.send(1, signal.SIGSTOP)
        [main] = launched.ended(0)
        launched.send(1, signal.SIGCONT)
        _, other = launched.ended()
    assert (main.status, other.status) == (1, 1)
    assert "error: " + LOST.format(0, 2) in main.stderr
    assert "training.timeout=8 seconds" in main.stderr
    assert "error: process 1: " + LOST.format(1, 2) in other.stderr
    assert "Traceback" not in main.stderr + other.stderr


def test_refusal_of_rank_0_ends_all_at_once(shared: Path) -> None:
    """The time-out is ten minutes, and waiting for it would be an error here."""
    config = tiny_config(shared, "seq2seq", "tag=locked")
    with lock(config.run_dir), launch(shared, 2, train_rank, config) as launched:
        main, other = launched.ended()
    assert (main.status, other.status) == (2, 1)
    assert f"another process (id {os.getpid()}) is training in this folder" in main.stderr
    assert LOST.format(1, 2) + "waiting for process 0 to open the run's folder" in other.stderr


def test_full_disk_of_rank_0_ends_all(shared: Path) -> None:
    config = tiny_config(shared, "seq2seq", "tag=full")
    with launch(shared, 2, on_a_full_disk, config) as launched:
        main, other = launched.ended()
    assert (main.status, other.status) == (1, 1)
    assert "checkpoint not written (No space left on device)" in main.stderr
    assert LOST.format(1, 2) + "waiting for the checkpoint to be written" in other.stderr


def test_processes_started_with_different_configurations_are_refused(shared: Path) -> None:
    config = tiny_config(shared, "seq2seq", "tag=different")
    with launch(shared, 2, another_batch_size, config) as launched:
        _, other = launched.ended()
    assert other.status == 2
    assert "training.batch_tokens (process 0: 160, here: 100)" in other.stderr


def another_batch_size(rank: int, config: TrainConfig) -> None:
    """Rank 1 is started with another configuration."""
    if rank == 1:
        config = dataclasses.replace(config, training=dataclasses.replace(config.training, batch_tokens=100))
    train_rank(rank, config)


def test_process_that_never_starts_ends_the_others_after_the_timeout(shared: Path) -> None:
    config = tiny_config(shared, "seq2seq", "training.timeout=2", "tag=lonely")
    folder = shared / "stderr" / config.tag
    with Launched(folder, 2, train_rank, config, missing=[1]) as launched:
        [main] = launched.ended()
    assert main.status == 1
    assert LOST.format(0, 2) + "waiting for 2 processes to start" in main.stderr
    assert "Traceback" not in main.stderr
    assert not config.run_dir.exists()
