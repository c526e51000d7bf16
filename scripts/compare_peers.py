"""The same models in other toolkits and here, in turn, on this machine: how fast they train, how fast they translate.

    python scripts/compare_peers.py train --data FOLDER --rounds 3 --seconds 40 --models T R > peers.md
    python scripts/compare_peers.py translate --checkpoint RUN --input test.de --reference test.en > peers.md

The peers are installed from the package index, each into an environment of its own under --work; environments and
prepared data are reused by the next call. A round runs every side once, each after a matrix product whose rate shows
how fast the machine is just then; even rounds go backwards. Nothing else should run on the machine.

Markdown goes to stdout; all runs so far, after each of them, to --output as JSON. Status 1 if one of our own sides
failed; a peer that does is reported, and the rest goes on.
"""

import argparse
import json
import os
import platform
import signal
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

from peers import report, training, translation, translation_report
from peers.environments import PeerError
from peers.report import Record
from peers.sides import BATCH_TOKENS
from peers.turns import torch_version

TRAIN = """Train the same two models in JoeyNMT, in OpenNMT-py and here, in turn: target tokens/s of all sides.

--data holds train.de, train.en, val.de and val.en (plain or compressed), such as Multi30k. All sides read the same
subwords, have the same token budget a batch and the same recipe (peers/sides.py), neither validate nor save while they
are timed, and are counted by the same clock (peers/runner.py).

A run takes --warm-up and --seconds and some 20 seconds more, and there are 13 of them in a round of both models: with
--rounds 3 --seconds 40 about 50 minutes, and 5 more the first time.
"""

TRANSLATE = """Translate the same text with the same parameters in OpenNMT-py, CTranslate2 and here, in turn.

--checkpoint is a Transformer that was trained here (pre-norm, sinusoidal positions); peers/opennmt_checkpoint.py and
nmt.export write it in the others' formats. Every side is a fresh process that loads its model, translates the first
--warm-up sentences twice, and then, for each beam size, the whole text: the clock starts with a list of lines and stops
with a list of lines, SentencePiece on both sides included (peers/translate_runner.py). BLEU stands beside the speed,
and in how many sentences the text is that of our own first side.
"""


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    for name, text, add_options in (("train", TRAIN, _add_train), ("translate", TRANSLATE, _add_translate)):
        form = argparse.RawDescriptionHelpFormatter
        command = commands.add_parser(name, help=text.split("\n", 1)[0], description=text, formatter_class=form)
        add_options(command)
        add = command.add_argument
        add("--rounds", type=int, default=3, metavar="N", help="runs of every side (default: %(default)s)")
        add("--threads", type=int, default=os.cpu_count(), metavar="N", help="of every side (default: all cores)")
        add("--work", type=Path, default=Path("runs/peers"), metavar="DIR", help="what is kept (default: %(default)s)")
        add("--output", type=Path, metavar="FILE", help="JSON of all runs (default: peers.json in --work)")
    parsed = parser.parse_args(arguments)
    for name in ("rounds", "threads", "seconds", "batch_tokens", "longest"):
        if getattr(parsed, name, 1) <= 0:
            parser.error(f"--{name.replace('_', '-')}: expected a number above 0, found {getattr(parsed, name)}")
    if parsed.warm_up < 0:
        parser.error(f"--warm-up: expected 0 or more, found {parsed.warm_up}")
    if parsed.what == "train":
        for split, language in product(("train", "val"), (parsed.source, parsed.target)):
            name = f"{split}.{language}"
            if not any(parsed.data.glob(f"{name}*")):
                parser.error(f"--data: {parsed.data} holds no {name}")
    elif min(parsed.beam_size) < 1:
        parser.error(f"--beam-size: expected 1 or more, found {min(parsed.beam_size)}")
    return parsed


def _add_train(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="FOLDER", help="holds train.<language> and val.<language>")
    add("--source", default="de", metavar="LANGUAGE", help="translated from (default: %(default)s)")
    add("--target", default="en", metavar="LANGUAGE", help="translated into (default: %(default)s)")
    add("--models", nargs="+", choices=["T", "R"], default=["T", "R"], help="(default: both)")
    add("--seconds", type=float, default=60, metavar="S", help="measured in every run (default: %(default)s)")
    add("--warm-up", type=float, default=10, metavar="S", help="trained before that (default: %(default)s)")
    our = "for our own runs, as nmt.train takes them"
    add("--override", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=our)


def _add_translate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--checkpoint", type=Path, required=True, metavar="PATH", help="a run folder or a checkpoint")
    add("--input", type=Path, required=True, metavar="FILE", help="text to translate, no line blank")
    add("--reference", type=Path, required=True, metavar="FILE", help="its translation, line by line")
    add("--beam-size", nargs="+", type=int, default=[1, 5], metavar="K", help="1 is greedy (default: 1 5)")
    add(
        "--batch-tokens",
        type=int,
        default=4096,
        metavar="N",
        help="source tokens at once, hypotheses included, on every side (default: %(default)s)",
    )
    add(
        "--longest",
        type=int,
        default=256,
        metavar="N",
        help="target tokens at most, on every side: a model that does not end some sentences is measured there by "
        "how it handles few rows (default: %(default)s)",
    )
    add("--alpha", type=float, default=1.0, metavar="A", help="score(y) = log p(y) / |y|^A (default: %(default)s)")
    add("--precision", nargs="+", default=["fp32"], metavar="NAME", help="of our own sides (default: fp32)")
    add("--shortlist", type=Path, metavar="FILE", help="of nmt.shortlist: our own sides also with it")
    add("--warm-up", type=int, default=32, metavar="N", help="sentences before each (default: %(default)s)")


def main() -> None:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is running is ended as well
    settings = {
        "torch": torch_version(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    settings |= {name: str(value) if isinstance(value, Path) else value for name, value in vars(arguments).items()}
    output = arguments.output or arguments.work / "peers.json"

    def keep(records: list[Record]) -> None:
        text = json.dumps({**settings, "runs": records}, indent=2, ensure_ascii=False)
        output.write_text(text + "\n", encoding="utf-8")

    machine = f"torch {settings['torch']}, {settings['machine']}, {arguments.threads} threads"
    compare, markdown, title = {"train": _train, "translate": _translate}[arguments.what](arguments)
    records = compare(arguments, keep)
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(markdown(f"{machine}, {title}".strip(), records), end="", flush=True)
    if any("error" in record and record["toolkit"] == "nmt" for record in records):
        sys.exit(1)


Comparison = tuple[Callable[..., list[Record]], Callable[[str, list[Record]], str], str]


def _train(arguments: argparse.Namespace) -> Comparison:
    title = (
        f"batches of up to {BATCH_TOKENS:,} tokens with padding, {arguments.seconds:g} s measured after "
        f"{arguments.warm_up:g} s of training, in every run. {' '.join(arguments.override)}"
    )
    return training.compare, report.markdown, title


def _translate(arguments: argparse.Namespace) -> Comparison:
    title = (
        f"batches of up to {arguments.batch_tokens:,} source tokens with padding and hypotheses; "
        f"score(y) = log p(y) / |y|^{arguments.alpha:g}; at most {arguments.longest:,} target tokens."
    )
    return translation.compare, translation_report.markdown, title


if __name__ == "__main__":
    try:
        main()
    except (PeerError, ValueError) as error:
        sys.exit(f"error: {error}")
