"""What each architecture costs as sentences grow: time and memory of training, encoding and one step of decoding.

Source and target have the same number of tokens, --sentences of them at once; every figure comes from a fresh process.
The default models have equal numbers of parameters. Exponents are fitted to the lengths from --fit-from on, and stand
beside those of the counted operations. A Transformer's step is measured without its cache as well.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import torch

from nmt.analysis.scaling import Cost, Curve, Task, counted, works_of
from nmt.analysis.scaling_report import scaling_figure, scaling_report
from nmt.benchmark.options import VOCABULARY, config_of, positive, say
from nmt.device import resolve_precision
from nmt.models import build, parameter_count
from nmt.training.distributed import Processes

MODELS = {"transformer": "benchmark_transformer", "bahdanau": "scaling_bahdanau", "seq2seq": "scaling_seq2seq"}
"""Short names of the experiments whose sizes have as many parameters as each other."""

SET_OTHERWISE = {
    "training.device": "--device",
    "training.precision": "--precision",
    "training.batch_tokens": "--sentences and --lengths",
    "training.batch_sentences": "--sentences",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command alone."""
    add = parser.add_argument
    add(
        "--models",
        nargs="+",
        default=list(MODELS),
        metavar="MODEL",
        help=f"{', '.join(MODELS)} (at equal parameters, the default), or names of experiments",
    )
    lengths = [8, 16, 32, 64, 128, 256, 512, 1024]
    add("--lengths", nargs="+", type=positive, default=lengths, metavar="N", help="tokens a side (default: 8 to 1024)")
    add("--fit-from", type=positive, default=128, metavar="N", help="shortest for the exponents (default: %(default)s)")
    add("--sentences", type=positive, default=4, metavar="N", help="at once (default: %(default)s)")
    add("--vocabulary", type=positive, default=VOCABULARY, metavar="N", help="subwords a side (default: %(default)s)")
    add("--precision", choices=["fp32", "bf16", "auto"], default="fp32", help="(default: %(default)s)")
    add("--figure", type=Path, metavar="FILE", help="draw the curves: a .png, .svg or .pdf")


def measure(arguments: argparse.Namespace, processes: Processes) -> dict[str, Any]:
    """Measure every model, work and length; the report goes to stdout, all figures are returned."""
    if processes.size > 1:
        raise ValueError("scaling: is measured in one process; start it without torchrun")
    if min(arguments.lengths) < 2:
        raise ValueError("--lengths: expected 2 or more (a subword and EOS), found 1")
    figure: Path | None = arguments.figure
    if figure is not None and (figure.suffix not in (".png", ".svg", ".pdf") or not figure.parent.is_dir()):
        raise ValueError(
            f"--figure {figure}: expected a name that ends in .png, .svg or .pdf in a folder that is there"
        )
    device = processes.device(arguments.device)
    precision = resolve_precision(arguments.precision, device)
    names = list(dict.fromkeys(arguments.models))
    configs = {name: config_of(MODELS.get(name, name), arguments.set, SET_OTHERWISE, None) for name in names}
    lengths, vocabulary, sentences = sorted(set(arguments.lengths)), arguments.vocabulary, arguments.sentences
    progress, curves, parameters = partial(say, processes), [], {}
    for name, config in configs.items():
        model = build(config.model, vocabulary, vocabulary, config.seed)
        parameters[name] = parameter_count(model)
        for work in works_of(model):
            costs: dict[int, Cost | None] = {}
            for length in lengths:
                task = Task(config, vocabulary, work, length, sentences, device, precision, torch.get_num_threads())
                try:
                    cost = costs[length] = task.measure()
                    found = f"{cost.seconds * 1000:.2f} ms, {cost.peak_bytes:,} bytes"
                except ValueError as error:  # not enough memory: the other figures are still wanted
                    costs[length], found = None, str(error)
                progress(f"{name}, {work}, {length:,} tokens: {found}")
            counts = {length: counted(config.model, vocabulary, work, length, sentences) for length in lengths}
            curves.append(Curve(name, work, costs, counts))
    print(", ".join(f"{name}: {count:,} parameters" for name, count in parameters.items()), end="\n\n")
    print(scaling_report(curves, arguments.fit_from, sentences), flush=True)
    if figure is not None:
        models = {name: config.model.name for name, config in configs.items()}
        scaling_figure(curves, models).savefig(figure)
    return {
        "parameters": parameters,
        "precision": precision,
        "sentences": sentences,
        "scaling": [
            {
                "model": curve.model,
                "work": curve.work,
                "costs": {length: None if cost is None else cost._asdict() for length, cost in curve.costs.items()},
                "operations": curve.counted,
            }
            for curve in curves
        ],
    }
