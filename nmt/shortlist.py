"""Make the vocabulary shortlist of a model, with which it translates faster: nmt.translate --shortlist FILE.

    python -m nmt.shortlist --prepared data/cache/demo-0123456789abcdef --output runs/demo_bahdanau_s1/shortlist

It is learned from the training pairs (see nmt/lexicon.py) of a prepared folder, whose name nmt.prepare prints, and fits
every model that was trained on data with the same subwords. Translations change where the shortlist lacks a subword
that the model would have taken: compare the score on a validation set, with --per-word raised if it falls.
"""

import os
import sys
from pathlib import Path

import numpy as np

from nmt.cli import CommandParser, run
from nmt.data.dataset import open_prepared
from nmt.lexicon import build


def parser() -> CommandParser:
    """Command line of ``nmt.shortlist``."""
    parser = CommandParser("nmt.shortlist", __doc__)
    add = parser.add_argument
    add("--prepared", type=Path, required=True, metavar="FOLDER", help="prepared data, as nmt.prepare made it")
    add("--output", type=Path, required=True, metavar="FILE", help="where to write")
    add("--per-word", type=int, default=40, metavar="N", help="candidates of a source subword (default: %(default)s)")
    add("--frequent", type=int, default=500, metavar="N", help="subwords always allowed (default: %(default)s)")
    add("--pairs", type=int, default=100_000, metavar="N", help="learn from at most so many (default: %(default)s)")
    add("--seed", type=int, default=1, help="of the choice among more pairs (default: %(default)s)")
    return parser


def main() -> None:
    arguments = parser().parse_args()
    for name in ("per_word", "frequent", "pairs"):
        if getattr(arguments, name) < 1:
            option = name.replace("_", "-")
            raise ValueError(f"--{option}: expected 1 or more, found {getattr(arguments, name)}")
    if not arguments.output.parent.is_dir():
        raise ValueError(f"output (--output): no folder {arguments.output.parent}; make it first")
    prepared = open_prepared(arguments.prepared)
    train, tokenizers = prepared.train, prepared.tokenizers
    chosen = np.arange(len(train))
    if len(train) > arguments.pairs:
        chosen = np.sort(np.random.default_rng(arguments.seed).choice(len(train), arguments.pairs, replace=False))
    shortlist = build(
        ((train.source[row], train.target[row]) for row in chosen.tolist()),
        (tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size),
        tokenizers.digest,
        arguments.per_word,
        arguments.frequent,
    )
    temporary = arguments.output.with_name(f".{arguments.output.name}.{os.getpid()}.part")
    try:
        shortlist.save(temporary)
        os.replace(temporary, arguments.output)
    finally:
        temporary.unlink(missing_ok=True)
    print(f"{arguments.output}: learned from {len(chosen):,} pairs", file=sys.stderr)


if __name__ == "__main__":
    run(main)
