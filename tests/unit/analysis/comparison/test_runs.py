"""From runs to systems, and their names."""

from pathlib import Path

from nmt.analysis.comparison.runs import LoadedRun, systems_of
from tests.tiny_run import tiny_config


def run(folder: Path, tag: str, seed: int, *overrides: str, model: str = "transformer") -> LoadedRun:
    config = tiny_config(folder, model, f"tag={tag}", f"seed={seed}", *overrides)
    return LoadedRun(f"{tag}_s{seed}", folder / f"{tag}_s{seed}", config, {})


def systems(*runs: LoadedRun) -> dict[str, list[int]]:
    return {system.name: system.seeds for system in systems_of(runs)}


def test_runs_that_differ_in_their_seed_are_one_system(tmp_path: Path) -> None:
    a = [run(tmp_path, "a", seed) for seed in (3, 1, 2)]
    b = run(tmp_path, "b", 1, model="bahdanau")
    assert systems(a[0], b, *a[1:]) == {"transformer": [1, 2, 3], "bahdanau": [1]}


def test_systems_of_one_architecture_are_called_by_their_tags(tmp_path: Path) -> None:
    wide, narrow = run(tmp_path, "wide", 1), run(tmp_path, "narrow", 1, "model.dim=8")
    assert systems(wide, narrow, run(tmp_path, "b", 1, model="bahdanau")) == {"wide": [1], "narrow": [1], "b": [1]}
    assert systems(wide, run(tmp_path, "wide", 2, "model.dim=8")) == {"wide_s1": [1], "wide_s2": [2]}


def test_bookkeeping_makes_no_other_system(tmp_path: Path) -> None:
    one = run(tmp_path, "a", 1)
    assert systems(one, run(tmp_path, "a", 2, "training.log_every=7", "search.beam_size=3", "data.cache=x")) == {
        "transformer": [1, 2]
    }
    assert len(systems(one, run(tmp_path, "a", 2, "training.max_steps=7"))) == 2
