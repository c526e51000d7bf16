"""``nmt.benchmark translate`` as it is called, with models and texts too small to mean anything."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt import checkpoint, lexicon
from nmt.analysis import translation_speed
from nmt.analysis.synthetic import corpus_lengths
from nmt.analysis.translation_speed import GrowthTask, Measured, TranslationTask
from nmt.benchmark import __main__ as command
from nmt.data.corpus import read_lines
from nmt.evaluation.metrics import bleu
from nmt.formats import Options, ctranslate2
from nmt.translator import Translator
from tests.tiny_run import MODELS, WORDS

ROOT = Path(__file__).parent.parent.parent
TINY = MODELS["transformer"]
Figures = Callable[..., dict[str, Any]]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Figures]:
    """The command in this process, and so its tasks: the figures that it writes as JSON."""

    def call(*arguments: str) -> dict[str, Any]:
        path = tmp_path / "figures.json"
        words = ["nmt.benchmark", "translate", *arguments, "--device", "cpu", "--threads", "1", "--json", str(path)]
        monkeypatch.setattr(sys, "argv", words)
        command.main()
        tree: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return tree

    monkeypatch.setattr(TranslationTask, "measure", lambda task: translation_speed._translate(task))
    monkeypatch.setattr(GrowthTask, "measure", lambda task: translation_speed._grow(task))
    threads = torch.get_num_threads()
    yield call
    torch.set_num_threads(threads)


def test_trained_models_are_measured_in_turns_and_scored(
    figures: Figures, scored_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(scored_runs / "a_s1"), str(scored_runs / "b_s1")]
    source, reference = scored_runs.parent / "dev.de", scored_runs.parent / "dev.en"
    (tmp_path / "source.de").write_text("\n" + source.read_text(encoding="utf-8"), encoding="utf-8")  # a blank line
    (tmp_path / "reference.en").write_text("\n" + reference.read_text(encoding="utf-8"), encoding="utf-8")
    tree = figures(
        *("--checkpoint", *runs, "--input", str(tmp_path / "source.de"), "--reference", str(tmp_path / "reference.en")),
        *("--precision", "fp32", "bf16", "--beam-size", "1", "3", "--rounds", "2", "--warm-up", "4"),
    )
    measured = tree["translate"]
    once = [(run, precision) for run in runs for precision in ("fp32", "bf16")]
    assert [(each["model"], each["setting"]["precision"]) for each in measured] == once
    lines, references = (list(read_lines(tmp_path / name)) for name in ("source.de", "reference.en"))
    for each in measured:
        assert [search["beam_size"] for search in each["searches"]] == [1, 3]
        assert len(each["rounds"]) == 2
        for one in each["rounds"]:
            assert min(one["load_seconds"], one["first_seconds"], one["again_seconds"], one["peak_bytes"]) > 0
            for done in one["passes"]:
                assert done["sentences"] == 12
                assert done["sentences"] / done["seconds"] == pytest.approx(done["sentences_per_second"])
                assert done["tokens"] / done["seconds"] == pytest.approx(done["tokens_per_second"])
    expected = Translator.load(runs[0], "cpu").translate(lines, beam_size=1)
    assert measured[0]["searches"][0]["bleu"]["value"] == bleu([one.text for one in expected], references).value
    assert measured[0]["rounds"][1]["passes"][0]["tokens"] == sum(one.length for one in expected)
    printed = capsys.readouterr()
    order = [tuple(line.split(":")[1].split()) for line in printed.err.split("\n") if line.startswith("round ")]
    assert order == once * 2
    rows = [line for line in printed.out.split("\n") if line.startswith(f"| {runs[0]} ")]
    assert len(rows) == 6  # two beam sizes and the start, in two precisions
    assert rows[0].split("|")[-2].strip() == f"{measured[0]['searches'][0]['bleu']['value']:.2f}"
    assert "tok:13a" in printed.out


@pytest.mark.parametrize("model", ["T", "R", "S"])
def test_random_models_write_as_many_tokens_as_they_read(model: str, figures: Figures) -> None:
    sizes = MODELS[{"T": "transformer", "R": "bahdanau", "S": "seq2seq"}[model]]
    tree = figures(
        *("--models", model, "--sentences", "20", "--vocabulary", "90", "--rounds", "1", "--set", *sizes),
        *("--batch-tokens", "200"),
    )
    ((each,), (search, beam)) = tree["translate"], tree["translate"][0]["searches"]
    assert (search["batch_tokens"], search["bleu"], beam["beam_size"]) == (200, None, 5)
    lengths = corpus_lengths(20, seed=1).source
    for done in each["rounds"][0]["passes"]:
        assert (done["sentences"], done["tokens"]) == (20, sum(lengths))


def test_growth_is_measured_with_the_cache_and_without(figures: Figures, capsys: pytest.CaptureFixture[str]) -> None:
    tree = figures(
        *("--models", "T", "--lengths", "5", "2", "3", "--sentences", "2", "--vocabulary", "40", "--rounds", "2"),
        *("--set", *TINY),
    )
    growth = tree["growth"]
    assert [(each["cached"], each["search"]["beam_size"]) for each in growth] == [
        (True, 1),
        (False, 1),
        (True, 5),
        (False, 5),
    ]
    for each in growth:
        assert each["lengths"] == [2, 3, 5]
        assert [len(seconds) for seconds in each["seconds"]] == [3, 3]
    table = [line.split("|")[1:] for line in capsys.readouterr().out.split("\n") if line.startswith("| T")]
    assert [cells[0].strip() for cells in table] == ["T", "T, no cache"] * 2
    first = growth[0]["seconds"]
    per_token = sorted(1000 * seconds[0] / (2 * 2) for seconds in first)
    assert f"({per_token[0]:.3f}-{per_token[1]:.3f})" in table[0][3]


def test_it_works_in_processes_of_its_own(tmp_path: Path) -> None:
    """Both forms as a user calls them; nothing is replaced."""
    for extra in (["--sentences", "3"], ["--lengths", "2", "4"]):
        words = [
            *(sys.executable, "-m", "nmt.benchmark", "translate", "--models", "T", "--vocabulary", "40"),
            *("--rounds", "1", "--beam-size", "2", "--device", "cpu", "--threads", "1", "--set", *TINY),
            *extra,
        ]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "| T " in done.stdout
        assert "round 1: T" in done.stderr


def test_workers_and_shortlists_are_settings(figures: Figures, scored_runs: Path, tmp_path: Path) -> None:
    run, source = scored_runs / "a_s1", scored_runs.parent / "dev.de"
    tokenizers = checkpoint.load(run).tokenizers
    sides = (map(side.encode, words) for side, words in zip(tokenizers, (WORDS, WORDS.values()), strict=True))
    pairs = [(np.array(source), np.array(target)) for source, target in zip(*sides, strict=True)]
    sizes = (tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size)
    lexicon.build(pairs, sizes, tokenizers.digest, 5, 5).save(tmp_path / "shortlist")
    tree = figures(
        *("--checkpoint", str(run), "--input", str(source), "--shortlist", str(tmp_path / "shortlist")),
        *("--workers", "1", "2", "--rounds", "1", "--beam-size", "2", "--patience", "1"),
    )
    settings = [each["setting"] for each in tree["translate"]]
    assert [(each["shortlist"] is not None, each["workers"]) for each in settings] == [
        (False, 1),
        (False, 2),
        (True, 1),
        (True, 2),
    ]
    alone, shared = (each["rounds"][0] for each in tree["translate"][:2])
    assert shared["passes"][0]["tokens"] == alone["passes"][0]["tokens"]
    assert shared["peak_bytes"] > alone["peak_bytes"] + (50 << 20)  # a Python with torch at the least
    assert tree["translate"][0]["searches"][0]["patience"] == 1.0


def test_exported_models_stand_beside_their_checkpoint(figures: Figures, scored_runs: Path, tmp_path: Path) -> None:
    run, source = scored_runs / "a_s1", scored_runs.parent / "dev.de"
    exported = tmp_path / "exported"
    exported.mkdir()
    ctranslate2.export(checkpoint.load(run), exported, Options("float32"))
    common = ("--input", str(source), "--rounds", "1", "--beam-size", "1")
    tree = figures("--checkpoint", str(run), str(exported), *common, "--precision", "fp32", "int8")
    settings = [(each["model"], each["setting"]["precision"]) for each in tree["translate"]]
    assert settings == [(str(run), "fp32"), (str(run), "int8"), (str(exported), "exported")]
    tokens = [each["rounds"][0]["passes"][0]["tokens"] for each in tree["translate"]]
    assert tokens[2] == tokens[0]
    with pytest.raises(ValueError, match="need checkpoints"):
        figures("--checkpoint", str(exported), "--lengths", "3")


def test_a_sample_is_spread_over_the_text() -> None:
    lines = ["a", " ", *map(str, range(8))]
    assert translation_speed.spread_sample(lines, 3) == ("a", "2", "5")
    assert translation_speed.spread_sample(lines, 100) == ("a", *map(str, range(8)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--checkpoint", "x"], "--input: a trained model needs text"),
        (["--checkpoint", "x", "--input", "y", "--models", "T"], "--models: does nothing with --checkpoint"),
        (["--checkpoint", "x", "--input", "y", "--sentences", "3"], "--sentences: does nothing with --input"),
        (["--checkpoint", "x", "--lengths", "3", "--input", "y"], "--input: does nothing with --lengths"),
        (["--checkpoint", "nowhere", "--lengths", "3"], "nowhere"),
        (["--input", "y"], "--input: does nothing with random models"),
        (["--lengths", "1"], "--lengths: expected 2 or more"),
        (["--lengths", "3", "--workers", "2"], "--workers: does nothing with --lengths"),
        (["--models", "U"], "U: "),
        (["--set", "training.device=cpu"], "give --device instead"),
        (["--vocabulary", "4"], "more than the 4 reserved subwords"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str, figures: Figures) -> None:
    with pytest.raises(ValueError, match=message):
        figures(*arguments)


@pytest.mark.parametrize(
    ("source", "reference", "message"),
    [(" \n\n", "a\nb\n", "holds no sentence"), ("a\nb\n", "a\n", "1 lines, but .* has 2")],
)
def test_texts_that_cannot_be_are_named_before_anything_is_loaded(
    source: str, reference: str, message: str, figures: Figures, scored_runs: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def measure(task: TranslationTask) -> Measured:
        raise AssertionError("measured")

    monkeypatch.setattr(TranslationTask, "measure", measure)
    paths = [tmp_path / "source", tmp_path / "reference"]
    for path, text in zip(paths, (source, reference), strict=True):
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        figures("--checkpoint", str(scored_runs / "a_s1"), "--input", str(paths[0]), "--reference", str(paths[1]))
