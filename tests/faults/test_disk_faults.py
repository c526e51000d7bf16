"""A disk that is full: the old checkpoint intact, an error that names the file, and the same command goes on later."""

import dataclasses
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt import checkpoint
from nmt.config import TrainConfig
from nmt.training.trainer import train
from tests.faults.lives import Fault, Life
from tests.tiny_run import assert_same_end, limited, metrics, tiny_config

pytestmark = pytest.mark.usefixtures("quick_figures")

KILOBYTE = 1024


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def straight(shared: Path) -> TrainConfig:
    config = tiny_config(shared, "transformer", "tag=roomy", "training.log_every=1")
    train(config)
    return config


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def begun(straight: TrainConfig, runs: Path, tag: str) -> TrainConfig:
    """A run with one checkpoint, after update 6, and more to do."""
    config = dataclasses.replace(straight, tag=tag, runs=str(runs))
    train(limited(config, max_steps=6, average_last=0))
    return config


def assert_complains(life: Life, *texts: str) -> None:
    """Status 1, and after the log one line that says what to do."""
    assert life.status() == 1, life.said()
    last = life.said().rstrip("\n").split("\n")[-1]
    for text in ("error: ", *texts, "free some space and run the same command again"):
        assert text in last
    assert "Traceback" not in life.said()


def assert_checkpoint_of_update_6(config: TrainConfig) -> None:
    names = {path.name for path in (config.run_dir / "checkpoints").iterdir()}
    assert names == {"step_000006", "last", "best"}
    assert checkpoint.load(config.run_dir).step == 6


def test_file_system_full_while_saving(straight: TrainConfig, small_disk: Path) -> None:
    config = begun(straight, small_disk, "full")
    size = sum(path.stat().st_size for path in (config.run_dir / "checkpoints" / "step_000006").iterdir())
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (shutil.disk_usage(small_disk).free - int(0.9 * size)))
    assert_complains(Life(config), "No space left on device", "older checkpoints are intact", "step_000012")
    assert_checkpoint_of_update_6(config)
    ballast.unlink()
    assert Life(config).status() == 0
    assert_same_end(straight, config, 12)


def test_file_limit_met_while_saving(straight: TrainConfig) -> None:
    """The same without a file system of one's own; the limit is met half-way through a file."""
    config = begun(straight, Path(straight.runs), "limited")
    life = Life(config, Fault(largest_file=100 * KILOBYTE))
    assert_complains(life, "File too large", "older checkpoints are intact", "step_000012")
    assert_checkpoint_of_update_6(config)
    assert Life(config).status() == 0
    assert_same_end(straight, config, 12)


@pytest.mark.parametrize("name", ["metrics.jsonl", "train.log"])
def test_disk_full_in_the_logs(straight: TrainConfig, name: str) -> None:
    config = begun(straight, Path(straight.runs), f"log_{name}")
    with open(config.run_dir / name, "a", encoding="utf-8") as file:
        file.write(" " * 1000 * KILOBYTE + "\n")  # white space: neither an entry nor a line
    if name == "metrics.jsonl":  # blank lines are not kept: let the white space be the tail of an entry
        path = config.run_dir / name
        path.write_text(path.read_text().replace("\n", " " * 1000 * KILOBYTE + "\n", 1))
    size = 1000 * KILOBYTE + (2000 if name == "metrics.jsonl" else 3000)
    life = Life(limited(config, log_every=1), Fault(largest_file=size))
    assert_complains(life, "File too large", str(config.run_dir / name))
    assert_checkpoint_of_update_6(config)
    assert Life(config).status() == 0
    assert_same_end(straight, config, 12)


@pytest.mark.parametrize("records", [2, 20])
def test_disk_full_in_tensorboard(straight: TrainConfig, records: int) -> None:
    """It writes in a thread of its own: the error must arrive all the same, not be printed by a dying thread."""
    config = begun(straight, Path(straight.runs), f"board_{records}")
    life = Life(config, Fault(board_records=records))
    assert_complains(life, "No space left on device", "events.out.tfevents")
    assert Life(config).status() == 0
    assert metrics(config.run_dir) == metrics(straight.run_dir)
