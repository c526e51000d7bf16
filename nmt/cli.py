"""What every command does at its edges: UTF-8 streams, one-line errors, exit status."""

import argparse
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Literal, NoReturn

import yaml

from nmt.config import CONFIG_DIR, Sampling, SearchConfig, parse, to_tree

USER_ERROR = 2

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says when there is no room for a file."""

_WRONG_PATH = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def use_utf8() -> None:
    """Read and write UTF-8 with plain newlines whatever the locale says; a bad byte on stdin is an error.

    A stream that was closed before we began (``<&-``, some daemons) is /dev/null.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (as long as the process)
    sys.stdin.reconfigure(encoding="utf-8", errors="strict", newline="\n")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8", errors="strict", newline="\n")  # type: ignore[union-attr]
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]


def stdin_bytes() -> BinaryIO:
    """The bytes of stdin, through a buffer of their own.

    A thread may wait for the next line when this process ends. It would hold the lock of ``sys.stdin.buffer`` then,
    which the interpreter takes for a fatal error.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except io.UnsupportedOperation:  # a program has put another stream in its place
        return sys.stdin.buffer


class Terminated(KeyboardInterrupt):
    """SIGTERM."""


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def run(main: Callable[[], None]) -> NoReturn:
    """Run a command and exit: status 0, 2 for what a user can mend, 1 for a failure of the machine, 130 for Ctrl-C and
    143 for SIGTERM, which takes half-written files away.

    A user's mistake (``ValueError`` and its family, a path that does not lead where it should) is one line on stderr;
    with ``NMT_DEBUG=1`` in the environment the traceback stands before it. A defect of the program keeps its traceback.
    """
    use_utf8()
    signal.signal(signal.SIGTERM, _terminate)
    os.register_at_fork(after_in_child=partial(signal.signal, signal.SIGTERM, signal.SIG_DFL))
    try:
        main()
        sys.stdout.flush()
        status = 0
    except BrokenPipeError:
        # The reader went away (`| head`): no error. Point stdout elsewhere so that the interpreter's flush is silent.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except Terminated:
        status = _complain("terminated", 128 + signal.SIGTERM)
    except KeyboardInterrupt:
        status = _complain("interrupted", 130)
    except (ValueError, *_WRONG_PATH) as error:
        status = _complain(str(error), USER_ERROR)
    except OSError as error:
        hint = ": free some space and run the same command again" if error.errno in FULL else ""
        status = _complain(f"{error}{hint}", 1)
    sys.exit(status)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Says which output there was no room for: a failed write of the system does not."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in FULL:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _complain(message: str, status: int) -> int:
    if os.environ.get("NMT_DEBUG"):
        traceback.print_exc()
    rank = os.environ.get("RANK", "0")  # set by torchrun
    who = f"process {rank}: " if rank != "0" else ""
    line = "; ".join(part.strip() for part in message.splitlines() if part.strip())  # a library's message may have many
    print(f"error: {who}{line}", file=sys.stderr, flush=True)
    return status


class CommandParser(argparse.ArgumentParser):
    """Options of a command; its help is the module's docstring as it stands. A mistake is one line and status 2."""

    def __init__(self, prog: str, description: str | None) -> None:
        super().__init__(prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong without reciting every option there is."""
        self.exit(USER_ERROR, f"error: {message}; python -m {self.prog} --help lists all options\n")


def add_checkpoint_argument(parser: argparse.ArgumentParser, several: bool = False, more: str = "") -> None:
    """``--checkpoint``: a path, or a list of them where ``several`` make an ensemble; ``more`` ends the help."""
    help_text = (
        f"a run folder (its best checkpoint) or a checkpoint{'; several are an ensemble' if several else ''}{more}"
    )
    if several:
        parser.add_argument(
            "--checkpoint", type=Path, required=True, nargs="+", action="extend", metavar="PATH", help=help_text
        )
    else:
        parser.add_argument("--checkpoint", type=Path, required=True, metavar="PATH", help=help_text)


def add_align_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose attention to look at: ``--align-layer`` and ``--align-head``."""
    parser.add_argument(
        "--align-layer",
        type=_layer_or_head,
        metavar="N|mean",
        help="whose attention, of the decoder's layers from 1 (default: the last but one, which comes nearest to word "
        "alignment; the only one)",
    )
    parser.add_argument(
        "--align-head", type=_layer_or_head, metavar="N|mean", help="... and of its heads from 1 (default: mean)"
    )


def _layer_or_head(value: str) -> int | Literal["mean"]:
    """A number or ``mean``."""
    if value == "mean":
        return "mean"
    try:
        return int(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected a number from 1 or mean, found {value}") from error


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of every command that translates; :func:`search_config` fills in what is not given."""
    usual = default_search()

    def default(name: str) -> str:
        if usual is None:
            return "(default: the one that the model was validated with)"
        value = getattr(usual, name)
        return f"(default: {'off' if value is None or value is False else value})"

    group = parser.add_argument_group(
        "search", "score(y) = log p(y) / penalty(|y|), |y| counts subwords with EOS; the best finished hypothesis wins"
    )
    add = group.add_argument
    add("--beam-size", type=int, metavar="K", help=f"1 is greedy {default('beam_size')}")
    add(
        "--length-penalty",
        choices=["gnmt", "simple", "none"],
        help=f"gnmt: ((5 + |y|) / 6)^alpha; simple: |y|^alpha; none: 1 {default('length_penalty')}",
    )
    add("--alpha", type=float, metavar="A", help=f"exponent of the penalty {default('alpha')}")
    add("--min-length", type=int, metavar="N", help=f"subwords before EOS is allowed {default('min_length')}")
    limit = "a translation has at most a * source length + b subwords, EOS counted on both sides"
    add("--max-length-a", type=float, metavar="A", help=f"{limit} {default('max_length_a')}")
    add("--max-length-b", type=int, metavar="B", help=f"{limit} {default('max_length_b')}")
    add(
        "--patience",
        type=float,
        metavar="P",
        help=f"stop a sentence when P x beam size translations have ended, not when no better one can come: faster "
        f"{default('patience')}",
    )
    add(
        "--no-repeat-ngram",
        type=int,
        metavar="N",
        help=f"no N subwords in a row twice in a translation; 0: they may {default('no_repeat_ngram')}",
    )
    add(
        "--forbid-unk",
        action="store_true",
        default=None,
        help=f"never produce the unknown subword {default('forbid_unk')}",
    )
    add(
        "--batch-tokens",
        type=int,
        metavar="N",
        help=f"source tokens searched at once, hypotheses included; changes speed, not text {default('batch_tokens')}",
    )


def default_search() -> SearchConfig | None:
    """What ``configs/search/beam.yaml`` says; None where a checkout has lost its ``configs``."""
    path = CONFIG_DIR / "search" / "beam.yaml"
    if not path.is_file():
        return None
    return parse(SearchConfig, yaml.safe_load(path.read_text(encoding="utf-8")), "search")


def search_config(arguments: argparse.Namespace, stored: SearchConfig) -> SearchConfig:
    """The options of :func:`add_search_arguments` as a configuration.

    Args:
        arguments: the command line.
        stored: of the checkpoint; stands in for ``configs/search/beam.yaml`` where that is gone.

    Raises:
        ConfigError: an option of the wrong type.
    """
    tree = to_tree(default_search() or stored)
    given = {name: getattr(arguments, name) for name in tree if getattr(arguments, name) is not None}
    return parse(SearchConfig, tree | given, "search")


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of a command that can draw translations; :func:`sampling` reads them."""
    group = parser.add_argument_group(
        "sampling",
        "--n-best translations of a line, drawn independently (two may be equal), in the order of drawing; each has\n"
        "the score that the model gives it, whatever temperature and filters are. The same line in the same place of\n"
        "the input gives the same samples, whatever is translated with it",
    )
    add = group.add_argument
    add("--sample", action="store_true", help="draw instead of searching; lengths and what is forbidden hold as ever")
    add("--temperature", type=float, metavar="T", help="draw from p^(1/T); towards 0 it is greedy search (default: 1)")
    add("--top-k", type=int, metavar="K", help="... only among the K most probable subwords; 0: all (default: 0)")
    add(
        "--top-p",
        type=float,
        metavar="P",
        help="... only among the fewest most probable subwords that have the probability P together (default: 1, all)",
    )
    add("--seed", type=int, metavar="S", help="another gives other samples (default: 1)")


def sampling(arguments: argparse.Namespace) -> Sampling | None:
    """The options of :func:`add_sampling_arguments`; None: search.

    Raises:
        ValueError: options that would do nothing.
    """
    usual = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "seed": 1}
    given = {name: getattr(arguments, name) for name in usual if getattr(arguments, name) is not None}
    if arguments.sample and arguments.beam_size is not None:
        raise ValueError("--beam-size: there is no beam with --sample; leave one of them out (--n-best says how many)")
    if not arguments.sample and given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"{names}: without effect unless translations are drawn; add --sample or leave it out")
    return parse(Sampling, usual | given, "sampling") if arguments.sample else None


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to compute: ``--device`` and ``--precision``.

    float32 unless asked otherwise, whatever the model was trained in: rounded to bf16, near-ties fall one way or the
    other with the batch a sentence happens to be in.
    """
    group = parser.add_argument_group("computing")
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    group.add_argument(
        "--precision",
        choices=["fp32", "bf16", "int8", "auto"],
        default="fp32",
        help="number format of matrix products; bf16 is faster where the hardware has it, but lets the batch that a "
        "sentence is in show in its translation now and then; int8 is faster on any processor and lets nothing show; "
        "auto: bf16 if the hardware has it (default: %(default)s)",
    )
