"""Train for a while and say how fast it goes.

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

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from nmt.analysis.benchmark_report import training_report
from nmt.analysis.benchmark_rounds import training_rounds
from nmt.analysis.synthetic import corpus_lengths, write_pairs
from nmt.analysis.training_speed import TrainingBench
from nmt.benchmark.options import MODELS, VOCABULARY, config_of, positive, say
from nmt.data.dataset import open_prepared
from nmt.data.store import PairDataset
from nmt.device import resolve_precision
from nmt.training.distributed import Processes

SYNTHETIC_PAIRS = 29_000
SET_OTHERWISE = {"training.device": "--device", "training.precision": "--precision"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command alone."""
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
    add("--rounds", type=positive, default=3, metavar="N", help="measurements of each (default: %(default)s)")
    add("--seconds", type=float, default=20.0, metavar="S", help="of each measurement (default: %(default)s)")
    add("--warm-up", type=positive, default=3, metavar="N", help="updates before each (default: %(default)s)")
    add("--batch-tokens", type=positive, metavar="N", help="token budget a side (default: the experiment's)")
    add(
        "--prepared",
        type=Path,
        metavar="FOLDER",
        help="train on this data (a folder that nmt.prepare made) instead of random subwords in sentences as long as "
        "those of Multi30k",
    )
    add("--vocabulary", type=positive, metavar="N", help="random subwords a side (default: 8000)")
    add("--no-memory", action="store_true", help="leave out peak memory")


def measure(arguments: argparse.Namespace, processes: Processes) -> dict[str, Any]:
    """Measure every model in every precision; the report goes to stdout, all figures are returned."""
    device = processes.device(arguments.device)
    if not arguments.seconds > 0:
        raise ValueError(f"--seconds: expected a number above 0, found {arguments.seconds}")
    if arguments.prepared is not None and arguments.vocabulary is not None:
        raise ValueError("--vocabulary: that of the prepared data is given; leave out one of --vocabulary, --prepared")
    precisions = list(dict.fromkeys(resolve_precision(name, device) for name in arguments.precision))
    names = list(dict.fromkeys(arguments.models))
    configs = {name: config_of(name, arguments.set, SET_OTHERWISE, arguments.batch_tokens) for name in names}
    with _pairs(arguments) as (dataset, vocabularies):
        benches = {
            (name, precision): TrainingBench(configs[name], dataset, vocabularies, device, precision, processes)
            for name, precision in product(names, precisions)
        }
        figures = training_rounds(
            benches,
            arguments.rounds,
            arguments.seconds,
            arguments.warm_up,
            not arguments.no_memory,
            processes,
            partial(say, processes),
        )
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
    vocabulary = arguments.vocabulary or VOCABULARY
    with tempfile.TemporaryDirectory() as folder:
        dataset = write_pairs(Path(folder), corpus_lengths(SYNTHETIC_PAIRS, seed=1), vocabulary, seed=1)
        yield dataset, (vocabulary, vocabulary)
