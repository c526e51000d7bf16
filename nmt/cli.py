"""What every command does at its edges: UTF-8 streams, one-line errors, exit status."""

import errno
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

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
