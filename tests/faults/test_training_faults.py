"""What can go wrong in the middle of a run: signals, kills, damaged files, full disks, broken gradients."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from nmt import checkpoint
from nmt.checkpoint import CheckpointError
from nmt.config import TrainConfig
from nmt.training import trainer, update
from nmt.training.trainer import TrainingError, train
from tests.tiny_run import limited, metrics, tiny_config, tiny_overrides

pytestmark = pytest.mark.usefixtures("quick_figures")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


def weights(config: TrainConfig, step: int) -> dict[str, torch.Tensor]:
    return checkpoint.load_weights(checkpoint.step_folder(config.run_dir / "checkpoints", step))[0]


def assert_same_run(one: TrainConfig, two: TrainConfig, step: int) -> None:
    first, second = weights(one, step), weights(two, step)
    for name in first:
        assert torch.equal(first[name], second[name]), name


def command(*overrides: str) -> list[str]:
    return [sys.executable, "-m", "nmt.train", *overrides]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signal_saves_and_the_same_command_goes_on(shared: Path, number: int, status: int) -> None:
    """Stopped anywhere (here: some updates in), resumed: the run is the one that was never stopped."""
    straight = tiny_config(shared, "seq2seq", "tag=straight", "training.max_steps=60", "training.validate_every=20")
    if not straight.run_dir.exists():
        train(straight)
    tag = f"stopped{status}"
    overrides = [
        *tiny_overrides(shared, "seq2seq"),
        f"tag={tag}",
        "training.max_steps=100000",
        "training.validate_every=20",
        "training.log_every=1",
    ]
    process = subprocess.Popen(command(*overrides), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("update 23 "):
            process.send_signal(number)
            break
    rest = process.stderr.read()
    assert process.wait(60) == status, rest
    assert "saved: the same command resumes this run" in rest
    assert "Traceback" not in rest

    stopped = dataclasses.replace(straight, tag=tag)
    last = checkpoint.follow(stopped.run_dir / "checkpoints", "last")
    assert last is not None
    step = checkpoint.step_of(last)
    assert step >= 23
    if step < 60:
        train(limited(stopped, max_steps=60))
        assert_same_run(straight, stopped, 60)


def test_signal_in_a_validation_is_obeyed_at_once_and_the_validation_made_up(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nmt.training.signals import Interrupted

    straight = tiny_config(shared, "transformer", "tag=unbroken")
    broken = dataclasses.replace(straight, tag="broken_off")
    train(straight)

    def endless(*arguments: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "validate", endless)
        started = time.monotonic()
        with pytest.raises(Interrupted):
            train(broken)
        assert time.monotonic() - started < 30
    assert metrics(broken.run_dir, "validation") == []
    train(broken)
    assert metrics(broken.run_dir) == metrics(straight.run_dir)
    assert_same_run(straight, broken, 12)


def test_kill_loses_only_what_came_after_the_checkpoint(shared: Path) -> None:
    straight = tiny_config(shared, "transformer", "tag=whole", "training.max_steps=30", "training.validate_every=10")
    killed = dataclasses.replace(straight, tag="killed")
    train(straight)
    overrides = [
        *tiny_overrides(shared),
        "tag=killed",
        "training.max_steps=100000",
        "training.validate_every=10",
        "training.log_every=1",
    ]
    process = subprocess.Popen(command(*overrides), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("update 13 "):
            process.kill()
            break
    process.communicate()
    (killed.run_dir / "checkpoints" / ".writing_step_000020").mkdir(exist_ok=True)  # as if killed while writing
    train(limited(killed, max_steps=30, log_every=3))
    assert_same_run(straight, killed, 30)
    steps = [line["step"] for line in metrics(killed.run_dir, "train")]
    assert steps == sorted(set(steps)), "no update is logged twice"
    assert metrics(killed.run_dir, "validation", "average") == metrics(straight.run_dir, "validation", "average")
    assert not list((killed.run_dir / "checkpoints").glob(".*"))


@pytest.mark.parametrize("name", ["model.safetensors", "training.pt"])
@pytest.mark.parametrize("keep", [0, 50])
def test_broken_newest_checkpoint_falls_back_aloud(
    shared: Path, capsys: pytest.CaptureFixture[str], name: str, keep: int
) -> None:
    straight = tiny_config(shared, "transformer", "tag=unhurt", "training.max_steps=18")
    if not straight.run_dir.exists():
        train(straight)
    hurt = dataclasses.replace(straight, tag=f"hurt_{name}_{keep}")
    train(limited(hurt, max_steps=12))
    damaged = hurt.run_dir / "checkpoints" / "step_000012" / name
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size * keep // 100])
    capsys.readouterr()
    train(hurt)
    said = capsys.readouterr().err
    assert f"warning: {damaged}: missing or damaged" in said
    assert "after update 6" in said
    assert_same_run(straight, hurt, 18)
    assert [line["step"] for line in metrics(hurt.run_dir, "validation")] == [6, 12, 18]


def test_only_broken_checkpoints_are_an_error_not_a_new_start(shared: Path) -> None:
    config = tiny_config(shared, "transformer", "tag=all_broken", "training.max_steps=6")
    train(config)
    (config.run_dir / "checkpoints" / "step_000006" / "model.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="none of its 1 checkpoints can be read"):
        train(limited(config, max_steps=12))


class Breaker:
    """Stands for ``clip_gradient``: says NaN for the updates whose number (attempts, from 1) is in ``bad``."""

    def __init__(self, *bad: int) -> None:
        self.bad = bad
        self.attempts = 0
        self.clip = update.clip_gradient

    def __call__(self, model: torch.nn.Module, clip_norm: float | None) -> float:
        self.attempts += 1
        norm = self.clip(model, clip_norm)
        return float("nan") if self.attempts in self.bad else norm


def test_skipped_update_does_not_advance_the_schedule(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tiny_config(shared, "transformer", "tag=plain", "training.log_every=1")
    skipping = dataclasses.replace(plain, tag="skipping")
    train(plain)
    monkeypatch.setattr(update, "clip_gradient", Breaker(2, 3, 5))
    train(skipping)
    rates = [[line["learning_rate"] for line in metrics(c.run_dir, "train")] for c in (plain, skipping)]
    assert rates[0] == rates[1]
    assert [line["skipped"] for line in metrics(skipping.run_dir, "train")][:4] == [0, 2, 1, 0]
    for line in metrics(skipping.run_dir, "train"):
        assert line["loss"] is not None
    assert "update 2 skipped: gradient norm nan (2 in a row)" in (skipping.run_dir / "train.log").read_text()


def test_too_many_bad_updates_in_a_row_stop_with_the_last_good_checkpoint_intact(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config(shared, "transformer", "tag=diverged", "training.max_bad_steps=4")
    monkeypatch.setattr(update, "clip_gradient", Breaker(2, 3, 4, *range(10, 100)))
    with pytest.raises(TrainingError, match=r"training\.max_bad_steps=4.*step_000006"):
        train(config)
    assert checkpoint.load(config.run_dir).step == 6
    assert "stopped: training.max_bad_steps=4" in (config.run_dir / "train.log").read_text()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["training.max_stepz=3"], "max_stepz"),
        (["data=nowhere"], "nowhere"),
        (["model=gpt"], "gpt"),
        (["training.max_steps=many"], "training.max_steps"),
        (["training.metric=rouge"], "training.metric"),
        (["optim.optimizer.learning_rate=-1"], "optim.optimizer.learning_rate"),
        (["data=files"], "data.source"),
        (["training.batch_tokens="], "training.batch_tokens"),
        (["tag=a/b"], "tag: names a folder"),
        (["=="], "=="),
        (["data.train=Köln/train"], "key='Köln'"),
    ],
)
def test_mistake_at_the_command_line_is_one_line_and_status_2(
    tmp_path: Path, overrides: list[str], message: str
) -> None:
    done = subprocess.run(command(f"runs={tmp_path}", *overrides), capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []
