"""Whole runs of every model, at a size where each takes a second."""

import dataclasses
import itertools
import json
import math
import sys
from pathlib import Path

import pytest
import torch
import yaml
from matplotlib.figure import Figure

from nmt import checkpoint
from nmt.config import ConfigError, TrainConfig, parse
from nmt.data.dataset import prepare
from nmt.data.loader import Loader
from nmt.training import trainer
from nmt.training.trainer import train
from tests.tiny_run import MODELS, limited, metrics, tiny_config


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpus, cache of prepared data and runs of this file."""
    return tmp_path_factory.mktemp("train")


@pytest.fixture(autouse=True)
def quick_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than training does here: one test looks at the real figures, the others get empty ones."""
    if "tensorboard" not in request.node.name:
        monkeypatch.setattr(trainer, "attention_figure", lambda *arguments: Figure(figsize=(1, 1)))


@pytest.mark.parametrize(("model", "accumulate"), list(zip(MODELS, (1, 2, 3), strict=True)))
def test_resumed_run_is_bit_for_bit_the_uninterrupted_one(shared: Path, model: str, accumulate: int) -> None:
    """40 updates straight, against 17 (mid-epoch, between validations and log lines), two more, and the rest."""
    options = (
        f"training.accumulate={accumulate}",
        "optim/schedule=plateau",
        "optim.schedule.warmup_steps=20",
        "optim.schedule.patience=1",
        "training.metric=loss",
        "training.max_steps=40",
        "training.validate_every=10",
        "training.keep_last=10",
    )
    straight = tiny_config(shared, model, f"tag=straight_{model}", *options)
    broken = tiny_config(shared, model, f"tag=broken_{model}", *options)
    train(straight)
    train(limited(broken, max_steps=17))
    train(limited(broken, max_steps=19))
    train(broken)

    for step in (20, 40):
        folders = [checkpoint.step_folder(config.run_dir / "checkpoints", step) for config in (straight, broken)]
        (one, _), (two, _) = (checkpoint.load_weights(folder) for folder in folders)
        assert one.keys() == two.keys()
        for name in one:
            assert torch.equal(one[name], two[name]), f"{name} after {step} updates"
    on_schedule = [[line for line in metrics(c.run_dir) if line["step"] not in (17, 19)] for c in (straight, broken)]
    assert on_schedule[0] == on_schedule[1]
    assert [line["step"] for line in metrics(straight.run_dir, "train")] == list(range(3, 40, 3))
    assert [line["step"] for line in metrics(straight.run_dir, "validation")] == [10, 20, 30, 40]


def test_two_runs_with_one_seed_give_the_same_metrics_and_another_seed_others(shared: Path) -> None:
    runs = [
        tiny_config(shared, "transformer", f"tag={tag}", f"seed={seed}") for tag, seed in (("x", 1), ("y", 1), ("x", 2))
    ]
    for config in runs:
        train(config)
    lines = [metrics(config.run_dir) for config in runs]
    assert lines[0] == lines[1]
    assert lines[0] != lines[2]


def test_accumulation_joins_batches_and_ends_a_pass_with_what_is_left(shared: Path) -> None:
    """Half the updates an epoch (a smaller last one included), and every pair of the epoch counts once."""
    config = tiny_config(shared, "transformer", "tag=accumulate", "training.accumulate=2", "training.max_epochs=1")
    train(limited(config, max_steps=None))
    split = prepare(config.data, lambda message: None).train
    batches = Loader(split, config.training.batch_tokens, None, config.seed, shuffle=True).batches_in_epoch(0)
    summary = json.loads((config.run_dir / "summary.json").read_text())
    assert summary["epochs"] == 1.0
    assert summary["steps"] == math.ceil(batches / 2) < batches
    assert summary["target_tokens"] == split.target_lengths.sum()


def test_a_run_leaves_what_it_promises(shared: Path) -> None:
    config = tiny_config(shared, "bahdanau", "tag=folder", "training.max_steps=14", "training.keep_last=2")
    train(config)
    run = config.run_dir
    assert parse(TrainConfig, yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))) == config
    assert (run / "tokenizer.model").stat().st_size > 0
    assert list(run.glob("events.out.tfevents.*"))
    assert "done: 14 updates" in (run / "train.log").read_text(encoding="utf-8")

    names = {path.name for path in (run / "checkpoints").iterdir()}
    assert names == {"step_000006", "step_000012", "step_000014", "average", "last", "best"}
    assert checkpoint.follow(run / "checkpoints", "last") == run / "checkpoints" / "step_000014"
    files = {path.name for path in (run / "checkpoints" / "step_000012").iterdir()}
    assert files == {"model.safetensors", "config.yaml", "tokenizer.model", "training.pt"}

    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert summary["steps"] == 14
    assert summary["stopped_by"] == "training.max_steps=14"
    assert summary["parameters"] == sum(p.numel() for p in checkpoint.load(run).model.parameters())
    for key in ("minutes", "target_tokens_per_second", "precision", "threads", "device", "versions", "fingerprint"):
        assert key in summary

    lines = metrics(run, "train", "validation")
    assert {line["event"] for line in lines} == {"train", "validation"}
    assert [line["step"] for line in metrics(run, "validation")] == [6, 12, 14]  # the last update is validated, too


def test_tensorboard_holds_curves_texts_and_attention_and_does_not_run_backwards(shared: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = tiny_config(shared, "bahdanau", "tag=board")
    train(limited(config, max_steps=8))
    train(config)
    board = EventAccumulator(str(config.run_dir))
    board.Reload()
    tags = board.Tags()
    wanted = {f"train/{name}" for name in ("loss", "perplexity", "learning_rate", "gradient_norm", "tokens_per_second")}
    wanted |= {f"validation/{name}" for name in ("loss", "perplexity", "bleu", "chrf")}
    assert wanted <= set(tags["scalars"])
    assert "validation/attention" in tags["images"]
    assert "validation/samples/text_summary" in tags["tensors"]
    for tag in wanted:
        steps = [event.step for event in board.Scalars(tag)]
        assert all(a < b for a, b in itertools.pairwise(steps)), f"{tag}: {steps}"


def test_finished_run_says_so_and_changes_nothing(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny_config(shared, "seq2seq", "tag=finished")
    train(config)
    before = {path: path.stat().st_mtime_ns for path in (config.run_dir / "checkpoints").rglob("*")}
    lines = metrics(config.run_dir)
    capsys.readouterr()
    train(config)
    assert "finished already at update 12 (training.max_steps=12)" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (config.run_dir / "checkpoints").rglob("*")} == before
    assert metrics(config.run_dir) == lines


def test_changed_key_is_refused_by_name_with_both_values(shared: Path) -> None:
    config = tiny_config(shared, "transformer", "tag=changed")
    train(config)
    other = dataclasses.replace(config, optim=dataclasses.replace(config.optim, label_smoothing=0.2))
    with pytest.raises(ConfigError, match=r"optim\.label_smoothing \(was 0\.1, now 0\.2\)"):
        train(other)
    train(limited(config, log_every=1, keep_last=3, max_steps=13))  # these may change


def test_changed_data_are_refused(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, "transformer", "tag=data")
    train(config)
    with (
        open(tmp_path / "train.de", "a", encoding="utf-8") as de,
        open(tmp_path / "train.en", "a", encoding="utf-8") as en,
    ):
        de.write("eins\n")
        en.write("one\n")
    with pytest.raises(ConfigError, match=r"data have changed.*train source \(.*train\.de, .*train\.en\)"):
        train(limited(config, max_steps=20))


def test_patience_stops_and_best_stays_at_the_best(shared: Path) -> None:
    """A learning rate of almost nothing: every BLEU is the same, and a tie is no improvement."""
    config = tiny_config(
        shared, "transformer", "tag=patience", "training.patience=2", "optim.optimizer.learning_rate=1e-12"
    )
    train(limited(config, max_steps=None))
    assert [line["step"] for line in metrics(config.run_dir, "validation")] == [6, 12, 18]
    summary = json.loads((config.run_dir / "summary.json").read_text())
    assert summary["stopped_by"].startswith("training.patience=2")
    assert checkpoint.follow(config.run_dir / "checkpoints", "best") == config.run_dir / "checkpoints" / "step_000006"


def test_progress_bar_shows_the_time_that_max_minutes_leaves(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny_config(shared, "seq2seq", "tag=bar", "training.max_minutes=30.4")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    train(config)
    assert "at most 30 min left" in capsys.readouterr().err


def test_minutes_stop_a_run_and_the_last_update_is_saved(shared: Path) -> None:
    config = tiny_config(
        shared, "seq2seq", "tag=minutes", "training.max_minutes=0.01", "training.validate_every=100000"
    )
    train(limited(config, max_steps=None))
    summary = json.loads((config.run_dir / "summary.json").read_text())
    assert summary["stopped_by"] == "training.max_minutes=0.01"
    last = checkpoint.follow(config.run_dir / "checkpoints", "last")
    assert last is not None
    assert checkpoint.step_of(last) == summary["steps"] > 0


def test_validation_subset_is_called_one(shared: Path) -> None:
    config = tiny_config(shared, "transformer", "tag=subset", "training.validation_sentences=5")
    train(config)
    [first, *_] = metrics(config.run_dir, "validation")
    assert first["subset"] is True
    assert first["sentences"] == 5
    assert "subset of 5 sentences" in (config.run_dir / "train.log").read_text(encoding="utf-8")


def test_average_is_the_mean_and_best_follows_it_if_it_is_better(shared: Path) -> None:
    config = tiny_config(shared, "transformer", "tag=average", "training.metric=loss")
    train(config)
    folder = config.run_dir / "checkpoints"
    (mean, _), (one, _), (two, _) = (
        checkpoint.load_weights(folder / n) for n in ("average", "step_000006", "step_000012")
    )
    for name in mean:
        torch.testing.assert_close(mean[name], (one[name] + two[name]) / 2)
    losses = {line["step"]: line["loss"] for line in metrics(config.run_dir, "validation")}
    [average] = metrics(config.run_dir, "average")
    expected = "average" if average["loss"] < min(losses.values()) else "step_000012"
    best = checkpoint.follow(folder, "best")
    assert best is not None
    assert best.name == expected


def test_a_small_task_is_learned(shared: Path) -> None:
    """The loop as a whole: numerals in reverse order, most of them right after a few seconds."""
    config = tiny_config(
        shared, "transformer", "tag=learn", "model.dim=32", "model.dropout=0.0", "model.attention_dropout=0.0",
        "optim.optimizer.learning_rate=0.01", "optim.label_smoothing=0.0", "training.batch_tokens=600",
        "training.max_steps=300", "training.validate_every=300", "training.log_every=50",
    )  # fmt: skip
    train(config)
    [result] = metrics(config.run_dir, "validation")
    assert result["perplexity"] < 2.0
    assert result["bleu"] > 30
