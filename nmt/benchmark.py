"""Measure speed and memory on this machine.

    python -m nmt.benchmark train                                     # three models, the machine's best precision
    python -m nmt.benchmark train --models T R --precision fp32 bf16 --prepared data/cache/multi30k_de-en-...
    python -m nmt.benchmark train --models multi30k_transformer --set training.batch_tokens=2048
    python -m nmt.benchmark memory                                    # peak memory against what it may depend on

    torchrun --standalone --nproc-per-node 2 -m nmt.benchmark train --device cpu --threads 1     # several processes

Tables go to stdout, progress to stderr. Compare figures of one call only: neighbours on a machine move everything.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import torch

from nmt.analysis.benchmark_report import TrainingFigures, machine, machine_line, memory_report, training_report
from nmt.analysis.synthetic import corpus_lengths, write_pairs
from nmt.analysis.training_memory import Point, measure_peak, measure_point
from nmt.analysis.training_speed import Round, TrainingBench
from nmt.cli import CommandParser, run
from nmt.composition import composed
from nmt.config import ConfigError, TrainConfig
from nmt.data.dataset import open_prepared
from nmt.data.store import PairDataset
from nmt.device import Precision, keep_freed_memory, resolve_precision
from nmt.training.checks import check_config
from nmt.training.distributed import Processes, connect

MODELS = {"T": "benchmark_transformer", "R": "benchmark_bahdanau", "S": "benchmark_seq2seq"}
"""Short names of the experiments whose sizes speed is usually measured at."""

SYNTHETIC_PAIRS = 29_000

TIMEOUT = 600.0
"""Seconds that one of several processes waits for the others, which may be measuring memory."""

TRAIN = """Train for a while and say how fast it goes.

For every model and precision, in rounds that take turns: the rate of the model's own matrix products by themselves,
some updates to warm up, then updates for --seconds. Figures are medians over the rounds, lowest and highest in
brackets.

  padding           share of positions without a token, both sides; and on the target side alone
  peak memory       of a fresh process that makes three updates (allocated on a GPU, else resident)
  MFLOP/token       operations of forward and backward that a real target token needs, its share of the source included
  products GFLOP/s  rate of the matrix products by themselves
  MFU               (operations that the pairs need, without padding, per second) / (that rate)

Under torchrun the processes share every update, figures are of all together, and peak memory is of one alone.
"""

MEMORY = """Peak memory of a training update, each figure from a fresh process.

The token budget, the vocabulary and the longest sentence vary one at a time, the first value given for each of the
others being kept; the last line has the largest of all three. Pairs are random, of every length up to the longest.
"""


def parser() -> CommandParser:
    """Command line of ``nmt.benchmark``."""
    parser = CommandParser("nmt.benchmark", __doc__)
    commands = parser.add_subparsers(dest="what", required=True, metavar="WHAT", prog="nmt.benchmark")
    for name, work, add_options, text in (("train", train, _add_train, TRAIN), ("memory", memory, _add_memory, MEMORY)):
        command = commands.add_parser(name, help=text.split("\n", 1)[0], description=text)
        command.set_defaults(work=work)
        add_options(command)
        _add_common(command)
    return parser


def _add_train(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--models",
        nargs="+",
        default=list(MODELS),
        metavar="MODEL",
        help="T, R, S (the sizes of configs/experiment/benchmark_*.yaml) or the name of any other experiment "
        "(default: T R S)",
    )
    add(
        "--precision",
        nargs="+",
        choices=["fp32", "bf16", "auto"],
        default=["auto"],
        help="number format of matrix products; auto: bf16 if the hardware has it (default: auto)",
    )
    add("--rounds", type=_positive, default=3, metavar="N", help="measurements of each (default: %(default)s)")
    add("--seconds", type=float, default=20.0, metavar="S", help="of each measurement (default: %(default)s)")
    add("--warm-up", type=_positive, default=3, metavar="N", help="updates before each (default: %(default)s)")
    add("--batch-tokens", type=_positive, metavar="N", help="token budget a side (default: the experiment's)")
    add(
        "--prepared",
        type=Path,
        metavar="FOLDER",
        help="train on this data (a folder that nmt.prepare made) instead of random subwords in sentences as long as "
        "those of Multi30k",
    )
    add("--vocabulary", type=_positive, metavar="N", help="random subwords a side (default: 8000)")
    add("--no-memory", action="store_true", help="leave out peak memory")


def _add_memory(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", default="T", help="T, R, S or the name of an experiment (default: %(default)s)")
    add("--precision", choices=["fp32", "bf16", "auto"], default="fp32", help="(default: %(default)s)")
    for name, values in (
        ("--batch-tokens", [4096, 1024, 2048, 8192, 16384]),
        ("--vocabulary", [8000, 32000]),
        ("--longest", [100, 20, 400]),
    ):
        add(
            name,
            type=_positive,
            nargs="+",
            default=values,
            metavar="N",
            help=f"the first is kept while the others vary (default: {' '.join(map(str, values))})",
        )


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change keys of the configuration")
    add("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    add("--threads", type=_positive, metavar="N", help="of torch on the CPU (default: torch's own choice)")
    add("--json", type=Path, metavar="FILE", help="also write every figure here")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, found {text}")
    return int(text)


def main() -> None:
    """Read the command line and measure."""
    arguments = parser().parse_args()
    if arguments.json is not None and not arguments.json.parent.is_dir():
        raise ValueError(f"--json {arguments.json}: no folder {arguments.json.parent}; make it first")
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    keep_freed_memory()  # as training does
    with connect(arguments.device, TIMEOUT) as processes:
        facts = machine(processes.device(arguments.device)) | {"processes": processes.size}
        if processes.is_main:
            print(machine_line(facts), end="\n\n", flush=True)
        figures = arguments.work(arguments, processes)
        if arguments.json is not None and processes.is_main:
            text = json.dumps({"machine": facts, **figures}, indent=2)
            arguments.json.write_text(text + "\n", encoding="utf-8")


# --- train ------------------------------------------------------------------------------------------------------------


def train(arguments: argparse.Namespace, processes: Processes) -> dict[str, Any]:
    """Measure every model in every precision; the report goes to stdout, all figures are returned."""
    device = processes.device(arguments.device)
    if not arguments.seconds > 0:
        raise ValueError(f"--seconds: expected a number above 0, found {arguments.seconds}")
    if arguments.prepared is not None and arguments.vocabulary is not None:
        raise ValueError("--vocabulary: that of the prepared data is given; leave out one of --vocabulary, --prepared")
    precisions = list(dict.fromkeys(resolve_precision(name, device) for name in arguments.precision))
    names = list(dict.fromkeys(arguments.models))
    configs = {name: _config(name, arguments, arguments.batch_tokens) for name in names}
    with _pairs(arguments) as (dataset, vocabularies):
        benches = {
            (name, precision): TrainingBench(configs[name], dataset, vocabularies, device, precision, processes)
            for name, precision in product(names, precisions)
        }
        rounds: dict[tuple[str, Precision], list[Round]] = {key: [] for key in benches}
        for number in range(1, arguments.rounds + 1):
            for (name, precision), bench in benches.items():
                done = bench.measure(arguments.seconds, arguments.warm_up)
                rounds[name, precision].append(done)
                _say(
                    processes,
                    f"round {number}: {name} {precision} {done.tokens_per_second:,.0f} target tokens/s, "
                    f"products {done.product_rate / 1e9:,.0f} GFLOP/s, MFU {done.utilisation:.0%}",
                )
        figures = []
        for (name, precision), bench in benches.items():
            _say(processes, f"{name} {precision}: stages of an update, peak memory")
            peak = None
            if processes.is_main and not arguments.no_memory:
                budget = bench.config.training.batch_tokens
                peak = measure_peak(bench.config, dataset, vocabularies, budget, device, precision)
            processes.meet("measuring memory")
            stages = bench.breakdown(max(2, arguments.warm_up))
            figures.append(TrainingFigures(name, precision, bench.parameters, rounds[name, precision], peak, stages))
    if processes.is_main:
        print(training_report(figures), flush=True)
    return {"train": [each.tree() for each in figures]}


@contextmanager
def _pairs(arguments: argparse.Namespace) -> Iterator[tuple[PairDataset, tuple[int, int]]]:
    """What to train on, and the sizes of both vocabularies."""
    if arguments.prepared is not None:
        prepared = open_prepared(arguments.prepared)
        yield prepared.train, (prepared.tokenizers.source.vocabulary_size, prepared.tokenizers.target.vocabulary_size)
        return
    vocabulary = arguments.vocabulary or 8000
    with tempfile.TemporaryDirectory() as folder:
        dataset = write_pairs(Path(folder), corpus_lengths(SYNTHETIC_PAIRS, seed=1), vocabulary, seed=1)
        yield dataset, (vocabulary, vocabulary)


# --- memory -----------------------------------------------------------------------------------------------------------


def memory(arguments: argparse.Namespace, processes: Processes) -> dict[str, Any]:
    """Measure the peak of every point; the report goes to stdout, all figures are returned."""
    if processes.size > 1:
        raise ValueError("memory: is measured in one process; start it without torchrun")
    device = processes.device(arguments.device)
    precision = resolve_precision(arguments.precision, device)
    axes = arguments.batch_tokens, arguments.vocabulary, arguments.longest
    if max(arguments.longest) > min(arguments.batch_tokens):
        raise ValueError(
            f"--longest: {max(arguments.longest)} tokens do not fit into a batch of {min(arguments.batch_tokens)}"
        )
    config = _config(arguments.model, arguments, None)
    measured = []
    for point in _points(*axes):
        peak = measure_point(point, config, device, precision)
        at = ", ".join(f"{key} {value:,}" for key, value in point._asdict().items())
        _say(processes, f"{at}: {peak.peak:,} bytes")
        measured.append((point, peak))
    print(memory_report(measured), flush=True)
    return {
        "model": arguments.model,
        "precision": precision,
        "memory": [{**point._asdict(), **peak._asdict()} for point, peak in measured],
    }


def _points(budgets: list[int], vocabularies: list[int], longest: list[int]) -> list[Point]:
    """The first of each with every other in one place; and the largest of all."""
    base = Point(budgets[0], vocabularies[0], longest[0])
    points = [base._replace(batch_tokens=value) for value in sorted(budgets)]
    points += [base._replace(vocabulary=value) for value in sorted(vocabularies)]
    points += [base._replace(longest=value) for value in sorted(longest)]
    return list(dict.fromkeys([*points, Point(max(budgets), max(vocabularies), max(longest))]))


def _config(name: str, arguments: argparse.Namespace, batch_tokens: int | None) -> TrainConfig:
    """The experiment of this name, with what the command line changes.

    Raises:
        ConfigError: there is none, or a value cannot be.
    """
    options = {"training.device": "--device", "training.precision": "--precision"}
    if arguments.what == "memory":
        options["training.batch_tokens"] = "--batch-tokens"
    for text in arguments.set:
        key = text.partition("=")[0].lstrip("+")
        if key in options:
            raise ConfigError(f"--set {key}: give {options[key]} instead")
    overrides = [f"experiment={MODELS.get(name, name)}", *arguments.set]
    if batch_tokens is not None:
        overrides.append(f"training.batch_tokens={batch_tokens}")
    try:
        config = composed(overrides)
        check_config(config)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    return config


def _say(processes: Processes, message: str) -> None:
    if processes.is_main:
        print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run(main)
