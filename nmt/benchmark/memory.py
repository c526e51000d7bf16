"""Peak memory of a training update, each figure from a fresh process.

The token budget, the vocabulary and the longest sentence vary one at a time, the first value given for each of the
others being kept; the last line has the largest of all three. Pairs are random, of every length up to the longest.
"""

import argparse
from typing import Any

from nmt.analysis.benchmark_report import memory_report
from nmt.analysis.training_memory import Point, measure_point
from nmt.benchmark.options import VOCABULARY, config_of, positive, say
from nmt.device import resolve_precision
from nmt.training.distributed import Processes

SET_OTHERWISE = {
    "training.device": "--device",
    "training.precision": "--precision",
    "training.batch_tokens": "--batch-tokens",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command alone."""
    add = parser.add_argument
    add("--model", default="T", help="T, R, S or the name of an experiment (default: %(default)s)")
    add("--precision", choices=["fp32", "bf16", "auto"], default="fp32", help="(default: %(default)s)")
    for name, values in (
        ("--batch-tokens", [4096, 1024, 2048, 8192, 16384]),
        ("--vocabulary", [VOCABULARY, 32000]),
        ("--longest", [100, 20, 400]),
    ):
        add(
            name,
            type=positive,
            nargs="+",
            default=values,
            metavar="N",
            help=f"the first is kept while the others vary (default: {' '.join(map(str, values))})",
        )


def measure(arguments: argparse.Namespace, processes: Processes) -> dict[str, Any]:
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
    config = config_of(arguments.model, arguments.set, SET_OTHERWISE, None)
    measured = []
    for point in _points(*axes):
        peak = measure_point(point, config, device, precision)
        at = ", ".join(f"{key} {value:,}" for key, value in point._asdict().items())
        say(processes, f"{at}: {peak.peak:,} bytes")
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
