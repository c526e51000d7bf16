"""Preparations that are killed, meet a full disk or each other, and prepared data that rots."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest

from nmt.config import DataConfig
from nmt.data import held_out, preparation, staging
from nmt.data.dataset import prepare
from nmt.data.store import FlatRows, RowWriter
from tests.data_configs import files_config, small_corpus
from tests.processes import processes_of


@pytest.fixture
def config(tmp_path: Path) -> DataConfig:
    small_corpus(tmp_path / "text")
    return files_config(tmp_path / "text", tmp_path / "cache")


def quiet(line: str) -> None:
    """A log nobody reads."""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


KILLED_WHILE = {
    "reading": "training_text.pack = stop",
    "finding duplicates": "training_text._decide = stop",
    "training subwords": "preparation.train_tokenizers = stop",
    "encoding": "training_rows._Writing.write = stop",
    "writing what was dropped": "training_rows.Quarantine.close = stop",
    "sealing": "dataset._seal = stop",
    "publishing": "dataset.publish = stop",
}
"""What stops at each stage, while processes that were started for it are still there."""

PREPARE = """
import signal, sys, time
from pathlib import Path
from nmt.data import dataset, parallel, preparation, training_rows, training_text
from tests.data_configs import files_config

def stop(*args):
    print("here", flush=True)
    time.sleep(100)

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell starts in the background
parallel.ALONE, parallel._cores, training_text.CHUNK = 1, lambda: 2, 2
{fault}
config = files_config(Path({folder!r}) / "text", Path({folder!r}) / "cache", filters={{"quarantine": True}})
{run}
"""


def start(folder: Path, fault: str, run: str = "dataset.prepare(config, lambda line: None)") -> subprocess.Popen[str]:
    """A preparation in processes of its own, of a text with a pair that is dropped, when it has met the fault."""
    small_corpus(folder / "text")
    with (folder / "text" / "train.en").open("r+b") as stream:
        stream.write(b" " * len("a dog runs ."))
    code = PREPARE.format(fault=fault, folder=str(folder), run=run)
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n", process.communicate()[1]
    return process


def wait_until_gone(processes: list[int]) -> None:
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{process}").exists() for process in processes):
        assert time.monotonic() < deadline, "a process stays"
        time.sleep(0.05)


@pytest.mark.parametrize("moment", KILLED_WHILE)
def test_a_killed_preparation_leaves_nothing_that_passes_for_whole(tmp_path: Path, moment: str) -> None:
    process = start(tmp_path, KILLED_WHILE[moment])
    others = processes_of(process.pid)
    assert len(others) == (2 if moment in ("reading", "encoding", "writing what was dropped") else 0)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = names(tmp_path / "cache")
    assert len(left) == 1
    assert left[0].endswith(".partial")
    wait_until_gone(others)

    config = files_config(tmp_path / "text", tmp_path / "cache", filters={"quarantine": True})
    data = prepare(config, quiet)
    assert len(data.train) == 19
    assert names(tmp_path / "cache") == [data.folder.name]


AS_COMMAND = """
from nmt.cli import run
run(lambda: dataset.prepare(config, lambda line: None))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["reading", "encoding"])
def test_a_signal_ends_all_processes_and_takes_the_files_away(
    tmp_path: Path, moment: str, number: signal.Signals
) -> None:
    process = start(tmp_path, KILLED_WHILE[moment], AS_COMMAND)
    others = processes_of(process.pid)
    assert len(others) == 2
    for each in (process.pid, *others):  # as a terminal does it
        with suppress(ProcessLookupError):  # ended by the first one by now
            os.kill(each, number)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 128 + number
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert names(tmp_path / "cache") == []
    wait_until_gone(others)


@pytest.mark.parametrize("moment", ["reading", "encoding"])
def test_a_process_that_is_killed_ends_the_preparation_with_one_line(tmp_path: Path, moment: str) -> None:
    """By whoever runs out of memory: the first one to be taken. The rest of the text is there to be worked on."""
    fault = KILLED_WHILE[moment].split(" = ")[0]
    kill = f"""
whole = {fault}
def stop(*args):
    {fault} = whole
    print("here", flush=True)
    sys.stdin.read()
    return whole(*args)
{fault} = stop
"""
    small_corpus(tmp_path / "text")
    code = PREPARE.format(fault=kill, folder=str(tmp_path), run=AS_COMMAND)
    with (tmp_path / "text" / "train.en").open("r+b") as stream:
        stream.write(b" " * len("a dog runs ."))
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    first, *_ = others = processes_of(process.pid)
    os.kill(first, signal.SIGKILL)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 1
    assert said.startswith("error: a process of the preparation has ended: SIGKILL")
    assert said.count("\n") == 1
    assert names(tmp_path / "cache") == []
    wait_until_gone(others)


def test_what_a_killed_one_left_goes_with_the_next_preparation_of_anything(config: DataConfig, tmp_path: Path) -> None:
    remains = tmp_path / "cache" / ".other-0123.partial"
    remains.mkdir(parents=True)
    (remains / "train.source.txt").write_text("half")
    data = prepare(config, quiet)
    assert names(tmp_path / "cache") == [data.folder.name]


def test_an_interrupted_preparation_takes_its_files_with_it(
    config: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(preparation, "train_tokenizers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        prepare(config, quiet)
    assert names(tmp_path / "cache") == []


class FullDisk:
    """A file that takes some bytes and no more."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        self._stream.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("place", ["held-out text", "training text", "duplicates", "rows"])
def test_a_full_disk_is_said_and_leaves_nothing(
    config: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "held-out text":
        whole = held_out.write_lines
        monkeypatch.setattr(held_out, "write_lines", lambda stream, lines: whole(FullDisk(stream), lines))
    elif place == "rows":
        append = RowWriter.append

        def full_rows(self: RowWriter, rows: FlatRows) -> None:
            self._ids = FullDisk(self._ids)  # type: ignore[assignment]
            append(self, rows)

        monkeypatch.setattr(RowWriter, "append", full_rows)
    else:
        opened = Path.open

        def open_full(self: Path, mode: str = "r", *options: object) -> object:
            stream = opened(self, mode, *options)  # type: ignore[call-overload]
            full = self.name == "source.txt" if place == "training text" else self.name.startswith("keys")
            if not full or mode == "rb":
                return stream
            stream.close()
            return opened(Path("/dev/full"), mode)

        monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(OSError, match=r"cannot write the prepared data in .*cache.*No space left") as caught:
        prepare(config, quiet)
    assert caught.value.errno == errno.ENOSPC
    assert names(tmp_path / "cache") == []
    monkeypatch.undo()
    assert len(prepare(config, quiet).train) == 20


def test_a_file_may_grow_no_further(tmp_path: Path) -> None:
    """The kernel's own refusal, by a limit on the size of files."""
    small_corpus(tmp_path / "text")
    code = f"""
import resource, signal
from pathlib import Path
from nmt.data.dataset import prepare
from tests.data_configs import files_config
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
try:
    prepare(files_config(Path({str(tmp_path / "text")!r}), Path({str(tmp_path / "cache")!r})), lambda line: None)
except OSError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert "cannot write the prepared data" in done.stdout, done.stderr
    assert names(tmp_path / "cache") == []


def test_two_at_once_prepare_once(config: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = threading.Event()
    build = preparation.train_tokenizers
    builds = 0

    def slow(*args: object) -> object:
        nonlocal builds
        builds += 1
        started.set()
        time.sleep(0.5)
        return build(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(preparation, "train_tokenizers", slow)
    folders: list[Path] = []
    said: list[str] = []
    threads = [threading.Thread(target=lambda: folders.append(prepare(config, said.append).folder)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert builds == 1
    assert len(set(folders)) == 1
    assert len(folders) == 3
    assert any("waiting" in line for line in said)
    assert names(tmp_path / "cache") == [folders[0].name]


def test_a_folder_that_another_takes_away_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making the folder and opening it, the process that was waited for may have given it its final name."""
    opened = os.open
    moments: list[str] = []

    def open_late(path: Path, *flags: int) -> int:
        if path.name.endswith(".partial") and not moments:
            moments.append("taken away")
            path.rmdir()
        return opened(path, *flags)

    monkeypatch.setattr(os, "open", open_late)
    with staging.claim(tmp_path / "data", print) as partial:
        assert partial.is_dir()
    assert moments


def test_two_processes_at_once(tmp_path: Path) -> None:
    small_corpus(tmp_path / "text")
    code = f"""
from pathlib import Path
from nmt.data.dataset import prepare
from tests.data_configs import files_config
data = prepare(files_config(Path({str(tmp_path / "text")!r}), Path({str(tmp_path / "cache")!r})), lambda line: None)
print(data.folder, len(data.train), data.tokenizers.digest)
"""
    command = [sys.executable, "-c", code]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {process.communicate(timeout=300)[0] for process in processes}
    assert len(said) == 1
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(names(tmp_path / "cache")) == 1


FILES = ["train.source.ids", "train.target.offsets", "validation.target.txt", "tokenizer.model", "preparation.json"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["cut", "gone", "empty"])
def test_damaged_data_is_prepared_again_aloud(config: DataConfig, name: str, damage: str) -> None:
    first = prepare(config, quiet)
    rows = [first.train.pair(i)[0].tolist() for i in range(20)]
    path = first.folder / name
    if damage == "gone":
        path.unlink()
    else:
        os.truncate(path, path.stat().st_size // 2 if damage == "cut" else 0)
    said: list[str] = []
    again = prepare(config, said.append)
    assert any("damaged" in line and "preparing again" in line for line in said)
    assert again.folder == first.folder
    assert again.tokenizers.digest == first.tokenizers.digest
    assert [again.train.pair(i)[0].tolist() for i in range(20)] == rows


def test_another_tokenizer_in_the_folder_is_noticed(config: DataConfig, tmp_path: Path) -> None:
    first = prepare(config, quiet)
    data = bytearray((first.folder / "tokenizer.model").read_bytes())
    piece = max(first.tokenizers.source.pieces(range(4, 60)), key=len).encode()
    position = data.index(piece)
    data[position : position + len(piece)] = piece[:-2] + b"qz"
    (first.folder / "tokenizer.model").write_bytes(data)
    said: list[str] = []
    assert prepare(config, said.append).tokenizers.digest == first.tokenizers.digest
    assert any("preparing again" in line for line in said)
