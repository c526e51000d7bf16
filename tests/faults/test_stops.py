"""A run that is stopped or killed, anywhere, ends bit for bit as the one that never was."""

import dataclasses
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt import checkpoint
from nmt.config import TrainConfig
from nmt.data.dataset import prepare
from nmt.data.loader import Loader
from nmt.training import trainer
from nmt.training.keeper import Keeper
from nmt.training.logging import RunLog
from nmt.training.signals import Interrupted
from nmt.training.trainer import train
from nmt.training.update import Updater
from tests.faults.lives import Life
from tests.tiny_run import assert_same_end, limited, metrics, saved, tiny_config

pytestmark = pytest.mark.usefixtures("quick_figures")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stops")


def newest(config: TrainConfig) -> int:
    folders = checkpoint.step_folders(config.run_dir / "checkpoints")
    return checkpoint.step_of(folders[-1]) if folders else 0


@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_sigkill_at_random_moments(shared: Path, kills: int) -> None:
    """It saves after every second update, and is killed at a random, seeded moment after a random, seeded save."""
    straight = tiny_config(
        shared, "transformer", f"tag=never_killed_{kills}", "training.validate_every=2", "training.log_every=1",
        "training.keep_last=2", "training.validation_sentences=2", "search.max_length_a=0.5",
    )  # fmt: skip
    killed = dataclasses.replace(straight, tag=f"killed_{kills}")
    prepare(killed.data, lambda line: None)
    moments = random.Random(2014)
    reached = [0]
    for _ in range(kills):
        life = Life(limited(killed, max_steps=100_000))
        saves = moments.choice([0, 1, 1, 2])
        life.wait_until(lambda wanted=reached[-1] + 2 * saves: newest(killed) >= wanted)  # type: ignore[misc]
        assert life.kill_after(moments.uniform(0.0, 0.1)) == -signal.SIGKILL, life.said()
        assert "warning" not in life.said(), "every checkpoint under a final name is whole"
        reached.append(newest(killed))
    assert reached == sorted(reached), "nothing that was saved is lost"
    end = reached[-1] + 3
    for config in (killed, straight):
        life = Life(limited(config, max_steps=end))
        assert life.status() == 0, life.said()
    assert_same_end(straight, killed, end)
    assert not list((killed.run_dir / "checkpoints").glob(".*"))


# --- every point at which a run can stop ------------------------------------------------------------------------------

EPOCH = 6  # batches
Hook = tuple[Any, str, int]
UPDATE, SAVE, VALIDATE = (Updater, "update"), (Keeper, "save"), (trainer, "validate")

POINTS: dict[str, tuple[list[Hook], Callable[[dict[str, Any]], bool]]] = {
    "mid-epoch": ([(*UPDATE, 3)], lambda state: state["batch"] == 3),
    "at the end of an epoch": ([(*UPDATE, EPOCH)], lambda state: (state["epoch"], state["batch"]) == (1, 0)),
    "right before a validation": ([(*UPDATE, 4)], lambda state: (state["step"], state["validated"]) == (4, 0)),
    "right after a validation": ([(*SAVE, 1)], lambda state: (state["step"], state["validated"]) == (4, 4)),
    "inside warm-up": ([(*UPDATE, 2)], lambda state: state["step"] == 2),
    "right after a plateau cut": ([(*SAVE, 2)], lambda state: (state["step"], state["plateau_cuts"]) == (8, 1)),
    "twice in a row": ([(*UPDATE, 7), (RunLog, "start_bar", 1)], lambda state: state["step"] == 7),
    "in the last validation": ([(*VALIDATE, 5)], lambda state: (state["step"], state["scored"]) == (20, 16)),
    "in the final average": ([(*VALIDATE, 6)], lambda state: (state["step"], state["scored"]) == (20, 20)),
    "after every update": ([(*UPDATE, 1)] * 20, lambda state: state["step"] == 20),
}


def every_kind(shared: Path, tag: str) -> TrainConfig:
    """Short epochs, warm-up, cuts (BLEU stays 0, and a tie is no improvement), validations, an average at the end."""
    return tiny_config(
        shared, "seq2seq", f"tag={tag}", "training.batch_tokens=650", "training.validate_every=4",
        "training.max_steps=20", "training.keep_last=9", "training.average_last=3", "optim/schedule=plateau",
        "optim.schedule.patience=1", "optim.schedule.warmup_steps=3", "optim.optimizer.learning_rate=1e-5",
    )  # fmt: skip


@pytest.fixture(scope="module")
def straight(shared: Path) -> TrainConfig:
    config = every_kind(shared, "straight")
    train(config)
    split = prepare(config.data, lambda line: None).train
    assert Loader(split, 650, None, config.seed, shuffle=True).batches_in_epoch(0) == EPOCH
    return config


@pytest.mark.parametrize("point", list(POINTS))
def test_resumed_from_any_point_it_is_the_uninterrupted_run(
    shared: Path, straight: TrainConfig, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    config = every_kind(shared, point.replace(" ", "_"))
    hooks, arrived = POINTS[point]
    for owner, name, calls in hooks:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, terminating(getattr(owner, name), calls))
            with pytest.raises(Interrupted):
                train(config)
    assert arrived(saved(config, newest(config))["state"])
    train(config)
    assert_same_end(straight, config, 20)


def terminating(function: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """The function, with a SIGTERM at the end of its n-th call."""
    left = calls

    def wrapped(*arguments: Any) -> Any:
        nonlocal left
        result = function(*arguments)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        return result

    return wrapped


class Killed(BaseException):
    """The end of a process, as far as nothing after it runs."""


@pytest.mark.parametrize(
    ("owner", "name"), [(trainer, "write_summary"), (Keeper, "save_average"), (checkpoint, "link"), (Keeper, "_prune")]
)
def test_killed_in_the_last_steps_it_does_them_again(
    shared: Path, straight: TrainConfig, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    """Between the average and the summary, say: nothing is recorded twice."""
    config = every_kind(shared, f"end_{name}")
    train(limited(config, max_steps=16, average_last=0))

    def die(*arguments: object, **named: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, die)
        with pytest.raises(Killed):
            train(config)
    train(config)
    assert_same_end(straight, config, 20)
    assert (config.run_dir / "summary.json").exists()
    assert [line["event"] for line in metrics(config.run_dir)].count("average") == 1


def test_stopped_before_there_is_anything_to_save(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = every_kind(shared, "at_once")
    with monkeypatch.context() as patch:
        patch.setattr(RunLog, "start_bar", terminating(RunLog.start_bar, 1))
        with pytest.raises(Interrupted):
            train(config)
    assert "SIGTERM at update 0, nothing to save yet" in capsys.readouterr().err
    assert newest(config) == 0
