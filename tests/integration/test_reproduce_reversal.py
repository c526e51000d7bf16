"""``scripts/reproduce_reversal.py`` from end to end, with hardly any training: the path, not the scores."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.analysis.reversal.build import ReversalPair, write_report
from tests.pages import Page

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], "subprocess.CompletedProcess[str]"]:
    """Two arms with two seeds."""
    folder = tmp_path_factory.mktemp("reversal")
    overrides = [
        f"data.cache={folder}/cache",
        "data.train_pairs=300",
        "data.validation_pairs=4",
        "data.test_pairs=12",
        "data.tokenizer.vocabulary_size=500",
        "model.embedding_dim=8",
        "model.hidden_dim=8",
        "training.max_steps=2",
        "training.validate_every=1",
        "training.precision=fp32",
        "training.device=cpu",
        "search.max_length_a=1",
    ]
    command = [
        *(sys.executable, str(ROOT / "scripts" / "reproduce_reversal.py"), "--no-controls", "--seeds", "1", "2"),
        *("--runs", str(folder / "runs"), "--", *overrides),
    ]
    return folder, command, subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_trains_evaluates_reports_and_does_nothing_twice(
    made: tuple[Path, list[str], "subprocess.CompletedProcess[str]"],
) -> None:
    folder, command, done = made
    assert done.returncode == 0, done.stderr
    report = folder / "runs" / "reversal_report"
    tree = json.loads((report / "report.json").read_text(encoding="utf-8"))
    (pair,) = tree["pairs"]
    assert pair["seeds"] == [1, 2]
    for effect in pair["effects"]:
        forward, backward = effect["forward"]["seeds"], effect["backward"]["seeds"]
        assert effect["difference"] == pytest.approx((sum(backward) - sum(forward)) / 2)
        assert effect["low"] <= effect["difference"] <= effect["high"]
    for seed, bleu in zip((1, 2), pair["effects"][4]["backward"]["seeds"], strict=True):
        run = folder / "runs" / f"reversal_seq2seq_german_backwards_s{seed}"
        metrics = json.loads((run / "evaluation" / "test_beam12" / "metrics.json").read_text(encoding="utf-8"))
        assert bleu == pytest.approx(metrics["bleu"]["value"])
    assert pair["lags"]["forward"]["smallest"] > pair["lags"]["backward"]["smallest"]
    assert pair["lags"]["forward"]["mean"] == pytest.approx(pair["lags"]["backward"]["mean"], abs=0.5)
    page = Page((report / "report.html").read_text(encoding="utf-8"))
    assert page.texts["h2"] == [
        *("In short", "The effect", "By source length", "Time lags", "While training", "How to do it again")
    ]
    assert "5.8 to 4.7" in page.texts["td"]
    for name in ("by_length", "time_lags", "curves"):
        assert (report / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    assert "## The effect" in done.stdout
    assert "reproduce_reversal.py --no-controls --seeds 1 2" in page.texts["code"][0]

    weights = {path: path.stat().st_mtime_ns for path in folder.rglob("*.safetensors")}
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "4 runs, 4 finished before" in again.stderr
    assert "translating" not in again.stderr
    assert again.stdout == done.stdout
    assert weights == {path: path.stat().st_mtime_ns for path in folder.rglob("*.safetensors")}


def test_what_is_no_such_pair_is_refused(
    made: tuple[Path, list[str], "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    runs = made[0] / "runs"
    forward = {seed: runs / f"reversal_seq2seq_german_s{seed}" for seed in (1, 2)}
    backward = {seed: runs / f"reversal_seq2seq_german_backwards_s{seed}" for seed in (1, 2)}

    def report(one: dict[int, Path], other: dict[int, Path]) -> None:
        pair = ReversalPair("x", "seq2seq", None, one, other)
        write_report("t", [pair], tmp_path / "report", [], 1, lambda message: None)

    with pytest.raises(ValueError, match="need the same seeds, found 1 2 and 1"):
        report(forward, {1: backward[1]})
    with pytest.raises(ValueError, match=r"expected model\.reverse_source to be false and true"):
        report(forward, forward)
    copy = Path(shutil.copytree(backward[1], tmp_path / "copy", symlinks=True))
    for path in copy.rglob("config.yaml"):
        path.write_text(path.read_text().replace("dropout: 0.0", "dropout: 0.5"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"differ in more than model\.reverse_source: model\.dropout \(0\.0, 0\.5\)"):
        report({1: forward[1]}, {1: copy})
    (copy / "summary.json").unlink()
    with pytest.raises(ValueError, match="not trained to its end"):
        report({1: forward[1]}, {1: copy})
    assert not (tmp_path / "report").exists()
