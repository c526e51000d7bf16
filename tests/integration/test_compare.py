"""``nmt.compare``: one table, honest about what cannot be compared."""

import dataclasses
import json
import shutil
import sys
from itertools import takewhile
from pathlib import Path

import pytest
import sacrebleu

from nmt import compare
from nmt.analysis.evaluated_runs import evaluate_run, find_evaluation
from nmt.cli import default_search
from nmt.device import resolve_device


@pytest.fixture
def runs(scored_runs: Path, tmp_path: Path) -> Path:
    """``a_s1`` and ``b_s1``, not evaluated yet, and a file and a folder that are no runs."""
    folder = Path(shutil.copytree(scored_runs, tmp_path / "runs", symlinks=True))
    (folder / "notes.txt").write_text("no run")
    (folder / "empty").mkdir()
    return folder


def compare_command(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["nmt.compare", *map(str, arguments)])
    compare.main()


def table(text: str, first: str = "run") -> dict[str, dict[str, str]]:
    """The first Markdown table whose header begins with ``first``: row name -> column -> cell."""
    lines = text.split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} "))
    header, _, *rows = (
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in takewhile(lambda line: line[:1] == "|", lines[start:])
    )
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def test_missing_evaluations_are_made_once(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compare_command(monkeypatch, *sorted(runs.iterdir()), "--output", runs.parent / "report.md")
    shown = capsys.readouterr()
    assert (runs.parent / "report.md").read_text(encoding="utf-8") == shown.out
    assert "skipped: " in shown.err
    assert "notes.txt" in shown.err

    figures = table(shown.out)
    assert list(figures) == ["a_s1", "b_s1"]
    for name, row in figures.items():
        metrics = json.loads((runs / name / "evaluation" / "validation_beam5" / "metrics.json").read_text())
        summary = json.loads((runs / name / "summary.json").read_text())
        bleu, chrf = metrics["bleu"], metrics["chrf"]
        assert row["BLEU 13a"] == f"{bleu['value']:.1f} [{bleu['low']:.1f}, {bleu['high']:.1f}]"
        assert row["chrF2"] == f"{chrf['value']:.1f} [{chrf['low']:.1f}, {chrf['high']:.1f}]"
        assert row["tok-lc"] == f"{metrics['bleu_tok_lc']['value']:.1f}"
        assert row["longest 1/4"] == f"{metrics['longest_quarter']['bleu']['value']:.1f}"
        assert row["model"] == "transformer"
        assert row["steps"] == str(summary["steps"])
        assert row["val. ppl"] == f"{summary['best']['perplexity']:.2f}"
        assert row["params"] == f"{summary['parameters'] / 1e6:.2f}M"
        assert "-" not in (row["min"], row["train tok/s"], row["sent/s"])
    assert "- BLEU 13a: nrefs:1|bs:1000|seed:12345|" in shown.out
    assert "not the same for all" not in shown.out

    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1")
    again = capsys.readouterr()
    assert again.out == shown.out
    assert "translating" not in again.err


def test_the_others_are_tested_against_the_best_or_the_one_that_is_named(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = (runs / "a_s1", runs / "b_s1")
    compare_command(monkeypatch, *paths, "--output", runs / "report.json")
    shown = capsys.readouterr().out
    report = json.loads((runs / "report.json").read_text(encoding="utf-8"))
    scores = {figures["name"]: figures["metrics"]["bleu"]["value"] for figures in report["runs"]}
    best, other = sorted(scores, key=lambda name: -scores[name])
    assert f"Against {best} " in shown
    results = report["significance"][0]["BLEU 13a"]["results"]
    assert [result["system"] for result in results] == [best, other]
    assert results[0]["p_value"] is None
    assert results[0]["score"] == pytest.approx(scores[best])
    assert 0 < results[1]["p_value"] <= 1
    assert f"{scores[other] - scores[best]:+.2f}" in shown

    compare_command(monkeypatch, *paths, "--baseline", f"{runs / other}/", "--test", "bootstrap")
    shown = capsys.readouterr().out
    assert f"Against {other} " in shown
    assert "paired bootstrap" in shown


def test_a_changed_model_is_evaluated_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device, search = resolve_device("cpu"), default_search()
    evaluate_run(runs / "a_s1", "test", search, device, "fp32", print)
    assert find_evaluation(runs / "a_s1", "test", search) is not None
    link = runs / "a_s1" / "checkpoints" / "best"
    link.unlink()
    link.symlink_to("step_000050")
    assert find_evaluation(runs / "a_s1", "test", search) is None


def test_another_search_is_evaluated_again(runs: Path) -> None:
    """Whatever the evaluation's folder is called: what is usual, and so not in its name, may change."""
    search = default_search()
    done = evaluate_run(runs / "a_s1", "test", search, resolve_device("cpu"), "fp32", print)
    other_batches = dataclasses.replace(search, batch_tokens=7)
    assert find_evaluation(runs / "a_s1", "test", other_batches) is not None
    done.metrics["search"]["alpha"] += 1
    (done.folder / "metrics.json").write_text(json.dumps(done.metrics), encoding="utf-8")
    assert find_evaluation(runs / "a_s1", "test", search) is None


def test_without_evaluating_it_says_what_to_run(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate_run(runs / "a_s1", "test", default_search(), resolve_device("cpu"), "fp32", lambda message: None)
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", "--no-evaluate")
    shown = capsys.readouterr()
    assert f"python -m nmt.evaluate --checkpoint {runs / 'b_s1'} --split test" in shown.err
    assert list(table(shown.out)) == ["a_s1"]
    assert "Not evaluated, so not in a table: b_s1" in shown.out
    assert not (runs / "b_s1" / "evaluation").exists()


def test_other_text_gets_a_table_of_its_own_and_no_test(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1")
    path = runs / "b_s1" / "evaluation" / "validation_beam5" / "metrics.json"
    metrics = json.loads(path.read_text(encoding="utf-8"))
    metrics["data"]["text_sha256"] = "other"
    path.write_text(json.dumps(metrics), encoding="utf-8")
    capsys.readouterr()
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1")
    shown = capsys.readouterr().out
    assert "scored on 2 different texts" in shown
    assert shown.count("### ") == 2
    assert list(table(shown)) == ["a_s1"]
    assert "Against" not in shown


def test_what_makes_figures_incomparable_is_said(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1")
    assert "**" not in capsys.readouterr().out
    path = runs / "b_s1" / "evaluation" / "validation_beam5" / "metrics.json"
    metrics = json.loads(path.read_text(encoding="utf-8"))
    metrics.update(tokenizers_sha256="other", threads=77)
    metrics["data"]["fingerprint"] = "other"
    path.write_text(json.dumps(metrics), encoding="utf-8")
    (runs / "b_s1" / "summary.json").unlink()
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1")
    shown = capsys.readouterr().out
    assert "Perplexities cannot be compared" in shown
    assert "trained on different data" in shown
    assert "translated on, **not the same for all**" in shown
    assert "b_s1: **The text has changed since training" in shown
    assert "trained to the end: b_s1" in shown
    assert table(shown)["b_s1"]["min"] == "-"


def test_mistakes_are_named(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="none of these is a run"):
        compare_command(monkeypatch, runs / "empty", runs / "nothing")
    with pytest.raises(ValueError, match=r"--baseline x: none of the runs"):
        compare_command(monkeypatch, runs / "a_s1", "--baseline", "x")
    with pytest.raises(ValueError, match=r"ends in \.md or \.json"):
        compare_command(monkeypatch, runs / "a_s1", "--output", runs / "report.pdf")
    with pytest.raises(ValueError, match=r"no folder .*nowhere"):
        compare_command(monkeypatch, runs / "a_s1", "--output", runs / "nowhere" / "report.md")
    with pytest.raises(ValueError, match="nothing to compare"):
        compare_command(monkeypatch, runs / "a_s1", "--no-evaluate")
    evaluate_run(runs / "a_s1", "test", default_search(), resolve_device("cpu"), "fp32", lambda message: None)
    with pytest.raises(ValueError, match=r"--baseline .*b_s1: not evaluated"):
        compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", "--no-evaluate", "--baseline", runs / "b_s1")


def test_runs_of_one_name_are_told_apart(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    twin = Path(shutil.copytree(runs / "a_s1", runs / "elsewhere" / "a_s1", symlinks=True))
    compare_command(monkeypatch, runs / "a_s1", twin)
    assert set(table(capsys.readouterr().out)) == {str(runs / "a_s1"), str(twin)}


def test_own_text_and_a_folder_with_pictures(
    runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table by length has every sentence once, and the scores of each group are sacrebleu's of its lines."""
    sources = ["eins zwei drei vier fünf", "sechs acht " * 8, "eins", "zwei vier " * 6]
    references = ["five four three two one", "eight six " * 8, "one", "four two " * 6]
    for name, lines in (("own.de", sources), ("own.en", references)):
        (tmp_path / name).write_text("".join(f"{line.strip()}\n" for line in lines), encoding="utf-8")
    own = ("--source", tmp_path / "own.de", "--reference", tmp_path / "own.en")
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", *own, "--output", tmp_path / "report")
    shown = capsys.readouterr()
    assert shown.err.count("translating 4 sentences (own)") == 2
    rows = table(shown.out, "BLEU 13a by source words")
    assert rows["sentences"] == {"BLEU 13a by source words": "sentences", "1-10": "2", "11-20": "2"}
    folder = runs / "a_s1" / "evaluation" / "own_beam5"
    hypotheses = (folder / "hypotheses.txt").read_text(encoding="utf-8").split("\n")
    expected = sacrebleu.corpus_bleu([hypotheses[1], hypotheses[3]], [[references[1].strip(), references[3].strip()]])
    assert rows["a_s1"]["11-20"].startswith(f"{expected.score:.1f} [")

    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        "report.md",
        "report.json",
        "bleu_by_length_own.png",
    }
    assert (tmp_path / "report" / "bleu_by_length_own.png").read_bytes()[:4] == b"\x89PNG"
    assert "(bleu_by_length_own.png)" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    tree = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    (groups,) = tree["bleu_by_source_length"]
    assert groups["groups"] == ["1-10", "11-20"]
    assert groups["runs"]["a_s1"][1]["value"] == pytest.approx(expected.score)

    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", *own)
    assert "translating" not in capsys.readouterr().err
    (tmp_path / "own.de").write_text("drei\n" * 4, encoding="utf-8")  # the same name, another text
    compare_command(monkeypatch, runs / "a_s1", *own)
    assert "translating 4 sentences (own)" in capsys.readouterr().err
    with pytest.raises(ValueError, match="go together"):
        compare_command(monkeypatch, runs / "a_s1", "--source", tmp_path / "own.de")
