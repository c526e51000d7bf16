"""``nmt.benchmark`` as it is called, with models and times too small to mean anything."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nmt import benchmark as command
from nmt.data.dataset import prepare
from tests.tiny_run import MODELS, tiny_config

ROOT = Path(__file__).parent.parent.parent


def benchmark(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    words = [sys.executable, "-m", "nmt.benchmark", *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def test_train_measures_every_model_in_every_precision(tmp_path: Path) -> None:
    done = benchmark(
        "train",
        *("--models", "T", "benchmark_transformer"),
        *("--precision", "fp32", "bf16", "--rounds", "2", "--seconds", "0.01", "--warm-up", "1"),
        *("--vocabulary", "40", "--batch-tokens", "120", "--device", "cpu", "--threads", "1"),
        *("--json", str(tmp_path / "figures.json"), "--set", *MODELS["transformer"], "seed=3"),
    )
    assert done.returncode == 0, done.stderr
    tree = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert tree["machine"]["threads"] == 1
    measured = [(each["model"], each["precision"], len(each["rounds"])) for each in tree["train"]]
    names = ("T", "benchmark_transformer")
    assert measured == [(name, precision, 2) for name in names for precision in ("fp32", "bf16")]
    for each in tree["train"]:
        assert each["parameters"] == tree["train"][0]["parameters"]
        assert each["peak_bytes"] > 50e6
        assert all(seconds > 0 for seconds in each["stage_seconds"].values())
        for figures in each["rounds"]:
            assert figures["target_tokens"] / figures["seconds"] == pytest.approx(figures["tokens_per_second"])
            assert figures["operations"] / figures["seconds"] / figures["product_rate"] == pytest.approx(figures["mfu"])
    rows = [line for line in done.stdout.split("\n") if line.startswith(("| T ", "| benchmark_transformer "))]
    assert len(rows) == 8  # speed and stages of two models in two precisions
    order = [line.split(":")[1].split()[:2] for line in done.stderr.split("\n") if line.startswith("round ")]
    once = [[name, precision] for name in names for precision in ("fp32", "bf16")]
    assert order == once * 2  # they take turns


def test_memory_varies_one_thing_at_a_time(tmp_path: Path) -> None:
    done = benchmark(
        "memory",
        *("--batch-tokens", "60", "50", "--vocabulary", "40", "--longest", "10", "--device", "cpu"),
        *("--json", str(tmp_path / "figures.json"), "--set", *MODELS["transformer"]),
    )
    assert done.returncode == 0, done.stderr
    points = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["memory"]
    assert [(p["batch_tokens"], p["vocabulary"], p["longest"]) for p in points] == [(50, 40, 10), (60, 40, 10)]
    assert all(0 < p["at_rest"] < p["peak"] for p in points)
    assert sum(line.startswith("| ") for line in done.stdout.split("\n")) == 4


def test_real_data(tmp_path: Path) -> None:
    """A prepared folder is measured in its own vocabulary."""
    prepared = prepare(tiny_config(tmp_path).data, lambda message: None)
    done = benchmark(
        *("train", "--models", "T", "--rounds", "1", "--seconds", "0.01", "--warm-up", "1", "--no-memory"),
        *("--prepared", str(prepared.folder), "--batch-tokens", "160", "--device", "cpu"),
        *("--json", str(tmp_path / "figures.json"), "--set", *MODELS["transformer"]),
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["train"][0]
    per_token = figures["rounds"][0]["operations"] / figures["rounds"][0]["target_tokens"]
    assert 3 * 2 * 16 * 48 < per_token < 3 * 2 * 16 * 48 * 20  # the output layer alone, and all of so small a model
    assert figures["peak_bytes"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--models", "U"], "U: "),
        (["train", "--set", "model.nonsense=1"], "nonsense"),
        (["train", "--prepared", "x", "--vocabulary", "9"], "leave out one of --vocabulary, --prepared"),
        (["train", "--seconds", "0"], "--seconds: expected a number above 0"),
        (["train", "--rounds", "0"], "expected 1 or more, found 0"),
        (["train", "--json", "/nowhere/at/all.json"], "no folder /nowhere/at"),
        (["memory", "--batch-tokens", "50", "--longest", "60"], "60 tokens do not fit into a batch of 50"),
        ([], "python -m nmt.benchmark --help"),
    ],
)
def test_mistakes_are_named(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is an error that ``nmt.cli.run`` makes one line of, or one line by itself."""
    monkeypatch.setattr(sys, "argv", ["nmt.benchmark", *arguments])
    with pytest.raises((ValueError, SystemExit)) as stopped:
        command.main()
    if isinstance(stopped.value, SystemExit):
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
    else:
        error = str(stopped.value)
    assert message in error
