"""Translate a test set with a checkpoint and score it: BLEU, chrF, perplexity, speed.

    python -m nmt.evaluate --checkpoint runs/demo_bahdanau_s1 --split test
    python -m nmt.evaluate --checkpoint runs/demo_bahdanau_s1 --source in.en --reference ref.de

Writes hypotheses.txt, references.txt, sources.txt, likelihoods.tsv (-log p of every reference, and its subwords),
scores.txt (of every translation) and metrics.json to <run>/evaluation/<split>_beam<k>/, and a table to stdout.
`sacrebleu references.txt -i hypotheses.txt` in that folder gives the same BLEU.
"""

import sys
from pathlib import Path

from nmt.analysis.evaluated_runs import evaluate_run
from nmt.analysis.evaluation import own_files
from nmt.analysis.report import evaluation_report
from nmt.checkpoint import load_config, resolve
from nmt.cli import (
    CommandParser,
    add_checkpoint_argument,
    add_device_arguments,
    add_search_arguments,
    run,
    search_config,
)
from nmt.device import resolve_device


def parser() -> CommandParser:
    """Command line of ``nmt.evaluate``."""
    parser = CommandParser("nmt.evaluate", __doc__)
    add = parser.add_argument
    add_checkpoint_argument(parser)
    add(
        "--split",
        choices=["test", "validation"],
        help="of the data the run was trained on (default: test; validation where there is no test split)",
    )
    add("--source", type=Path, metavar="FILE", help="translate this file instead, one sentence a line ...")
    add("--reference", type=Path, metavar="FILE", help="... and score against this one, line by line")
    add("--output", type=Path, metavar="DIR", help="write here instead of <run>/evaluation/<split>_beam<k>")
    add_search_arguments(parser)
    add_device_arguments(parser)
    return parser


def main() -> None:
    arguments = parser().parse_args()
    if (arguments.source is None) != (arguments.reference is None):
        raise ValueError("--source and --reference go together: one file of sentences, one of their translations")
    if arguments.source is not None and arguments.split is not None:
        raise ValueError("--split names a part of the run's own data: leave it out beside --source and --reference")
    if arguments.output is not None and arguments.output.exists() and not arguments.output.is_dir():
        raise ValueError(f"--output {arguments.output}: is a file; expected a folder, or a name for a new one")
    done = evaluate_run(
        arguments.checkpoint,
        own_files(arguments.source, arguments.reference) if arguments.source else arguments.split or "test",
        search_config(arguments, load_config(resolve(arguments.checkpoint)).search),
        resolve_device(arguments.device),
        arguments.precision,
        log=lambda message: print(message, file=sys.stderr, flush=True),
        output=arguments.output,
    )
    print(evaluation_report(done.metrics))
    print(f"written: {done.folder}", file=sys.stderr)


if __name__ == "__main__":
    run(main)
