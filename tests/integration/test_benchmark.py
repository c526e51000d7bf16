"""``nmt.benchmark`` as it is called, with models and times too small to mean anything."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.analysis import benchmark_rounds
from nmt.analysis.scaling import Cost, Task
from nmt.analysis.training_memory import Peak, Point
from nmt.benchmark import __main__ as command
from nmt.benchmark import memory, scaling
from nmt.benchmark.options import VOCABULARY, config_of
from nmt.config import TrainConfig
from nmt.data.dataset import prepare
from nmt.models import build, parameter_count
from tests.tiny_run import MODELS, tiny_config

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """The command in this process, which keeps its number of threads."""

    def call(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["nmt.benchmark", *arguments])
        command.main()

    threads = torch.get_num_threads()
    yield call
    torch.set_num_threads(threads)


Benchmark = Callable[..., None]
PEAK = Peak(at_rest=10 << 20, peak=50 << 20, parameters=1000)


def test_train_measures_in_turns(
    benchmark: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[int, str]] = []

    def peak(config: TrainConfig, *others: Any) -> Peak:
        asked.append((config.training.batch_tokens, others[-1]))
        return PEAK

    monkeypatch.setattr(benchmark_rounds, "measure_peak", peak)
    benchmark(
        *("train", "--models", "T", "benchmark_transformer"),
        *("--precision", "fp32", "bf16", "--rounds", "2", "--seconds", "0.01", "--warm-up", "1"),
        *("--vocabulary", "40", "--batch-tokens", "120", "--device", "cpu", "--threads", "1"),
        *("--json", str(tmp_path / "figures.json"), "--set", *MODELS["transformer"], "--set", "seed=3"),
    )
    tree = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert tree["machine"]["threads"] == 1
    once = [(name, precision) for name in ("T", "benchmark_transformer") for precision in ("fp32", "bf16")]
    assert [(each["model"], each["precision"], len(each["rounds"])) for each in tree["train"]] == [
        (*key, 2) for key in once
    ]
    assert asked == [(120, precision) for _, precision in once]
    for each in tree["train"]:
        assert each["parameters"] == tree["train"][0]["parameters"]
        assert each["peak_bytes"] == PEAK.peak
        assert all(seconds > 0 for seconds in each["stage_seconds"].values())
        for figures in each["rounds"]:
            assert figures["target_tokens"] / figures["seconds"] == pytest.approx(figures["tokens_per_second"])
            assert figures["operations"] / figures["seconds"] / figures["product_rate"] == pytest.approx(figures["mfu"])
    printed = capsys.readouterr()
    rows = [line for line in printed.out.split("\n") if line.startswith(("| T ", "| benchmark_transformer "))]
    assert len(rows) == 8  # speed and stages of two models in two precisions
    order = [tuple(line.split(":")[1].split()[:2]) for line in printed.err.split("\n") if line.startswith("round ")]
    assert order == once * 2


def test_memory_varies_one_thing_at_a_time(
    benchmark: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Point] = []

    def peak(point: Point, *others: Any) -> Peak:
        asked.append(point)
        return PEAK

    monkeypatch.setattr(memory, "measure_point", peak)
    benchmark(
        *("memory", "--batch-tokens", "60", "50", "--vocabulary", "40", "80", "--longest", "10", "20"),
        *("--device", "cpu", "--json", str(tmp_path / "figures.json"), "--set", *MODELS["transformer"]),
    )
    assert asked == [(50, 40, 10), (60, 40, 10), (60, 80, 10), (60, 40, 20), (60, 80, 20)]
    points = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["memory"]
    assert [(p["batch_tokens"], p["vocabulary"], p["longest"]) for p in points] == asked
    assert points[0]["peak"] == PEAK.peak
    assert sum(line.startswith("| ") for line in capsys.readouterr().out.split("\n")) == 7


def test_real_data_from_the_command_line(tmp_path: Path) -> None:
    """A prepared folder is measured in its own vocabulary."""
    prepared = prepare(tiny_config(tmp_path).data, lambda message: None)
    words = [
        *(sys.executable, "-m", "nmt.benchmark"),
        *("train", "--models", "T", "--rounds", "1", "--seconds", "0.01", "--warm-up", "1", "--no-memory"),
        *("--prepared", str(prepared.folder), "--batch-tokens", "160", "--device", "cpu"),
        *("--json", str(tmp_path / "figures.json"), "--set", *MODELS["transformer"]),
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| T " in done.stdout
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
        (["train", "--rounds", "some"], "--rounds: expected 1 or more, found some"),
        (["train", "--set", "training.precision=fp32"], "--set training.precision: give --precision instead"),
        (["memory", "--set", "seed=1", "training.batch_tokens=50"], "training.batch_tokens: give --batch-tokens"),
        (["train", "--json", "/nowhere/at/all.json"], "no folder /nowhere/at"),
        (["memory", "--batch-tokens", "50", "--longest", "60"], "60 tokens do not fit into a batch of 50"),
        ([], "python -m nmt.benchmark --help"),
    ],
)
def test_mistakes_are_named(
    arguments: list[str], message: str, benchmark: Benchmark, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is an error that ``nmt.cli.run`` makes one line of, or one line by itself."""
    with pytest.raises((ValueError, SystemExit)) as stopped:
        benchmark(*arguments)
    if isinstance(stopped.value, SystemExit):
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
    else:
        error = str(stopped.value)
    assert message in error


def test_scaling_measures_every_work_at_every_length(
    benchmark: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str, int]] = []

    def measured(task: Task) -> Cost:
        asked.append((task.config.model.name, task.work, task.length))
        if task.length == 32:
            raise ValueError("the process was killed: not enough memory, perhaps")
        return Cost(0.5 * task.length, task.length << 20)

    monkeypatch.setattr(Task, "measure", measured)
    benchmark(
        *("scaling", "--lengths", "16", "8", "32", "--fit-from", "8", "--vocabulary", "40", "--device", "cpu"),
        *("--json", str(tmp_path / "figures.json"), "--figure", str(tmp_path / "curves.png")),
    )
    works = {"transformer": ("train", "encode", "step", "step, no cache")}
    works |= dict.fromkeys(("bahdanau", "seq2seq"), ("train", "encode", "step"))
    assert asked == [(name, work, n) for name, each in works.items() for work in each for n in (8, 16, 32)]
    tree = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert tree["scaling"][0]["costs"] == {
        "8": {"seconds": 4.0, "peak_bytes": 8 << 20},
        "16": {"seconds": 8.0, "peak_bytes": 16 << 20},
        "32": None,
    }
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr()
    assert "not enough memory" in printed.err
    assert "| train " in printed.out


def test_scaling_compares_models_of_equal_size() -> None:
    counts = []
    for name in scaling.MODELS.values():
        config = config_of(name, [], {}, None)
        counts.append(parameter_count(build(config.model, VOCABULARY, VOCABULARY, seed=1)))
    assert max(counts) / min(counts) < 1.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lengths", "1"), "expected 2 or more"),
        (("--figure", "curves.txt"), "ends in .png"),
        (("--set", "training.batch_tokens=3"), "--sentences"),
    ],
)
def test_scaling_refuses_what_cannot_be(benchmark: Benchmark, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        benchmark("scaling", *arguments)


def test_paths_of_all_architectures(benchmark: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "paths.json"
    small = ("model.dropout=0.0", "optim.clip_norm=1.0")
    benchmark("paths", "--source-words", "2", "--target-words", "2", "--json", str(path), "--set", *small)
    paths = json.loads(path.read_text(encoding="utf-8"))["paths"]
    assert paths["seq2seq"]["from_source"] == [[3, 2], [4, 3]]
    assert paths["seq2seq, source reversed"]["from_source"] == [[2, 3], [3, 4]]
    assert paths["bahdanau"]["from_source"] == paths["transformer"]["from_source"] == [[1, 1], [1, 1]]
    assert paths["transformer"]["depth"]["of_short"] == paths["transformer"]["depth"]["of_long"]
    assert "| transformer " in capsys.readouterr().out
