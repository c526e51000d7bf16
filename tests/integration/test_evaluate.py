"""``nmt.evaluate``: the same numbers as training and as anybody's sacrebleu, files that are whole, plain errors."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nmt import evaluate
from nmt.analysis import evaluated_runs
from nmt.analysis.evaluated_runs import read_metrics
from nmt.cli import default_search
from tests.integration.conftest import AS_IN_TRAINING
from tests.tiny_run import metrics as training_metrics


@pytest.fixture
def run(scored_runs: Path, tmp_path: Path) -> Path:
    """A run of one's own."""
    return Path(shutil.copytree(scored_runs / "a_s1", tmp_path / "a_s1", symlinks=True))


def evaluate_command(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["nmt.evaluate", *map(str, arguments)])
    evaluate.main()


def found(folder: Path) -> dict[str, Any]:
    metrics = read_metrics(folder)
    assert metrics is not None
    return metrics


def lines(path: Path) -> list[str]:
    text = path.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return text.split("\n")[:-1]


def test_training_evaluate_and_sacrebleu_agree(run: Path) -> None:
    command = [sys.executable, "-m", "nmt.evaluate", "--checkpoint", run, "--split", "validation", *AS_IN_TRAINING]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    folder = run / "evaluation" / "validation_beam1_max_length_b=5"
    metrics = found(folder)
    assert f"| BLEU 13a                  | {metrics['bleu']['value']:5.2f} |" in done.stdout
    assert metrics["bleu"]["signature"] in done.stdout
    assert str(folder) not in done.stdout  # results only
    assert str(folder) in done.stderr

    trained = max(training_metrics(run, "validation"), key=lambda line: float(line["bleu"]))
    assert 1 < metrics["bleu"]["value"] < 100
    assert metrics["bleu"]["value"] == pytest.approx(trained["bleu"], abs=1e-9)
    assert metrics["chrf"]["value"] == pytest.approx(trained["chrf"], abs=1e-9)
    assert metrics["perplexity"] == pytest.approx(trained["perplexity"], rel=1e-5)

    score = [sys.executable, "-m", "sacrebleu", folder / "references.txt", "-i", folder / "hypotheses.txt"]
    own = json.loads(
        subprocess.run([*score, "-m", "bleu", "chrf", "-w", "6"], capture_output=True, text=True, check=True).stdout
    )
    assert own[0]["score"] == pytest.approx(metrics["bleu"]["value"], abs=1e-6)
    assert own[1]["score"] == pytest.approx(metrics["chrf"]["value"], abs=1e-6)
    assert own[0]["signature"] == trained["bleu_signature"]


def test_everything_is_written_down(run: Path, scored_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate_command(monkeypatch, "--checkpoint", run, "--split", "validation")
    folder = run / "evaluation" / "validation_beam5"
    assert {path.name for path in folder.iterdir()} == {
        "hypotheses.txt",
        "references.txt",
        "sources.txt",
        "likelihoods.tsv",
        "scores.txt",
        "metrics.json",
    }
    assert lines(folder / "references.txt") == lines(scored_runs.parent / "dev.en")
    assert lines(folder / "sources.txt") == lines(scored_runs.parent / "dev.de")
    metrics = found(folder)
    assert metrics["sentences"] == len(lines(folder / "hypotheses.txt")) == 12
    likelihoods = [line.split("\t") for line in lines(folder / "likelihoods.tsv")]
    nll = sum(float(value) for value, _ in likelihoods)
    references = lines(folder / "references.txt")
    assert len(likelihoods) == 12
    assert nll == pytest.approx(metrics["nll"], abs=1e-4)
    assert sum(int(count) for _, count in likelihoods) == metrics["target_tokens"]
    words = sum(len(line.split()) + 1 for line in references)
    assert metrics["perplexity_per_word"] == pytest.approx(math.exp(nll / words), rel=1e-4)
    size = (folder / "references.txt").stat().st_size  # the line ends count as sentence ends
    assert metrics["bits_per_byte"] == pytest.approx(nll / size / math.log(2), rel=1e-4)
    assert metrics["step"] == 100
    assert metrics["search"]["beam_size"] == 5
    assert metrics["longest_quarter"]["bleu"]["sentences"] == 3
    longest = sorted(len(source.split()) for source in lines(folder / "sources.txt"))[-3:]
    assert metrics["longest_quarter"]["min_words"] == longest[0]
    for key in ("bleu", "bleu_tok_lc", "chrf"):
        assert metrics[key]["low"] <= metrics[key]["high"]
        assert "version:" in metrics[key]["signature"]
    for key in ("sentences_per_second", "tokens_per_second", "limit_hits", "precision", "threads", "versions"):
        assert key in metrics


def test_data_without_a_test_split_is_scored_on_validation_aloud(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate_command(monkeypatch, "--checkpoint", run, "--split", "test")
    shown = capsys.readouterr()
    assert "has no test split: scoring on its validation split" in shown.err
    assert "files validation, 12 sentences" in shown.out
    assert (run / "evaluation" / "validation_beam5" / "metrics.json").exists()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_translations_do_not_depend_on_the_batch(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, precision: str
) -> None:
    for size in ("1", "64", "4096"):
        arguments = ("--checkpoint", run, "--split", "validation", "--batch-tokens", size, "--output", tmp_path / size)
        evaluate_command(monkeypatch, *arguments, "--precision", precision)
        assert found(tmp_path / size)["precision"] == precision
    first = lines(tmp_path / "1" / "hypotheses.txt")
    assert first == lines(tmp_path / "64" / "hypotheses.txt") == lines(tmp_path / "4096" / "hypotheses.txt")


def test_hitting_the_length_limit_is_counted(run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit = ("--max-length-a", "0", "--max-length-b", "1", "--min-length", "0", "--output", tmp_path / "out")
    evaluate_command(monkeypatch, "--checkpoint", run, "--split", "validation", *limit)
    translations = lines(tmp_path / "out" / "hypotheses.txt")
    assert found(tmp_path / "out")["limit_hits"] == sum(bool(line) for line in translations) > 0


# --- the user's own files ---------------------------------------------------------------------------------------------


def test_own_files_line_by_line_and_references_untouched(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "in.de").write_bytes("eins zwei\r\n\r\ndrei\u2028vier fünf".encode())
    references = ["two  one ½\u00a0", "nothing", "five\u2028four three"]
    (tmp_path / "in.en").write_bytes("".join(f"{line}\n" for line in references).encode())
    files = ("--source", tmp_path / "in.de", "--reference", tmp_path / "in.en")
    evaluate_command(monkeypatch, "--checkpoint", run, *files)
    folder = run / "evaluation" / "in_beam5"
    assert lines(folder / "references.txt") == references
    assert lines(folder / "sources.txt") == ["eins zwei", "", "drei\u2028vier fünf"]
    assert lines(folder / "hypotheses.txt")[1] == ""
    assert found(folder)["data"]["source"] == str(tmp_path / "in.de")


def test_what_is_wrong_with_own_files_is_said(run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "two").write_text("eins\nzwei\n")
    (tmp_path / "one").write_text("one\n")
    (tmp_path / "none").write_text("")
    (tmp_path / "latin").write_bytes(b"one\ntw\xf6\n")

    def refused(match: str, *arguments: str | Path) -> None:
        with pytest.raises(ValueError, match=match):
            evaluate_command(monkeypatch, "--checkpoint", run, *arguments)

    refused("two has 2 lines but .*one has 1", "--source", tmp_path / "two", "--reference", tmp_path / "one")
    refused("none: no lines", "--source", tmp_path / "none", "--reference", tmp_path / "none")
    refused("latin: line 2", "--source", tmp_path / "two", "--reference", tmp_path / "latin")
    refused("go together", "--source", tmp_path / "two")
    refused("--split names", "--source", tmp_path / "two", "--reference", tmp_path / "two", "--split", "test")
    refused("--output .*one: is a file", "--split", "validation", "--output", tmp_path / "one")
    refused("--beam-size", "--split", "validation", "--beam-size", "0")
    assert not (run / "evaluation").exists()


def test_a_users_mistake_is_one_line_and_status_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nmt.evaluate", "--checkpoint", tmp_path / "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "nowhere" in done.stderr


# --- on disk ----------------------------------------------------------------------------------------------------------


def test_every_checkpoint_and_search_has_a_folder_of_its_own(run: Path) -> None:
    usual = default_search()
    folder = evaluated_runs.evaluation_folder
    last = run / "checkpoints" / "step_000100"
    assert folder(run, "test", usual) == run / "evaluation" / "test_beam5"
    assert folder(last, "test", usual) == run / "evaluation" / "test_beam5_step_000100"
    other = {folder(run, "test", changed) for changed in _changed_searches()}
    assert len(other) == len(_changed_searches())
    assert folder(run, "test", usual) not in other
    alone = Path(shutil.copytree(last, run.parent / "copy"))
    assert folder(alone, "test", usual) == alone / "evaluation" / "test_beam5"


def _changed_searches() -> list[Any]:
    import dataclasses

    changes: list[dict[str, Any]] = [{"beam_size": 4}, {"alpha": 0.6}, {"length_penalty": "none"}, {"min_length": 3}]
    return [dataclasses.replace(default_search(), **change) for change in changes]


def test_an_evaluation_that_was_cut_short_does_not_pass_for_one(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("--checkpoint", run, "--split", "validation")
    evaluate_command(monkeypatch, *arguments)
    folder = run / "evaluation" / "validation_beam5"
    write_text = evaluated_runs.write_text

    def full_disk(path: Path, text: str) -> None:
        if path.name == "hypotheses.txt":
            raise OSError(28, "No space left on device")
        write_text(path, text)

    monkeypatch.setattr(evaluated_runs, "write_text", full_disk)
    with pytest.raises(OSError, match="No space left"):
        evaluate_command(monkeypatch, *arguments)
    assert read_metrics(folder) is None
    assert not list(folder.glob(".*"))
