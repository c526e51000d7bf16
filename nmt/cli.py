"""What every command does at its edges: UTF-8 streams, one-line errors, exit status."""

import argparse
import errno
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

import yaml

from nmt.config import CONFIG_DIR, SearchConfig, parse, to_tree

USER_ERROR = 2


def use_utf8() -> None:
    """Read and write UTF-8 with plain newlines whatever the locale says; a bad byte on stdin is an error."""
    sys.stdin.reconfigure(encoding="utf-8", errors="strict", newline="\n")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8", errors="strict", newline="\n")  # type: ignore[union-attr]
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]


def run(main: Callable[[], None]) -> NoReturn:
    """Run a command and exit: status 0, 2 for what a user can mend, 1 for a failure of the machine, 130 for Ctrl-C.

    A user's mistake (``ValueError`` and its family, a missing file) is one line on stderr; with ``NMT_DEBUG=1`` in the
    environment the traceback stands before it. A defect of the program keeps its traceback.
    """
    use_utf8()
    try:
        main()
        sys.stdout.flush()
        status = 0
    except BrokenPipeError:
        # The reader went away (`| head`): no error. Point stdout elsewhere so that the interpreter's flush is silent.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except KeyboardInterrupt:
        status = _complain("interrupted", 130)
    except (ValueError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        status = _complain(str(error), USER_ERROR)
    except OSError as error:
        hint = ": free some space and run the same command again" if error.errno == errno.ENOSPC else ""
        status = _complain(f"{error}{hint}", 1)
    sys.exit(status)


def _complain(message: str, status: int) -> int:
    if os.environ.get("NMT_DEBUG"):
        traceback.print_exc()
    print(f"error: {message}", file=sys.stderr, flush=True)
    return status


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of every command that translates; their defaults are those of ``configs/search/beam.yaml``."""
    defaults = default_search()
    group = parser.add_argument_group(
        "search", "score(y) = log p(y) / penalty(|y|), |y| counts subwords with EOS; the best finished hypothesis wins"
    )
    add = group.add_argument
    add("--beam-size", type=int, default=defaults.beam_size, metavar="K", help="1 is greedy (default: %(default)s)")
    add(
        "--length-penalty",
        choices=["gnmt", "simple", "none"],
        default=defaults.length_penalty,
        help="gnmt: ((5 + |y|) / 6)^alpha; simple: |y|^alpha; none: 1 (default: %(default)s)",
    )
    add("--alpha", type=float, default=defaults.alpha, metavar="A", help="(default: %(default)s)")
    add(
        "--min-length",
        type=int,
        default=defaults.min_length,
        metavar="N",
        help="subwords before EOS is allowed (default: %(default)s)",
    )
    limit = "a translation has at most a * source length + b subwords (default: %(default)s)"
    add("--max-length-a", type=float, default=defaults.max_length_a, metavar="A", help=limit)
    add("--max-length-b", type=int, default=defaults.max_length_b, metavar="B", help=limit)
    add(
        "--batch-tokens",
        type=int,
        default=defaults.batch_tokens,
        metavar="N",
        help="source tokens searched at once, hypotheses included; changes speed, not results (default: %(default)s)",
    )


def default_search() -> SearchConfig:
    """What ``configs/search/beam.yaml`` says."""
    with open(CONFIG_DIR / "search" / "beam.yaml", encoding="utf-8") as file:
        return parse(SearchConfig, yaml.safe_load(file), "search")


def search_config(arguments: argparse.Namespace) -> SearchConfig:
    """The options of :func:`add_search_arguments` as a configuration.

    Raises:
        ConfigError: an option of the wrong type.
    """
    return parse(SearchConfig, {name: getattr(arguments, name) for name in to_tree(default_search())}, "search")


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to compute: ``--device`` and ``--precision`` (None: what the model was trained with)."""
    group = parser.add_argument_group("computing")
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    group.add_argument(
        "--precision",
        choices=["auto", "fp32", "bf16"],
        help="number format of matrix products (default: training.precision of the model's config)",
    )
