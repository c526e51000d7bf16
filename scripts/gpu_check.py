"""Check training on a GPU, on embedded data and without network. Called by ``scripts/gpu_check.sh``.

For each of the three models, at the sizes of configs/experiment/benchmark_*.yaml:

  1. The first updates in bf16 on the GPU against the same in float32 on the CPU: same parameters to begin with, same
     batches, no dropout. The mean loss of every batch must agree to 1 %, the gradient's norm to 10 %. bf16 keeps 8
     significant bits, so one number is off by up to 0.2 %; in a mean over hundreds of tokens most of that cancels,
     while a wrong mask, position, scale or update shows in the first digits. The norm is a sum of squares of values
     that have been rounded in every layer, hence the wider limit.
  2. Training for --seconds in bf16, stopped half-way and resumed from its checkpoint: the resumed run must say that it
     goes on after the last update, its loss must go on where it was, and the loss must have fallen in the end.
  3. Speed: target tokens/s, MFU (see nmt/analysis/training_speed.py) and peak memory.

Exit status 0: all is well; 1: a check failed (the last lines say which); 2: there is nothing to check here.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

try:
    import torch
    import yaml

    from nmt.analysis.training_speed import TrainingBench
    from nmt.cli import run
    from nmt.config import CONFIG_DIR, TrainConfig, parse
    from nmt.data.batch import Group
    from nmt.data.dataset import PreparedData, prepare
    from nmt.data.loader import Loader
    from nmt.device import Precision, resolve_device
    from nmt.machine import peak_resident
    from nmt.models import build
    from nmt.training.optim import build_optimizer
    from nmt.training.trainer import train
    from nmt.training.update import Update, Updater
except ModuleNotFoundError as error:
    print(
        f"error: {error.name} is missing here; needed are torch, numpy, pyyaml, sentencepiece, sacrebleu, safetensors, "
        "tensorboard and matplotlib",
        file=sys.stderr,
    )
    sys.exit(2)

MODELS = ("transformer", "bahdanau", "seq2seq")
TINY: dict[str, dict[str, int]] = {
    "transformer": {"dim": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feedforward_dim": 48},
    "bahdanau": {"embedding_dim": 24, "hidden_dim": 24, "attention_dim": 24, "maxout_dim": 24},
    "seq2seq": {"embedding_dim": 24, "hidden_dim": 24},
}
"""For the tests of this script."""

COMPARED_UPDATES = 6
LOSS_TOLERANCE, NORM_TOLERANCE = 0.01, 0.10
FALL = 0.95  # of the loss at the start: what it must have fallen below
JUMP = 1.15  # of the loss before the stop: what it must not be above after it


class CheckError(Exception):
    """Something is wrong; the message says what."""


def configuration(model: str, runs: Path, arguments: argparse.Namespace) -> TrainConfig:
    """Demo data, the benchmark's sizes: composed here, so that Hydra need not be installed."""
    experiment, root = _read(f"experiment/benchmark_{model}"), _read("train")
    tree = {key: value for key, value in root.items() if key not in ("defaults", "hydra")} | {
        "tag": experiment["tag"],
        "runs": str(runs),
        "data": _composed("data", "demo"),
        "model": _read(f"model/{model}") | experiment["model"],
        "optim": _composed("optim", model),
        "search": _read("search/beam") | {"beam_size": 1},
        "training": root["training"] | experiment["training"],
    }
    tree["data"] |= {"cache": str(runs / "cache"), "train_pairs": 20_000}
    tree["training"] |= {"device": arguments.device, "precision": "bf16", "average_last": 0, "patience": None}
    tree["training"] |= {"validation_sentences": 50, "validate_every": 10**6, "log_every": 10}
    tree["optim"]["schedule"]["warmup_steps"] = 100
    if arguments.tiny:
        tree["model"] |= TINY[model]
        tree["data"] |= {"train_pairs": 400, "validation_pairs": 10, "test_pairs": 10, "max_words": 8, "mean_words": 5}
        tree["data"]["tokenizer"]["vocabulary_size"] = 500
        tree["training"] |= {"batch_tokens": 256, "log_every": 2, "validation_sentences": 2}
        tree["optim"]["schedule"]["warmup_steps"] = 5
        tree["optim"]["optimizer"]["learning_rate"] = 0.01
    return parse(TrainConfig, tree)


def _composed(group: str, name: str) -> dict[str, Any]:
    """A file of a group with the parts that its defaults name, under its own keys where it has some."""
    tree = _read(f"{group}/{name}")
    parts = {key: part for entry in tree.pop("defaults") if isinstance(entry, dict) for key, part in entry.items()}
    return tree | {key: _read(f"{group}/{key}/{part}") | tree.get(key, {}) for key, part in parts.items()}


def _read(name: str) -> dict[str, Any]:
    tree: dict[str, Any] = yaml.safe_load((CONFIG_DIR / f"{name}.yaml").read_text(encoding="utf-8"))
    return tree


# --- 1: the same numbers ----------------------------------------------------------------------------------------------


def compare(config: TrainConfig, prepared: PreparedData, device: torch.device) -> str:
    """Check the first updates against float32 on the CPU; returns a line that sums up.

    Raises:
        CheckError: they differ.
    """
    ours = first_updates(config, prepared, device, "bf16")
    theirs = first_updates(config, prepared, torch.device("cpu"), "fp32")
    losses, norms = [], []
    for number, (own, other) in enumerate(zip(ours, theirs, strict=True), 1):
        losses.append(abs(own.nll / other.nll - 1))
        norms.append(abs(own.gradient_norm / other.gradient_norm - 1))
        for what, found, limit in (("loss", losses[-1], LOSS_TOLERANCE), ("gradient norm", norms[-1], NORM_TOLERANCE)):
            if not found <= limit:  # NaN is not
                raise CheckError(
                    f"update {number}: the {what} in bf16 on {device} is {found:.2%} off float32 on the CPU (loss "
                    f"{own.nll / own.tokens:.4f} and {other.nll / other.tokens:.4f}, norm {own.gradient_norm:.4f} and "
                    f"{other.gradient_norm:.4f}); at most {limit:.0%} was expected"
                )
    return f"loss of {len(ours)} updates within {max(losses):.3%} of float32 on the CPU, norm within {max(norms):.2%}"


def first_updates(
    config: TrainConfig, prepared: PreparedData, device: torch.device, precision: Precision
) -> list[Update]:
    """A few updates from the run's first parameters, without dropout, at the recipe's highest learning rate."""
    model = build(replace(config.model, dropout=0.0), *vocabularies(prepared), config.seed).to(device)
    updater = Updater(model, build_optimizer(model, config.optim), config.optim, device, precision)
    loader = Loader(prepared.train, min(1024, config.training.batch_tokens), None, config.seed, shuffle=True)
    batches = loader.batches(epoch=0)
    rate = config.optim.optimizer.learning_rate
    return [updater.update(Group.of([next(batches)]), rate) for _ in range(COMPARED_UPDATES)]


def vocabularies(prepared: PreparedData) -> tuple[int, int]:
    """Source and target subwords."""
    return prepared.tokenizers.source.vocabulary_size, prepared.tokenizers.target.vocabulary_size


# --- 2: training ------------------------------------------------------------------------------------------------------


def train_and_resume(config: TrainConfig, arguments: argparse.Namespace) -> str:
    """Train, stop half-way, resume; returns a line that sums up.

    Raises:
        CheckError: the run did not go on where it was, or the loss did not fall.
    """
    half = replace(config.training, max_minutes=arguments.seconds / 120, max_steps=arguments.steps)
    whole = replace(half, max_minutes=arguments.seconds / 60, max_steps=arguments.steps and 2 * arguments.steps)
    train(replace(config, training=half))
    before = losses(config)
    train(replace(config, training=whole))
    after = losses(config)
    said = (config.run_dir / "train.log").read_text(encoding="utf-8")
    if after[: len(before)] != before or len(after) <= len(before) or "resuming" not in said:
        raise CheckError(f"the run did not go on from its checkpoint: {len(before)} log lines, then {len(after)}")
    if len(before) < 2:
        raise CheckError(f"only {len(before)} log lines in half the time: give it more --seconds")
    stopped, resumed = mean(before[-5:]), mean(after[len(before) : len(before) + 5])
    if not resumed <= JUMP * stopped:
        raise CheckError(f"the loss was {stopped:.3f} before the stop and {resumed:.3f} after it")
    quarter = max(1, len(after) // 4)
    first, last = mean(after[:quarter]), mean(after[-quarter:])
    if not last <= FALL * first:
        raise CheckError(f"the loss did not fall: {first:.3f} at first, {last:.3f} in the end")
    return f"loss from {first:.3f} to {last:.3f}; {stopped:.3f} before the stop, {resumed:.3f} after it"


def losses(config: TrainConfig) -> list[float]:
    """Training loss of every log line so far."""
    text = (config.run_dir / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.split("\n") if line]
    return [line["loss"] for line in lines if line["event"] == "train"]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# --- 3: speed ---------------------------------------------------------------------------------------------------------


def speed(config: TrainConfig, prepared: PreparedData, device: torch.device, seconds: float) -> str:
    """Measure; returns a line with the figures."""
    bench = TrainingBench(config, prepared.train, vocabularies(prepared), device, "bf16")
    figures = bench.measure(seconds, warm_up=5)
    on_gpu = device.type == "cuda"
    peak = torch.cuda.max_memory_allocated(device) if on_gpu else peak_resident()
    return (
        f"{figures.tokens_per_second:,.0f} target tokens/s, MFU {figures.utilisation:.1%} of "
        f"{figures.product_rate / 1e12:.3g} TFLOP/s, peak memory {peak / 2**20:,.0f} MB "
        f"({'allocated' if on_gpu else 'resident, the models before included'})"
    )


# --- all of it --------------------------------------------------------------------------------------------------------


def check(config: TrainConfig, prepared: PreparedData, arguments: argparse.Namespace) -> None:
    """All checks of one model, with a line of results on stdout for each.

    Raises:
        CheckError: one failed.
    """
    device = resolve_device(arguments.device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    name = config.model.name
    print(f"{name}: {compare(config, prepared, device)}", flush=True)
    print(f"{name}: {train_and_resume(config, arguments)}", flush=True)
    print(f"{name}: {speed(config, prepared, device, min(4.0, arguments.seconds / 10))}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/gpu_check.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 ..., or cpu (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=45.0, help="of training a model (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="at most so many updates before the stop, and after it")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="(default: all three)")
    parser.add_argument("--tiny", action="store_true", help="models and data of no use but to test this script")
    arguments = parser.parse_args()
    started = time.monotonic()
    device = resolve_device(arguments.device)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{where}, torch {torch.__version__}", flush=True)
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            config = configuration(model, Path(folder), arguments)
            prepared = prepare(config.data, lambda message: print(message, file=sys.stderr))
            try:
                check(config, prepared, arguments)
            except CheckError as error:
                failures.append(f"{model}: {error}")
    print(f"{time.monotonic() - started:.0f} seconds in all", flush=True)
    for failure in failures:
        print(f"FAILED {failure}", flush=True)
    if failures:
        sys.exit(1)
    print("all checks passed")


if __name__ == "__main__":
    run(main)
