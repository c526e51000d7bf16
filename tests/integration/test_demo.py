"""``make demo`` from end to end, with hardly any training: it is about the path, not the scores."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_demo_trains_translates_compares_and_does_nothing_twice(tmp_path: Path) -> None:
    overrides = [
        f"runs={tmp_path}/runs",
        f"data.cache={tmp_path}/cache",
        "data.train_pairs=300",
        "data.max_words=8",
        "data.mean_words=5",
        "data.validation_pairs=4",
        "data.test_pairs=4",
        "data.tokenizer.vocabulary_size=500",
        "training.max_steps=2",
        "training.validate_every=2",
        "training.batch_tokens=500",
        "training.precision=fp32",
        "training.device=cpu",
        "search.max_length_a=1",
    ]
    command = [sys.executable, str(ROOT / "scripts" / "demo.py"), *overrides]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for model in ("seq2seq", "bahdanau", "transformer"):
        assert (tmp_path / "runs" / f"quick_{model}_s1" / "summary.json").exists()
        assert f"| {model} " in done.stdout
        assert done.stdout.count(f"{model:>12}  ") == 4  # translations
    assert (tmp_path / "runs" / "demo_report" / "report.html").is_file()

    weights = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*.safetensors")}
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    assert weights == {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*.safetensors")}


def test_a_mistake_stops_the_demo_with_the_status_of_the_command() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "demo.py"), "training.nonsense=1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "nonsense" in done.stderr
    assert "Traceback" not in done.stderr
