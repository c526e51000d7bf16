"""How far source and target words are from each other in each architecture, traced through its gradients.

The number of times that information is handed from one position to another on the shortest way: from a recurrent state
to the next, from the encoder's state to the decoder, or by reading through attention. And the number of operations in a
row that a training pass needs, at two lengths. Models are small and random: the figures do not depend on sizes.
"""

import argparse
from typing import Any

from nmt.analysis.paths import trace_depth, trace_paths
from nmt.analysis.scaling_report import paths_report
from nmt.benchmark.options import positive
from nmt.composition import composed
from nmt.training.distributed import Processes

TINY = {
    "seq2seq": ["model=seq2seq", "model.reverse_source=false"],
    "seq2seq, source reversed": ["model=seq2seq", "model.reverse_source=true"],
    "bahdanau": ["model=bahdanau"],
    "transformer": ["model=transformer"],
}
"""What is traced, as overrides of the defaults."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command alone."""
    add = parser.add_argument
    add("--source-words", type=positive, default=5, metavar="N", help="without EOS (default: %(default)s)")
    add("--target-words", type=positive, default=5, metavar="N", help="positions to look from (default: %(default)s)")


def measure(arguments: argparse.Namespace, processes: Processes) -> dict[str, Any]:
    """Trace every architecture; the report goes to stdout, all figures are returned."""
    if processes.size > 1:
        raise ValueError("paths: are traced in one process; start it without torchrun")
    traced = {}
    for name, overrides in TINY.items():
        config = composed([*overrides, *arguments.set]).model
        traced[name] = trace_paths(config, arguments.source_words, arguments.target_words), trace_depth(config)
    print(paths_report(traced), flush=True)
    return {"paths": {name: {**paths._asdict(), "depth": depth._asdict()} for name, (paths, depth) in traced.items()}}
