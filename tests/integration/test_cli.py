"""What every command does at its edges, tried on commands of two lines."""

import os
import subprocess
import sys

import pytest


def command(body: str, shell: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """``body`` as a command's ``main``, run by a shell with redirections."""
    code = f"import sys\nfrom nmt.cli import run\ndef main():\n    {body}\nrun(main)"
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {shell}', sys.executable, code],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.mark.parametrize(
    ("redirection", "stdout", "stderr"),
    [
        ("<&-", b"out 0\n", b"err\n"),
        (">&-", b"", b"err\n"),
        ("2>&-", b"out 0\n", b""),
        ("<&- >&- 2>&-", b"", b""),
    ],
)
def test_a_closed_stream_is_an_empty_one(redirection: str, stdout: bytes, stderr: bytes) -> None:
    done = command("print('out', len(sys.stdin.read())); print('err', file=sys.stderr)", redirection)
    assert (done.returncode, done.stdout, done.stderr) == (0, stdout, stderr)


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "LC_ALL": "C"}])
def test_streams_are_utf8_whatever_the_locale(locale: dict[str, str]) -> None:
    done = command("print(chr(0xBD)); print(chr(0xBD), file=sys.stderr)", **locale)
    assert (done.stdout, done.stderr) == ("½\n".encode(), "½\n".encode())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("ValueError('one\\n  two\\n')", 2),
        ("FileNotFoundError(2, 'not there', 'x')", 2),
        ("FileExistsError(17, 'is there', 'x')", 2),
        ("PermissionError(13, 'not yours', 'x')", 2),
        ("OSError(28, 'no space')", 1),
        ("KeyboardInterrupt()", 130),
    ],
)
def test_an_error_is_one_line_and_its_status(error: str, status: int) -> None:
    done = command(f"raise {error}")
    assert done.returncode == status
    assert done.stdout == b""
    assert done.stderr.startswith(b"error: ")
    assert done.stderr.count(b"\n") == 1
    shown = command(f"raise {error}", NMT_DEBUG="1")
    assert shown.returncode == status
    assert b"Traceback" in shown.stderr


def test_a_defect_keeps_its_traceback() -> None:
    done = command("raise TypeError('ours')")
    assert done.returncode == 1
    assert b"Traceback" in done.stderr
