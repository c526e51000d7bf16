"""Outputs that cannot be written, a full disk and a file system that is read only: one line, status 1, nothing left."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nmt import average, export, score, translate
from nmt.cli import run as run_command
from tests.tiny_run import MODELS
from tests.translate_runs import SHORT, make_run
from tests.translate_runs import TEXT as SENTENCES

TEXT = "ein hund läuft\n" * 400


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(
        tmp_path_factory.mktemp("runs") / "one", 1, None, SENTENCES, "model=transformer", *MODELS["transformer"]
    )


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(
        tmp_path_factory.mktemp("runs") / "other", 1, None, SENTENCES, "model=transformer", *MODELS["transformer"]
    )


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a file system of memory with the given options."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(options: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
        return folder

    yield mount
    if os.path.ismount(folder):
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def arguments(
    command: str, run: Path, other: Path, text: Path, output: Path
) -> tuple[Callable[[], None], list[object]]:
    """What is called, and with which arguments, to write ``output``."""
    return {
        "translate": (
            translate.main,
            ["--checkpoint", run, "--input", text, "--output", output, "--output-format", "json", *SHORT],
        ),
        "score": (score.main, ["--checkpoint", run, "--source", text, "--target", text, "--output", output]),
        "average": (average.main, ["--checkpoints", run, other, "--output", output]),
        "export": (export.main, ["--checkpoint", run, "--format", "ctranslate2", "--output", output]),
    }[command]


@pytest.mark.parametrize("options", ["size=4k", "ro"], ids=["full", "read only"])
@pytest.mark.parametrize("command", ["translate", "score", "average", "export"])
def test_what_cannot_be_written_leaves_nothing(command, options, run, other, disk, tmp_path, monkeypatch, capsys):
    text = tmp_path / "text"
    text.write_text(TEXT, encoding="utf-8")
    folder = disk(options)
    output = folder / "out"
    main, given = arguments(command, run, other, text, output)
    monkeypatch.setattr(sys, "argv", [f"nmt.{command}", *map(str, given)])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit) as ended:
        run_command(main)
    last = capsys.readouterr().err.rstrip("\n").split("\n")[-1]
    assert last.startswith("error: ")
    assert ended.value.code == 1, last
    assert "No space left on device" in last or "Read-only file system" in last
    assert str(folder) in last
    assert list(folder.iterdir()) == []
