"""Preparations that are killed, meet a full disk or each other, and prepared data that rots."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

import pytest

from nmt.config import DataConfig
from nmt.data import preparation, staging
from nmt.data.dataset import prepare
from tests.data_configs import files_config, small_corpus


@pytest.fixture
def config(tmp_path: Path) -> DataConfig:
    small_corpus(tmp_path / "text")
    return files_config(tmp_path / "text", tmp_path / "cache")


def quiet(line: str) -> None:
    """A log nobody reads."""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


KILLED_WHILE = {
    "reading": "preparation.train_tokenizers = stop",
    "encoding": "preparation.count_repeats = stop",
    "publishing": "dataset.publish = stop",
}


@pytest.mark.parametrize("moment", KILLED_WHILE)
def test_a_killed_preparation_leaves_nothing_that_passes_for_whole(tmp_path: Path, moment: str) -> None:
    small_corpus(tmp_path / "text")
    code = f"""
import sys, time
from pathlib import Path
from nmt.data import dataset, preparation
from tests.data_configs import files_config

def stop(*args):
    print("here", flush=True)
    time.sleep(100)

{KILLED_WHILE[moment]}
dataset.prepare(files_config(Path({str(tmp_path / "text")!r}), Path({str(tmp_path / "cache")!r})), lambda line: None)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    left = names(tmp_path / "cache")
    assert len(left) == 1
    assert left[0].endswith(".partial")

    data = prepare(files_config(tmp_path / "text", tmp_path / "cache"), quiet)
    assert len(data.train) == 20
    assert names(tmp_path / "cache") == [data.folder.name]


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


@pytest.mark.parametrize("writer", ["write_lines", "RowWriter"])
def test_a_full_disk_is_said_and_leaves_nothing(
    config: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    whole = getattr(preparation, writer)

    def full_lines(stream: BinaryIO, lines: object) -> object:
        return whole(FullDisk(stream), lines)

    def full_rows(*args: object) -> object:
        rows = whole(*args)
        rows._ids = FullDisk(rows._ids)
        return rows

    monkeypatch.setattr(preparation, writer, full_lines if writer == "write_lines" else full_rows)
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
