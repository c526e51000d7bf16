"""Foreign, empty and cut files in a run's folder: gone on from what is whole, aloud, or a clear error."""

import dataclasses
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import checkpoint
from nmt.config import TrainConfig
from nmt.data.corpus import DataError
from nmt.training.trainer import train
from tests.faults.lives import Fault, Life
from tests.tiny_run import assert_equal, assert_same_end, limited, metrics, saved, tiny_config

pytestmark = pytest.mark.usefixtures("quick_figures")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("folder")


@pytest.fixture(scope="module")
def straight(shared: Path) -> TrainConfig:
    """A run of 18 updates."""
    config = tiny_config(shared, "transformer", "tag=straight", "training.max_steps=18")
    train(config)
    return config


@pytest.fixture(scope="module")
def begun(shared: Path, straight: TrainConfig) -> TrainConfig:
    """The same up to update 12, with checkpoints after 6 and 12. Not to be changed."""
    config = dataclasses.replace(straight, tag="begun")
    train(limited(config, max_steps=12, average_last=0))
    return config


@pytest.fixture(scope="module")
def other(shared: Path, straight: TrainConfig) -> TrainConfig:
    """Another run on the same data: another seed, otherwise the same."""
    config = dataclasses.replace(straight, tag="other", seed=2)
    train(limited(config, max_steps=12, average_last=0))
    return config


def copy_of(config: TrainConfig, tag: str) -> TrainConfig:
    copy = dataclasses.replace(config, tag=tag)
    shutil.rmtree(copy.run_dir, ignore_errors=True)
    shutil.copytree(config.run_dir, copy.run_dir, symlinks=True)
    return copy


Harm = Callable[[Path, Path], object]
"""Takes the folder to harm and that of the other run."""

NEWEST = "checkpoints/step_000012"


def exchange(name: str) -> Harm:
    return lambda run, other: shutil.copy(other / name, run / name)


def empty(name: str) -> Harm:
    return lambda run, other: (run / name).write_bytes(b"")


def garbage(name: str) -> Harm:
    return lambda run, other: (run / name).write_bytes(bytes(range(256)) * 9)


def relink(name: str, target: str) -> Harm:
    def harm(run: Path, other: Path) -> None:
        (run / "checkpoints" / name).unlink()
        (run / "checkpoints" / name).symlink_to(target)

    return harm


def replace_by_text(name: str, data: bytes) -> Harm:
    def harm(run: Path, other: Path) -> None:
        (run / "checkpoints" / name).unlink()
        (run / "checkpoints" / name).write_bytes(data)

    return harm


def cut_metrics(run: Path, other: Path) -> None:
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"event": "train", "st')


def leftovers(run: Path, other: Path) -> None:
    for name in (".writing_step_000018", ".deleting_step_000003", ".writing_old_step_000012"):
        shutil.copytree(run / NEWEST, run / "checkpoints" / name)
    (run / "checkpoints" / ".writing_last").symlink_to("step_000003")
    (run / "config.yaml.tmp").write_text("se")
    (run / "metrics.tmp").write_text("{")


def make_stray_file(run: Path, other: Path) -> None:
    (run / "checkpoints" / "step_000018").write_text("stray")
    (run / "checkpoints" / "step_000009").write_text("stray")
    (run / "checkpoints" / "step_²").mkdir()


FALL_BACK = [
    (exchange(f"{NEWEST}/model.safetensors"), "training.pt and model.safetensors are not of one checkpoint"),
    (exchange(f"{NEWEST}/training.pt"), "training.pt and model.safetensors are not of one checkpoint"),
    (empty(f"{NEWEST}/config.yaml"), "config.yaml: missing or damaged (holds no keys)"),
    (garbage(f"{NEWEST}/config.yaml"), "config.yaml: missing or damaged"),
    (empty(f"{NEWEST}/tokenizer.model"), "tokenizer: missing or damaged"),
    (lambda run, other: (run / NEWEST / "tokenizer.model").unlink(), "tokenizer: missing or damaged"),
    (garbage(f"{NEWEST}/model.safetensors"), "model.safetensors: missing or damaged"),
    (garbage(f"{NEWEST}/training.pt"), "training.pt: missing or damaged"),
    (lambda run, other: (run / "checkpoints/step_000017").mkdir(), "config.yaml: missing or damaged"),
]


@pytest.mark.parametrize("number", range(len(FALL_BACK)))
def test_damaged_newest_checkpoint_is_passed_over_aloud(
    straight: TrainConfig, begun: TrainConfig, other: TrainConfig, number: int
) -> None:
    harm, message = FALL_BACK[number]
    config = copy_of(begun, "fall_back")
    harm(config.run_dir, other.run_dir)
    life = Life(config)
    assert life.status() == 0, life.said()
    assert f"{message}" in life.said()
    assert "; falling back to the checkpoint before it" in life.said()
    assert_same_end(straight, config, 18)


MENDED = [
    (relink("last", "nowhere"), ""),
    (relink("best", "../../.."), ""),
    (replace_by_text("last", b"\xff\x00garbage\n" * 100), ""),
    (replace_by_text("best", b""), ""),
    (make_stray_file, ""),
    (leftovers, ""),
    (cut_metrics, ""),
    (garbage("tokenizer.model"), ""),
    (empty("config.yaml"), "config.yaml: missing or damaged (holds no keys); written anew"),
    (lambda run, other: (run / "config.yaml").unlink(), "config.yaml: missing or damaged"),
    (exchange("config.yaml"), "config.yaml: not that of its checkpoints: seed (1 there, 2 here); written anew"),
]


@pytest.mark.parametrize("number", range(len(MENDED)))
def test_what_a_checkpoint_does_not_need_is_mended(
    straight: TrainConfig, begun: TrainConfig, other: TrainConfig, number: int
) -> None:
    harm, message = MENDED[number]
    config = copy_of(begun, "mended")
    harm(config.run_dir, other.run_dir)
    life = Life(config)
    assert life.status() == 0, life.said()
    assert message in life.said()
    assert_same_end(straight, config, 18)
    assert checkpoint.load(config.run_dir).tokenizers.digest == checkpoint.load(straight.run_dir).tokenizers.digest
    for name in ("config.yaml", "tokenizer.model"):
        assert (config.run_dir / name).read_text(errors="replace") == (
            (straight.run_dir / name).read_text(errors="replace").replace("tag: straight", "tag: mended")
        )
    assert not list((config.run_dir / "checkpoints").glob(".*"))


def test_unreadable_metrics_are_begun_anew(begun: TrainConfig, other: TrainConfig) -> None:
    config = copy_of(begun, "metrics")
    garbage("metrics.jsonl")(config.run_dir, other.run_dir)
    assert Life(config).status() == 0
    assert [line["step"] for line in metrics(config.run_dir, "train")] == [15, 18]


def links_followed(run: Path, other: Path) -> None:
    (run / "checkpoints" / "last").unlink()
    shutil.copytree(run / NEWEST, run / "checkpoints" / "last")


def all_foreign(run: Path, other: Path) -> None:
    shutil.rmtree(run / NEWEST)
    shutil.copytree(other / NEWEST, run / NEWEST)


def no_folder(run: Path, other: Path) -> None:
    shutil.rmtree(run)
    run.write_text("a file")


REFUSED = [
    (all_foreign, "seed (was 2, now 1)"),
    (links_followed, "last: a folder where a link should be"),
    (no_folder, "refused_s1"),
    (lambda run, other: [empty(f"checkpoints/step_0000{n}/model.safetensors")(run, other) for n in ("06", "12")],
     "none of its 2 checkpoints can be read"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_cannot_be_gone_on_from_is_refused_in_one_line(
    begun: TrainConfig, other: TrainConfig, number: int
) -> None:
    harm, message = REFUSED[number]
    config = copy_of(begun, "refused")
    harm(config.run_dir, other.run_dir)
    life = Life(config)
    assert life.status() == 2, life.said()
    assert "Traceback" not in life.said()
    last = life.said().rstrip("\n").split("\n")[-1]
    assert last.startswith("error: ")
    assert message in last
    if config.run_dir.is_file():
        config.run_dir.unlink()


# --- data, numbers, another process -----------------------------------------------------------------------------------


def test_text_changed_between_start_and_resume_is_named(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, "seq2seq", "tag=data", "training.max_steps=6")
    train(config)
    path = tmp_path / "dev.en"
    path.write_text(path.read_text().replace("one", "two"))
    life = Life(limited(config, max_steps=12))
    assert life.status() == 2
    assert "the data have changed since this run began: validation target (" in life.said()
    assert f"{path})" in life.said()
    assert saved(config, 6)["state"]["step"] == 6


def test_data_error_leaves_no_folder_behind(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, "seq2seq", "tag=no_data", "training.max_steps=1")
    text = (tmp_path / "train.en").read_text()
    (tmp_path / "train.en").unlink()
    with pytest.raises(DataError, match="no such file"):
        train(config)
    assert not config.run_dir.exists()
    (tmp_path / "train.en").write_text(text)
    train(config)
    (tmp_path / "train.en").unlink()
    with pytest.raises(DataError, match="no such file"):
        train(limited(config, max_steps=2))
    assert (config.run_dir / "checkpoints").exists(), "but never what a run has made"


def test_batch_with_nan_is_skipped_and_counted_also_across_a_kill(straight: TrainConfig) -> None:
    options = {"batch_tokens": 650, "max_steps": 24, "log_every": 1, "validation_sentences": 2}  # 6 batches an epoch
    whole = limited(dataclasses.replace(straight, tag="nan_whole"), **options)
    killed = dataclasses.replace(whole, tag="nan_killed")
    fault = Fault(poisoned=frozenset({5}))
    assert Life(whole, fault).status() == 0
    life = Life(killed, dataclasses.replace(fault, slow=0.01))
    life.wait_for("update 16 ")
    life.process.kill()
    assert life.status() == -signal.SIGKILL
    assert Life(killed, fault).status() == 0
    assert_same_end(whole, killed, 24)
    lines = metrics(whole.run_dir, "train")
    epochs = lines[-1]["epoch"]
    assert 1 < int(epochs) <= sum(line["skipped"] for line in lines) <= int(epochs) + 1
    assert all(line["loss"] is not None for line in lines)


def test_nan_in_every_batch_stops_with_the_last_good_checkpoint_intact(
    straight: TrainConfig, begun: TrainConfig
) -> None:
    config = copy_of(begun, "nan_all")
    life = Life(limited(config, max_bad_steps=4), Fault(poisoned=frozenset(range(240))))
    assert life.status() == 2
    assert "error: training.max_bad_steps=4" in life.said()
    assert "Traceback" not in life.said()
    assert_equal(saved(begun, 12), saved(config, 12))
    assert Life(config).status() == 0
    assert_same_end(straight, config, 18)


def test_second_process_on_one_folder_is_refused(straight: TrainConfig) -> None:
    config = dataclasses.replace(straight, tag="two")
    first = Life(limited(config, max_steps=100_000), Fault(slow=0.05))
    first.wait_for("update 3 ")
    second = Life(limited(config, max_steps=100_000))
    assert second.status() == 2
    assert f"another process (id {first.process.pid}) is training in this folder" in second.said()
    first.process.kill()
    assert first.status() == -signal.SIGKILL
    train(limited(config, max_steps=6))
