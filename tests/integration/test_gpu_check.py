"""``scripts/gpu_check.sh`` on the CPU: the script, not the GPU, is what is tested here."""

import importlib.util
import os
import subprocess
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch

from nmt.config import TrainConfig
from nmt.data.dataset import PreparedData, prepare
from nmt.training.update import Update
from tests.tiny_run import compose_config

ROOT = Path(__file__).parent.parent.parent
TINY = ("--device", "cpu", "--tiny", "--steps", "8", "--seconds", "600")


def check(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script."""
    command = ["bash", str(ROOT / "scripts" / "gpu_check.sh"), *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def test_all_checks_pass_and_give_figures() -> None:
    done = check(*TINY)
    assert done.returncode == 0, done.stdout + done.stderr
    for model in ("transformer", "bahdanau", "seq2seq"):
        lines = [line for line in done.stdout.split("\n") if line.startswith(f"{model}: ")]
        assert len(lines) == 3, done.stdout
        assert "of float32 on the CPU" in lines[0]
        assert "before the stop" in lines[1]
        assert "target tokens/s, MFU" in lines[2]
    assert done.stdout.endswith("all checks passed\n")


@pytest.mark.skipif("torch.cuda.is_available()", reason="there is a GPU")
def test_without_a_gpu_there_is_nothing_to_check() -> None:
    done = check()
    assert done.returncode == 2
    assert "error: device: cuda asked for, but this machine has 0 CUDA devices" in done.stderr


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script's functions."""
    specification = importlib.util.spec_from_file_location("gpu_check", ROOT / "scripts" / "gpu_check.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("model", ["transformer", "bahdanau", "seq2seq"])
def test_configuration_is_what_hydra_composes(script: ModuleType, model: str, tmp_path: Path) -> None:
    own = script.configuration(model, tmp_path, Namespace(device="cuda", tiny=False))
    composed = compose_config(f"experiment=benchmark_{model}", "search=greedy", f"runs={tmp_path}")
    data = replace(composed.data, cache=str(tmp_path / "cache"), train_pairs=20_000)
    schedule = replace(composed.optim.schedule, warmup_steps=100)
    assert replace(own, training=composed.training) == replace(
        composed, data=data, optim=replace(composed.optim, schedule=schedule)
    )
    assert own.training.batch_tokens == composed.training.batch_tokens


@pytest.fixture(scope="module")
def tiny(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainConfig, PreparedData]:
    """A configuration and its data."""
    folder = tmp_path_factory.mktemp("gpu_check")
    config = script.configuration("transformer", folder, Namespace(device="cpu", tiny=True))
    return config, prepare(config.data, lambda message: None)


@pytest.mark.parametrize("wrong", ["rate", "parameters", "gradient"])
def test_a_device_that_computes_something_else_is_found(
    script: ModuleType, tiny: tuple[TrainConfig, PreparedData], wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, prepared = tiny
    first_updates = script.first_updates

    def off(config: TrainConfig, prepared: PreparedData, device: torch.device, precision: str) -> list[Update]:
        if precision == "bf16" and wrong == "rate":
            optimizer = replace(config.optim.optimizer, learning_rate=2 * config.optim.optimizer.learning_rate)
            config = replace(config, optim=replace(config.optim, optimizer=optimizer))
        if precision == "bf16" and wrong == "parameters":
            config = replace(config, seed=config.seed + 1)
        updates: list[Update] = first_updates(config, prepared, device, precision)
        if precision == "bf16" and wrong == "gradient":
            updates = [update._replace(gradient_norm=float("nan")) for update in updates]
        return updates

    monkeypatch.setattr(script, "first_updates", off)
    with pytest.raises(script.CheckError, match="off float32 on the CPU"):
        script.compare(config, prepared, torch.device("cpu"))


@pytest.mark.parametrize(
    ("after_stop", "message"),
    [([4.0, 3.9], "did not fall"), ([6.0, 5.0], "before the stop and"), ([], "did not go on from its checkpoint")],
)
def test_a_run_that_does_not_learn_or_go_on_is_found(
    script: ModuleType,
    tiny: tuple[TrainConfig, PreparedData],
    after_stop: list[float],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = replace(tiny[0], tag=f"bad_{len(message)}")
    config.run_dir.mkdir(parents=True)
    (config.run_dir / "train.log").write_text("resuming", encoding="utf-8")
    lines = iter([[4.1, 4.0], [4.1, 4.0, *after_stop]])
    monkeypatch.setattr(script, "train", lambda config: None)
    monkeypatch.setattr(script, "losses", lambda config: next(lines))
    with pytest.raises(script.CheckError, match=message):
        script.train_and_resume(config, Namespace(seconds=1.0, steps=None))
