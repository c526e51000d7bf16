"""Translate text with a trained model, one line in, one line out.

    python -m nmt.translate --checkpoint runs/demo_bahdanau_s1 --beam-size 5 < in.txt > out.txt
    python -m nmt.translate --checkpoint runs/a --checkpoint runs/b --input in.txt --output out.txt    # an ensemble
    python -m nmt.translate --checkpoint exported < in.txt    # what nmt.export wrote for ctranslate2

Text is UTF-8 whatever the locale; only \\n ends a line; a blank line gives a blank line. Translations go to stdout, and
nothing else; a summary goes to stderr.

--output-format text: the translation. With --n-best above 1, a line for each of its entries, best first (samples: in
    the order of drawing):
    INPUT LINE, FROM 0 ||| TRANSLATION ||| SCORE
--output-format json: an object for each input line, {"source": ..., "translations": [{"text", "score",
    "log_probability", "tokens" (subwords), "length" (|y|), "finished" (false: cut at the length limit)}, ...]}
"""

import argparse
import json
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import torch

from nmt.checkpoint import load_config, resolve
from nmt.cli import (
    CommandParser,
    add_device_arguments,
    add_sampling_arguments,
    add_search_arguments,
    run,
    sampling,
    search_config,
)
from nmt.data.corpus import decode_lines, read_lines
from nmt.formats import is_exported
from nmt.search import check
from nmt.translator import Translation, Translator

BUFFER_LINES = 4096


def parser() -> CommandParser:
    """Command line of ``nmt.translate``."""
    parser = CommandParser("nmt.translate", __doc__)
    add = parser.add_argument
    add(
        "--checkpoint",
        type=Path,
        required=True,
        action="append",
        metavar="PATH",
        help="a run folder (its best checkpoint), a checkpoint, or what nmt.export wrote for ctranslate2; several "
        "times for an ensemble of checkpoints",
    )
    add("--input", type=Path, metavar="FILE", help="text to translate, also .gz, .xz or .zst (default: stdin)")
    add(
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write; appears under this name when it is complete (default: stdout)",
    )
    add("--output-format", choices=["text", "json"], default="text", help="see above (default: %(default)s)")
    add(
        "--n-best",
        type=int,
        default=1,
        metavar="N",
        help="at most the beam size, but with --sample (default: %(default)s)",
    )
    add(
        "--buffer-size",
        type=int,
        default=BUFFER_LINES,
        metavar="LINES",
        help="read, sorted by length and answered at a time; 1 answers each line as it comes (default: %(default)s)",
    )
    add_search_arguments(parser)
    add_sampling_arguments(parser)
    add_device_arguments(parser)
    add("--threads", type=int, metavar="N", help="CPU threads (default: the library's choice)")
    return parser


def main() -> None:
    arguments = parser().parse_args()
    first = arguments.checkpoint[0]
    config = search_config(arguments, load_config(first if is_exported(first) else resolve(first)).search)
    drawing = sampling(arguments)
    check(config, arguments.n_best, drawing)  # before a model is loaded
    if arguments.threads is not None:
        if arguments.threads < 1:
            raise ValueError(f"threads (--threads): expected 1 or more, found {arguments.threads}")
        torch.set_num_threads(arguments.threads)
    translator = _open(arguments)
    lines = decode_lines(sys.stdin.buffer, "stdin") if arguments.input is None else read_lines(arguments.input)
    as_lines = json_lines if arguments.output_format == "json" else n_best_lines if arguments.n_best > 1 else text_lines
    summary = Summary()
    with whole_file(arguments.output) as output:
        answers = translator.stream(lines, config, arguments.buffer_size, arguments.n_best, drawing)
        for number, (source, translations) in enumerate(summary.count(answers)):
            output.writelines(as_lines(number, source, translations))
            if number % arguments.buffer_size == arguments.buffer_size - 1:
                output.flush()
    print(summary, file=sys.stderr)


def _open(arguments: argparse.Namespace) -> Translator:
    """The translator that ``--checkpoint`` and the options of computing ask for."""
    paths: list[Path] = arguments.checkpoint
    exported = [path for path in paths if is_exported(path)]
    if not exported:
        return Translator.from_checkpoint(paths, arguments.device, arguments.precision)
    if len(paths) > 1:
        raise ValueError(
            f"checkpoint (--checkpoint): {exported[0]} is an exported model, which is no part of an ensemble"
        )
    if arguments.precision != "fp32":
        raise ValueError(
            f"precision (--precision): found {arguments.precision}, but the number format of an exported model is "
            "chosen when it is written: python -m nmt.export --quantization"
        )
    return Translator.from_export(exported[0], arguments.device, threads=arguments.threads)


# --- output -----------------------------------------------------------------------------------------------------------


def text_lines(number: int, source: str, translations: list[Translation]) -> list[str]:
    """The best translation alone."""
    return [f"{translations[0].text}\n"]


def n_best_lines(number: int, source: str, translations: list[Translation]) -> list[str]:
    """One line for each translation, numbered by input line."""
    return [f"{number} ||| {translation.text} ||| {translation.score:.6f}\n" for translation in translations]


def json_lines(number: int, source: str, translations: list[Translation]) -> list[str]:
    """One JSON object."""
    entries = [
        {
            "text": translation.text,
            "score": translation.score,
            "log_probability": translation.log_probability,
            "tokens": translation.tokens,
            "length": translation.length,
            "finished": translation.finished,
        }
        for translation in translations
    ]
    return [json.dumps({"source": source, "translations": entries}, ensure_ascii=False) + "\n"]


class Summary:
    """Counts what goes through ``count``; as a string, the line for stderr."""

    def __init__(self) -> None:
        self.lines = self.blank = self.tokens = self.cut = 0
        self.seconds = 0.0

    def count(self, answers: Iterable[tuple[str, list[Translation]]]) -> Iterator[tuple[str, list[Translation]]]:
        """Pass everything on; the clock runs until the last answer."""
        start = time.perf_counter()
        for source, translations in answers:
            self.lines += 1
            self.blank += translations[0].length == 0
            self.tokens += translations[0].length
            self.cut += not translations[0].finished
            yield source, translations
        self.seconds = time.perf_counter() - start

    def __str__(self) -> str:
        seconds = max(self.seconds, 1e-9)
        return (
            f"{self.lines} lines ({self.blank} blank) in {self.seconds:.1f} s without loading: "
            f"{(self.lines - self.blank) / seconds:.1f} sentences/s, {self.tokens / seconds:.0f} target tokens/s; "
            f"{self.cut} cut at the length limit"
        )


@contextmanager
def whole_file(path: Path | None) -> Iterator[TextIO]:
    """Where translations go: stdout, or a file that has its name only once everything is in it.

    A name that exists and is no regular file (a named pipe, /dev/null) is written to directly.
    """
    if path is None:
        yield sys.stdout
        return
    final = Path(os.path.realpath(path))  # through a link to what it points to
    if not final.parent.is_dir():
        raise ValueError(f"output (--output): no folder {final.parent}; make it first")
    if final.exists() and not stat.S_ISREG(final.stat().st_mode):
        with open(final, "w", encoding="utf-8", newline="\n") as output:
            yield output
        return
    temporary = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as output:
            yield output
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    run(main)
