"""``nmt.compare``: one report, honest about what cannot be compared."""

import dataclasses
import json
import shutil
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from nmt import compare
from nmt.analysis.evaluated_runs import evaluate_run, find_evaluation
from nmt.cli import default_search
from nmt.device import resolve_device
from tests.pages import Page


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


def table(text: str, first: str) -> dict[str, dict[str, str]]:
    """The first Markdown table whose header begins with ``first``: row name -> column -> cell."""
    lines = text.split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} "))
    header, _, *rows = (
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in takewhile(lambda line: line[:1] == "|", lines[start:])
    )
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def measured(run: Path, name: str = "validation_beam5") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "evaluation" / name / "metrics.json").read_text(encoding="utf-8"))
    return found


def change(run: Path, **changes: Any) -> None:
    """Change figures of an evaluation: ``data__fingerprint="x"`` is one within another."""
    path = run / "evaluation" / "validation_beam5" / "metrics.json"
    metrics = json.loads(path.read_text(encoding="utf-8"))
    for key, value in changes.items():
        *groups, last = key.split("__")
        place = metrics
        for group in groups:
            place = place[group]
        place[last] = value
    path.write_text(json.dumps(metrics), encoding="utf-8")


def test_missing_evaluations_are_made_once_and_shown_in_three_forms(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = runs.parent / "report"
    compare_command(monkeypatch, *sorted(runs.iterdir()), "--output", output, "--beams", "1", "3", "5")
    shown = capsys.readouterr()
    assert "skipped: " in shown.err
    assert "notes.txt" in shown.err
    assert shown.err.count("translating ") == 6  # beams of 1, 3 and 5 each
    page = Page((output / "report.html").read_text(encoding="utf-8"))
    markdown = (output / "report.md").read_text(encoding="utf-8")
    tree = json.loads((output / "report.json").read_text(encoding="utf-8"))
    for picture in output.glob("*.png"):
        assert f"({picture.name})" in markdown
    assert [line for line in markdown.split("\n") if line and not line.startswith("![")][:3] == [
        line for line in shown.out.split("\n") if line
    ][:3]

    quality = table(shown.out, "system")
    assert quality == {name: row for name, row in quality.items() if name in ("a", "b")}
    figures = table(shown.out.split("## Quality")[1], "system")
    for name, row in figures.items():
        metrics, summary = measured(runs / f"{name}_s1"), json.loads((runs / f"{name}_s1" / "summary.json").read_text())
        bleu, chrf = metrics["bleu"], metrics["chrf"]
        assert row["BLEU 13a"] == f"{bleu['value']:.1f} [{bleu['low']:.1f}, {bleu['high']:.1f}]"
        assert row["chrF2"] == f"{chrf['value']:.1f} [{chrf['low']:.1f}, {chrf['high']:.1f}]"
        assert row["perplexity"].startswith(f"{metrics['perplexity']:.2f} [")
        assert row["perplexity per word"].startswith(f"{metrics['perplexity_per_word']:.2f} [")
        assert row["bits per byte"].startswith(f"{metrics['bits_per_byte']:.3f} [")
        paid = table(shown.out.split("## Cost")[1], "system")[name]
        assert paid["parameters"] == f"{summary['parameters']:,}"
        assert paid["updates"] == f"{summary['steps']:,}"
        assert "-" not in paid.values()
        assert tree["cost"][name]["peak_memory_mb"] == summary["peak_memory_mb"] > 10
        assert [point["size"] for point in tree["texts"][0]["beams"][name]] == [1, 3, 5]
        assert tree["texts"][0]["beams"][name][0]["search_errors"] == 0.0
    assert "- BLEU 13a: nrefs:1|bs:1000|seed:12345|" in shown.out
    assert "Left out" not in markdown, "tiny as it is, everything is there"
    assert markdown.count("\n    python ") == 2, "both runs were trained by one process; and this one"
    assert "## How to" not in shown.out, "the rest stands in the files"
    assert page.texts["h1"] == ["a, b on files validation"]

    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", "--output", output, "--beams", "1", "3", "5")
    again = capsys.readouterr()
    assert again.out == shown.out
    assert "translating" not in again.err


def test_the_others_are_tested_against_the_best_or_the_one_that_is_named(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = (runs / "a_s1", runs / "b_s1")
    compare_command(monkeypatch, *paths)
    shown = capsys.readouterr().out
    scores = {name: measured(runs / f"{name}_s1")["bleu"]["value"] for name in "ab"}
    best, other = sorted(scores, key=lambda name: -scores[name])
    pairs = table(shown, "pair")
    assert list(pairs) == [f"{other} − {best}"] or scores[best] == scores[other]
    assert "approximate randomisation" in shown

    compare_command(monkeypatch, *paths, "--baseline", other, "--test", "bootstrap")
    shown = capsys.readouterr().out
    row = shown[shown.index(f"| {best} − {other} ") :].split("\n")[0].split(" | ")
    assert row[1].strip() == "BLEU 13a"
    assert row[2].strip() == f"{scores[best] - scores[other]:+.2f}"
    assert 0 < float(row[4].strip(" |<")) <= 1
    assert "by paired bootstrap" in shown


def seeds(runs: Path, source: str, *numbers: int) -> None:
    """Copies of a run that say they were trained with other seeds; each gives other translations for some lines."""
    for number in numbers:
        copy = Path(shutil.copytree(runs / source, runs / f"{source[:-3]}_s{number}", symlinks=True))
        for path in copy.rglob("config.yaml"):
            path.write_text(path.read_text().replace("\nseed: 1\n", f"\nseed: {number}\n"), encoding="utf-8")


def test_several_seeds_are_one_system(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds(runs, "a_s1", 2, 3)
    seeds(runs, "b_s1", 2)
    for number, run in enumerate(sorted(runs.glob("[ab]_s*"))):
        done = evaluate_run(run, "validation", default_search(), resolve_device("cpu"), "fp32", lambda message: None)
        lines = (done.folder / "hypotheses.txt").read_text(encoding="utf-8").split("\n")
        lines[number] = "one two three four"
        (done.folder / "hypotheses.txt").write_text("\n".join(lines), encoding="utf-8")
    compare_command(monkeypatch, *sorted(runs.glob("[ab]_s*")), "--output", runs.parent / "report")
    shown = capsys.readouterr().out
    tree = json.loads((runs.parent / "report" / "report.json").read_text(encoding="utf-8"))
    assert {system["name"]: [run["seed"] for run in system["runs"]] for system in tree["systems"]} == {
        "a": [1, 2, 3],
        "b": [1, 2],
    }
    bleu = tree["texts"][0]["quality"]["a"]["bleu"]
    expected = []
    for number in (1, 2, 3):
        folder = runs / f"a_s{number}" / "evaluation" / "validation_beam5"
        texts = [
            (folder / name).read_text(encoding="utf-8").split("\n")[:-1]
            for name in ("hypotheses.txt", "references.txt")
        ]
        expected.append(sacrebleu.corpus_bleu(texts[0], [texts[1]]).score)
    assert bleu["seeds"] == pytest.approx(expected)
    assert bleu["value"] == pytest.approx(sum(expected) / 3)
    assert bleu["spread"] > 0
    assert "Student's t over the seeds" in shown
    assert "- tested with the seeds that all have: not with 3" in shown
    pair = tree["texts"][0]["differences"][0]
    both = [tree["texts"][0]["quality"][name]["bleu"]["seeds"][:2] for name in (pair["first"], pair["second"])]
    assert pair["difference"] == pytest.approx((sum(both[1]) - sum(both[0])) / 2)
    assert pair["corrected"] is None, "one pair needs no correction"


def test_runs_of_one_recipe_and_seed_are_told_apart(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    twin = Path(shutil.copytree(runs / "a_s1", runs / "elsewhere" / "a_s1", symlinks=True))
    compare_command(monkeypatch, runs / "a_s1", twin, runs / "a_s1" / "checkpoints" / "step_000050")
    shown = capsys.readouterr().out
    assert set(table(shown, "system")) == {str(runs / "a_s1"), str(twin), "a_s1/step_000050"}


def test_without_evaluating_it_says_what_to_run(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate_run(runs / "a_s1", "test", default_search(), resolve_device("cpu"), "fp32", lambda message: None)
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", "--no-evaluate", "--beams", "5", "7")
    shown = capsys.readouterr()
    assert f"python -m nmt.evaluate --checkpoint {runs / 'b_s1'} --split test" in shown.err
    assert "no evaluation with a beam of 7" in shown.err
    assert list(table(shown.out, "system")) == ["transformer"], "alone, it is called by its architecture"
    assert "Left out: there is one system only." in shown.out
    assert "Left out: training text is not read with --no-evaluate." in shown.out
    assert not (runs / "b_s1" / "evaluation").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data__text_sha256": "other"}, r"scored on different text: a_s1: files validation, .*--source FILE"),
        ({"search__alpha": 0.5}, None),  # find_evaluation makes another one
        ({"chrf__signature": "version:1.0"}, r"chrF2 was not counted in the same way: .*version:1\.0.*evaluate again"),
    ],
)
def test_what_cannot_be_compared_is_refused_naming_the_difference(
    changes: dict[str, Any], message: str | None, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1")
    change(runs / "b_s1", **changes)
    if message is None:
        compare_command(monkeypatch, runs / "a_s1", runs / "b_s1")
        assert measured(runs / "b_s1")["search"]["alpha"] == measured(runs / "a_s1")["search"]["alpha"]
        return
    with pytest.raises(ValueError, match=message):
        compare_command(monkeypatch, runs / "a_s1", runs / "b_s1")


def test_what_makes_figures_incomparable_is_said(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1")
    assert "cannot be compared" not in capsys.readouterr().out
    change(runs / "b_s1", tokenizers_sha256="other", threads=77)
    (runs / "b_s1" / "summary.json").unlink()
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1")
    shown = capsys.readouterr().out
    assert "perplexities of subwords cannot be compared" in shown
    assert "so that speeds cannot be compared: a_s1: cpu, fp32, threads: 1; b_s1: cpu, fp32, threads: 77" in shown
    assert "b_s1: **The text has changed since training" in shown
    assert "trained to the end: b_s1" in shown
    assert table(shown.split("## Quality")[1], "system")["b"]["perplexity"] == "-"
    assert table(shown.split("## Cost")[1], "system")["b"]["minutes"] == "-"


def test_a_declared_budget_that_was_not_kept_is_refused(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", "--budget", "parameters")
    assert "Declared: equal parameters. Equal in " in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"--budget steps: .* not equal in updates within 3% \(a 100, b 50\)"):
        compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", "--budget", "steps")
    path = runs / "b_s1" / "summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(summary | {"steps": 98}), encoding="utf-8")
    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", "--budget", "steps")
    assert "Declared: equal updates. Equal in updates (98 to 100)" in capsys.readouterr().out


def test_mistakes_are_named(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="none of these is a run"):
        compare_command(monkeypatch, runs / "empty", runs / "nothing")
    with pytest.raises(ValueError, match=r"expected a folder, which gets report\.html"):
        compare_command(monkeypatch, runs / "a_s1", "--output", runs / "report.md")
    with pytest.raises(ValueError, match=r"no folder .*nowhere"):
        compare_command(monkeypatch, runs / "a_s1", "--output", runs / "nowhere" / "report")
    with pytest.raises(ValueError, match="--beams: expected 1 or more, found 0"):
        compare_command(monkeypatch, runs / "a_s1", "--beams", "4", "0")
    with pytest.raises(ValueError, match="nothing to compare"):
        compare_command(monkeypatch, runs / "a_s1", "--no-evaluate")
    with pytest.raises(ValueError, match=r"--baseline x: none of the systems; they are a, b"):
        compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", "--baseline", "x")
    with pytest.raises(ValueError, match="go together"):
        compare_command(monkeypatch, runs / "a_s1", "--source", runs / "notes.txt")
    both = [runs / "notes.txt", runs / "notes.other"]
    shutil.copy(*both)
    with pytest.raises(ValueError, match="different names up to the first dot, found notes, notes"):
        compare_command(monkeypatch, runs / "a_s1", "--source", *both, "--reference", *both)


def test_own_text_beside_the_split(
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
    rows = table(shown.out, "source words")
    ones = {"1-3": "1", "4-6": "1", "10-12": "1", "16-18": "1"}  # short steps, where no sentence is long
    assert rows["sentences"] == {"source words": "sentences", **ones}
    folder = runs / "a_s1" / "evaluation" / "own_beam5"
    hypotheses = (folder / "hypotheses.txt").read_text(encoding="utf-8").split("\n")
    expected = sacrebleu.corpus_bleu([hypotheses[1]], [[references[1].strip()]])
    assert rows["a"]["16-18"] == f"{expected.score:.1f}", "no interval for one sentence"
    assert (tmp_path / "report" / "by_length_own.png").read_bytes()[:4] == b"\x89PNG"

    compare_command(monkeypatch, runs / "a_s1", runs / "b_s1", *own, "--split", "validation")
    shown = capsys.readouterr()
    assert "translating 4 sentences" not in shown.err
    assert "## Quality: files validation" in shown.out
    assert "## Quality: own" in shown.out
    (tmp_path / "own.de").write_text("drei\n" * 4, encoding="utf-8")  # the same name, another text
    compare_command(monkeypatch, runs / "a_s1", *own)
    assert "translating 4 sentences (own)" in capsys.readouterr().err


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
