"""What stops a translation or a scoring: one line that says why, a status, no half-written file and no process left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmt import checkpoint
from tests.translate_runs import SHORT, TEXT, by_the_library, call, make_run

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "one", seed=1)


def command(run: Path, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "nmt.translate", "--checkpoint", *map(str, (run, *arguments)), *SHORT]


def children(process: int) -> set[int]:
    """Of a process, and whatever they have started; those that have ended are not among them."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == process and state != "Z":
            found.add(int(stat.parent.name))
    return found.union(*map(children, found))


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_end(processes: set[int]) -> bool:
    end = time.monotonic() + 30
    while any(map(alive, processes)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(alive, processes))


def test_what_was_read_before_a_bad_byte_is_answered(run, monkeypatch, capsys):
    with pytest.raises(ValueError, match="stdin: line 4"):
        call(monkeypatch, capsys, "\n".join(TEXT[:3]).encode() + b"\nf\xfcr\nein hund\n", "--checkpoint", run)
    assert capsys.readouterr().out == "".join(f"{best.text}\n" for [best] in by_the_library(run, TEXT[:3]))


def test_what_has_a_prefix_is_answered_before_their_counts_differ(run, tmp_path, monkeypatch, capsys):
    stdin = "\n".join(TEXT[:3]).encode()
    for count in (2, 5):
        (tmp_path / "prefixes").write_text("\n" * count)
        with pytest.raises(ValueError, match=f"3 lines but target prefix has {count}"):
            call(monkeypatch, capsys, stdin, "--checkpoint", run, "--target-prefix", tmp_path / "prefixes")
        assert capsys.readouterr().out.count("\n") == min(3, count)


@pytest.mark.parametrize("lines", [1, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_full_disk_behind_stdout(run, lines):
    asked = {"input": b"ein hund\n" * lines, "stderr": subprocess.PIPE, "check": False}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command(run, "--beam-size", 1), stdout=full, **asked)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr
    assert b"No space left on device" in done.stderr


@pytest.mark.parametrize(
    ("number", "status", "said", "workers"),
    [
        (signal.SIGINT, 130, b"interrupted", 2),
        (signal.SIGTERM, 143, b"terminated", 1),
        pytest.param(signal.SIGINT, 130, b"interrupted", 1, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 143, b"terminated", 2, marks=pytest.mark.slow),
    ],
)
def test_stopped_while_it_waits_for_a_line(run, tmp_path, number, status, said, workers):
    """Everything it has started ends with it, and the file that was begun is gone."""
    arguments = ["--buffer-size", 1, "--workers", workers, "--output", tmp_path / "out.txt"]
    with subprocess.Popen(command(run, *arguments), **PIPES) as process:
        process.stdin.write(b"ein hund\n")
        process.stdin.flush()
        while not any(part.stat().st_size for part in tmp_path.glob(".out.txt.*")):  # until the first line is answered
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        time.sleep(0.5)
        started = children(process.pid)
        process.send_signal(number)
        assert process.wait(60) == status
        assert process.stderr.read() == b"error: " + said + b"\n"
    assert len(started) >= (2 if workers == 2 else 0)
    assert all_end(started)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["reader goes", "worker killed"])
def test_workers_end_with_what_they_work_for(run, how):
    with subprocess.Popen(command(run, "--buffer-size", 1, "--workers", 2), **PIPES) as process:
        process.stdin.write(b"ein hund\n" * 20)
        process.stdin.flush()
        process.stdout.readline()
        started = children(process.pid)
        if how == "reader goes":
            process.stdout.close()
        else:
            for child in started:
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(child, signal.SIGKILL)
        process.stdin.write(b"ein hund\n" * 200)  # stays open
        process.stdin.flush()
        status = process.wait(60)
        said = process.stderr.read()
    if how == "reader goes":
        assert (status, said) == (0, b"")
    else:
        assert (status, said.count(b"\n")) == (1, 1), said
        assert b"SIGKILL" in said
    assert all_end(started)


def test_a_shortlist_that_is_none(run, tmp_path, monkeypatch, capsys):
    model = checkpoint.resolve(run) / checkpoint.MODEL_FILE
    (tmp_path / "cut").write_bytes(model.read_bytes()[:500])
    (tmp_path / "text").write_text("no shortlist")
    for path in (tmp_path / "cut", tmp_path / "text", model, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=f"{path.name}: no shortlist .*nmt.shortlist"):
            call(monkeypatch, capsys, b"ein hund\n", "--checkpoint", run, "--shortlist", path)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--threads", 0], "--threads"),
        (["--workers", 0], "--workers"),
        (["--seed", 3], "--seed"),
        (["--n-best", 6], "--beam-size"),
        (["--batch-tokens", 0], "--batch-tokens"),
    ],
)
def test_options_out_of_range(run, monkeypatch, capsys, arguments, named):
    with pytest.raises(ValueError, match=named):
        call(monkeypatch, capsys, b"ein hund\n", "--checkpoint", run, *arguments)
