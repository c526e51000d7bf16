"""Several processes make the run that one process makes, and only one of them writes it down."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

from nmt import checkpoint
from nmt.config import TrainConfig
from nmt.data.dataset import prepare
from nmt.data.loader import Loader
from nmt.models import build
from nmt.training import trainer
from nmt.training.distributed import connect
from nmt.training.optim import build_optimizer
from nmt.training.trainer import train
from nmt.training.update import Updater
from tests.processes import Ended, Launched, train_as_command
from tests.tiny_run import MODELS, limited, metrics, tiny_config, tiny_overrides, write_corpus

pytestmark = pytest.mark.usefixtures("quick_figures")

PLAIN = ("model.dropout=0", "model.attention_dropout=0", "training.accumulate=4", "training.max_steps=8",
         "training.validate_every=4", "training.log_every=1", "optim/optimizer=sgd",
         "optim.optimizer.learning_rate=0.5", "search.max_length_b=10")  # fmt: skip
"""No dropout, which each process draws for itself; updates of four batches: 3 processes get one each and a third."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("distributed")


def train_rank(rank: int, config: TrainConfig) -> None:
    """One process of a run; all but the first are given another place for runs, where nothing must appear."""
    trainer.attention_figure = lambda *arguments: Figure(figsize=(1, 1))
    if rank:
        config = dataclasses.replace(config, runs=f"{config.runs}_of_others")
    train_as_command(config)


def train_in(processes: int, config: TrainConfig) -> list[Ended]:
    with Launched(Path(config.runs).parent / "stderr" / config.tag, processes, train_rank, config) as launched:
        ended = launched.ended()
    assert [each.status for each in ended] == [0] * processes, ended
    return ended


def weights(config: TrainConfig, step: int) -> dict[str, torch.Tensor]:
    return checkpoint.load_weights(checkpoint.step_folder(config.run_dir / "checkpoints", step))[0]


def assert_same_lines(one: TrainConfig, other: TrainConfig) -> None:
    """Metrics are equal, numbers up to rounding; translations, and so scores, are equal outright."""
    lines = metrics(one.run_dir), metrics(other.run_dir)
    assert [(line["event"], line["step"]) for line in lines[0]] == [(line["event"], line["step"]) for line in lines[1]]
    for left, right in zip(*lines, strict=True):
        exact = {key for key, value in left.items() if not isinstance(value, float) or key in ("bleu", "chrf")}
        assert {key: left[key] for key in exact} == {key: right[key] for key in exact}
        assert {key: left[key] for key in left.keys() - exact} == pytest.approx(
            {key: right[key] for key in right.keys() - exact}, rel=1e-4
        )


@pytest.fixture(scope="module")
def alone(shared: Path) -> TrainConfig:
    """A run of one process without dropout."""
    config = tiny_config(shared, "transformer", *PLAIN, "tag=alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "attention_figure", lambda *arguments: Figure(figsize=(1, 1)))
        train(config)
    return config


@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_make_the_run_of_one(shared: Path, alone: TrainConfig, processes: int) -> None:
    several = dataclasses.replace(alone, tag=f"of{processes}")
    ended = train_in(processes, several)

    assert_same_lines(alone, several)
    for name, expected in weights(alone, 8).items():
        torch.testing.assert_close(weights(several, 8)[name], expected, rtol=1e-4, atol=1e-5)
    said = [(c.run_dir / "train.log").read_text().split("\n") for c in (alone, several)]
    samples = [[line for line in lines if line.startswith("  translation: ")] for lines in said]
    assert samples[0] == samples[1] != []
    summary = json.loads((several.run_dir / "summary.json").read_text())
    assert summary["processes"] == processes

    assert f"{processes} processes share every update" in ended[0].stderr
    assert [each.stderr for each in ended[1:]] == [""] * (processes - 1)
    assert not Path(f"{several.runs}_of_others").exists()
    assert len(list(several.run_dir.glob("events.out.tfevents.*"))) == 1


def gradients(rank: int, config: TrainConfig, folder: Path) -> None:
    """Make one update of plain gradient descent for each model and each number of batches; keep what it changed."""
    torch.set_num_threads(1)
    prepared = prepare(config.data, lambda message: None)
    recipe = dataclasses.replace(config.optim, clip_norm=None)
    sizes = [tokenizer.vocabulary_size for tokenizer in prepared.tokenizers]
    changed: dict[str, torch.Tensor] = {}
    with connect("cpu", timeout=60) as processes:
        for name in MODELS:
            settings = tiny_config(folder, name, "model.dropout=0").model
            for accumulate in (1, 2, 4):
                model = build(dataclasses.replace(settings, dropout=0.0), *sizes, seed=1)
                if name == "transformer":
                    model.eval()  # no attention dropout
                before = {key: value.clone() for key, value in model.state_dict().items()}
                updater = Updater(model, build_optimizer(model, recipe), recipe, torch.device("cpu"), "fp32", processes)
                loader = Loader(prepared.train, 160, None, seed=3, shuffle=True)
                group = next(loader.groups(0, 0, accumulate, processes.rank, processes.size))
                made = updater.update(group, rate=1.0)
                for key, value in model.state_dict().items():
                    changed[f"{name}/{accumulate}/{key}"] = value - before[key]
                changed[f"{name}/{accumulate}/norm"] = torch.tensor(made.gradient_norm)
                changed[f"{name}/{accumulate}/loss"] = torch.tensor(made.smoothed / made.tokens)
    torch.save(changed, folder / f"gradients_{processes.rank}_of_{processes.size}")


@pytest.mark.parametrize("normalize", ["tokens", "sentences"])
def test_gradients_are_those_of_one_process(shared: Path, alone: TrainConfig, normalize: str) -> None:
    """Summed over 3 processes, some of which have a whole batch more and others no row: equal to 1e-6."""
    config = dataclasses.replace(alone, optim=dataclasses.replace(alone.optim, normalize=normalize))  # type: ignore[arg-type]
    gradients(0, config, shared)
    with Launched(shared / "stderr" / "gradients", 3, gradients, config, shared) as launched:
        assert [each.status for each in launched.ended()] == [0, 0, 0], launched.ended()
    expected = torch.load(shared / "gradients_0_of_1")
    for rank in range(3):
        found = torch.load(shared / f"gradients_{rank}_of_3")
        assert found.keys() == expected.keys()
        for name, value in found.items():
            tolerance = 1e-6 if normalize == "tokens" else 1e-5  # a sentence's gradient is that of several tokens
            torch.testing.assert_close(value, expected[name], rtol=1e-5, atol=tolerance, msg=name)
            assert value.abs().max() > 0


def test_the_same_number_resumes_bit_for_bit_and_another_number_says_that_it_does_not(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("training.accumulate=3", "training.max_steps=8", "training.validate_every=4", "training.log_every=1",
               "training.average_last=0")  # fmt: skip
    straight = tiny_config(shared, "transformer", *options, "tag=straight")
    broken, fewer = (dataclasses.replace(straight, tag=tag) for tag in ("broken", "fewer"))
    train_in(2, straight)
    train_in(2, limited(broken, max_steps=5))
    shutil.copytree(broken.run_dir, fewer.run_dir, symlinks=True)
    ended = train_in(2, broken)
    assert "bit for bit" not in ended[0].stderr
    one, two = weights(straight, 8), weights(broken, 8)
    for name in one:
        assert torch.equal(one[name], two[name]), name
    on_schedule = [[line for line in metrics(c.run_dir) if line["step"] != 5] for c in (straight, broken)]
    assert on_schedule[0] == on_schedule[1]

    capsys.readouterr()
    train(fewer)
    said = capsys.readouterr().err
    assert "2 processes wrote this checkpoint and 1 process will go on from it" in said
    assert "not bit for bit" in said
    lines = [metrics(c.run_dir, "train") for c in (straight, fewer)]
    assert [line["step"] for line in lines[1]] == list(range(1, 9))
    assert lines[0][:5] == lines[1][:5]
    for key in ("epoch", "tokens", "learning_rate", "padding"):  # the data go on where they were
        assert [line[key] for line in lines[0]] == [line[key] for line in lines[1]]
    assert lines[0] != lines[1], "two streams of dropout are not one"


def test_more_processes_go_on_from_one(shared: Path, alone: TrainConfig) -> None:
    """Without dropout the result is that of one process, up to rounding."""
    several, one = (dataclasses.replace(alone, tag=tag) for tag in ("more", "one"))
    for config in (several, one):
        shutil.copytree(alone.run_dir, config.run_dir, symlinks=True)
    ended = train_in(2, limited(several, max_steps=11))
    train(limited(one, max_steps=11))
    assert "1 process wrote this checkpoint and 2 processes will go on from it" in ended[0].stderr
    assert_same_lines(one, several)


def train_on_a_machine(rank: int, config: TrainConfig, machines: list[Path]) -> None:
    """One process of a run, the only one on its machine: a folder with text and a cache of its own."""
    os.environ["LOCAL_RANK"] = "0"
    os.chdir(machines[rank])
    train_rank(rank, config)


@pytest.mark.parametrize("alike", [True, False])
def test_machines_may_have_copies_of_one_text_but_no_two_texts(tmp_path: Path, alike: bool) -> None:
    """A copy has the time at which it was made."""
    machines = [tmp_path / "first", tmp_path / "second"]
    for number, machine in enumerate(machines):
        machine.mkdir()
        write_corpus(machine)
        os.utime(machine / "train.de", (1e9 + number, 1e9 + number))
    if not alike:
        path = machines[1] / "dev.en"
        path.write_text(path.read_text().replace("one", "two"))
    here = ("data.train=train", "data.validation=dev", "data.cache=cache")
    config = tiny_config(machines[0], "seq2seq", *here, "training.max_steps=2", f"runs={tmp_path}/runs")
    with Launched(tmp_path / "stderr", 2, train_on_a_machine, config, machines) as launched:
        ended = launched.ended()
    assert [each.status for each in ended] == ([0, 0] if alike else [2, 2]), ended
    said = "processes 0 and 1 have prepared different data"
    assert [said in each.stderr for each in ended] == [not alike] * 2
    assert all(list((machine / "cache").iterdir()) for machine in machines)


def test_torchrun_and_a_sweep(shared: Path) -> None:
    """The command as it is typed, from a folder of its own; every process goes through the jobs in the same order."""
    if not (shared / "dev.en").exists():
        write_corpus(shared)
    write_nothing_here = shared / "elsewhere"
    write_nothing_here.mkdir()
    root = Path(__file__).parent.parent.parent
    command: list[Any] = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "nmt.train", "-m", "seed=3,4", *tiny_overrides(shared, "seq2seq"), "tag=torchrun"]
    command += ["training.max_steps=4", "training.validate_every=4", "training.average_last=0"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        command, cwd=write_nothing_here, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for seed in (3, 4):
        assert f"torchrun_s{seed}: seq2seq" in done.stderr
        summary = json.loads((shared / "runs" / f"torchrun_s{seed}" / "summary.json").read_text())
        assert (summary["processes"], summary["steps"]) == (2, 4)
    assert list(write_nothing_here.iterdir()) == []
