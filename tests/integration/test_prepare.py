"""``python -m nmt.prepare`` as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.data_configs import small_corpus


def run(*overrides: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nmt.prepare", *overrides],
        env=os.environ | env,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


@pytest.fixture
def keys(tmp_path: Path) -> list[str]:
    small_corpus(tmp_path / "Köln")
    text = tmp_path / "Köln"
    return [
        "data=files",
        "data.source=en",
        "data.target=de",
        f"data.train='{text / 'train'}'",  # Hydra wants quotes around letters beyond ASCII
        f"data.validation='{text / 'validation'}'",
        f"data.cache={tmp_path / 'cache'}",
        "data.tokenizer.vocabulary_size=60",
    ]


def test_the_table_goes_to_stderr_and_the_folder_to_stdout(tmp_path: Path, keys: list[str]) -> None:
    first = run(*keys, LC_ALL="C", PYTHONIOENCODING="ascii")
    assert first.returncode == 0, first.stderr
    folder = Path(first.stdout.removesuffix("\n"))
    assert folder.parent == tmp_path / "cache"
    report = json.loads((folder / "preparation.json").read_text(encoding="utf-8"))
    assert report["splits"]["train"]["kept"] == 20
    rows = {line.split()[0]: line.split()[1:4] for line in first.stderr.split("\n") if line.strip()}
    assert rows["train"] == ["20", "20", "0"]
    assert "Köln" in json.dumps(report["origin"], ensure_ascii=False)

    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    second = run(*keys)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert "cached" in second.stderr
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.nonsense=1"], "data.nonsense"),
        (["data=nothing"], "nothing"),
        (["data=files"], "data.source"),
        (["data.target=en"], "data.target"),
        (["data.max_length=many"], "data.max_length"),
        (["data.tokenizer.vocabulary_size=3"], "data.tokenizer.vocabulary_size"),
        (["data.train=/no/such/prefix"], "/no/such/prefix.en.zst"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_and_status_2(keys: list[str], overrides: list[str], message: str) -> None:
    done = run(*(overrides if overrides == ["data=files"] else [*keys, *overrides]))
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.strip().split("\n")
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert message in lines[0]


def test_nothing_is_written_beside_the_cache(tmp_path: Path, keys: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nmt.prepare", *keys],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent.parent)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Köln", "cache"]
