"""The training benchmark in two processes that share every update."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nmt.analysis import training_speed
from nmt.analysis.synthetic import corpus_lengths, write_pairs
from nmt.analysis.training_speed import Tally, TrainingBench
from nmt.data.store import PairDataset
from nmt.training.distributed import ALONE, Processes, connect
from tests.processes import Launched
from tests.tiny_run import MODELS, compose_config, tiny_overrides

VOCABULARY = 40
UPDATES = 3


def measured(folder: Path, processes: Processes) -> Tally:
    """Three updates of two batches and what is counted of them; the clock goes one second at a look."""
    dataset = PairDataset(folder, "train", (VOCABULARY, VOCABULARY))
    config = compose_config(
        *tiny_overrides(folder, "transformer"), "training.batch_tokens=100", "training.accumulate=3"
    )
    bench = TrainingBench(config, dataset, (VOCABULARY, VOCABULARY), processes.device("cpu"), "fp32", processes)
    clock = iter(range(1000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench.probe, "rate", lambda: 1e6 * (1 + processes.rank))
        patch.setattr(training_speed.time, "perf_counter", lambda: float(next(clock)))
        done = bench.measure(seconds=UPDATES, warm_up=0)
    assert done.product_rate == pytest.approx(1e6 if processes.size == 1 else 3e6)
    assert all(seconds > 0 for seconds in bench.breakdown(1).values())
    return done.tally


def _measure(rank: int, folder: Path) -> None:
    with connect("cpu", timeout=60) as processes:
        tally = measured(folder, processes)
    (folder / f"tally{rank}.json").write_text(json.dumps(tally), encoding="utf-8")


def test_two_processes_count_what_one_does(tmp_path: Path) -> None:
    write_pairs(tmp_path, corpus_lengths(100, seed=1), VOCABULARY, seed=1)
    alone = measured(tmp_path, ALONE)
    with Launched(tmp_path / "processes", 2, _measure, tmp_path) as launched:
        for ended in launched.ended():
            assert ended.status == 0, ended.stderr
    for rank in range(2):
        together = Tally(*json.loads((tmp_path / f"tally{rank}.json").read_text(encoding="utf-8")))
        slots = {"source_slots": 0, "target_slots": 0}  # a batch cut by rows may need less padding
        assert together._replace(**slots) == alone._replace(**slots)
        assert together.source_slots <= alone.source_slots
        assert together.target_slots <= alone.target_slots


def _command(rank: int, arguments: list[str]) -> None:
    from nmt.benchmark import __main__ as benchmark
    from nmt.cli import run

    sys.argv = ["nmt.benchmark", *arguments]
    run(benchmark.main)


def test_the_command_reports_once(tmp_path: Path) -> None:
    arguments = [
        *("train", "--models", "T", "--precision", "fp32", "--rounds", "1", "--seconds", "0.01", "--warm-up", "1"),
        *("--vocabulary", str(VOCABULARY), "--batch-tokens", "120", "--device", "cpu", "--no-memory"),
        *("--json", str(tmp_path / "figures.json"), "--set", *MODELS["transformer"]),
    ]
    with Launched(tmp_path / "processes", 2, _command, arguments) as launched:
        main, other = launched.ended()
    assert (main.status, other.status) == (0, 0), main.stderr + other.stderr
    assert "round 1: T fp32" in main.stderr
    assert "round" not in other.stderr
    tree: dict[str, Any] = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert tree["machine"]["processes"] == 2
    assert tree["train"][0]["rounds"][0]["tokens_per_second"] > 0
