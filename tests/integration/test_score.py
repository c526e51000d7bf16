"""``python -m nmt.score``: against the likelihood that training goes by, against the search, and as a user meets it."""

import dataclasses
import gzip
import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from nmt import Scorer, checkpoint, score
from nmt.data.dataset import prepare
from nmt.data.loader import Loader
from nmt.evaluation.likelihood import Likelihood, evaluate_likelihood
from nmt.training import trainer
from nmt.translator import Translator
from tests.oracles import log_probability
from tests.tiny_run import metrics, tiny_config

CPU = torch.device("cpu")
STEPS = 12


@pytest.fixture(scope="module", params=["seq2seq", "bahdanau", "transformer"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every model, hardly trained, on data whose validation set has a blank line on either side."""
    folder = tmp_path_factory.mktemp(request.param)
    config = tiny_config(folder, request.param)
    for ending, added in (("de", "\nzwei drei\n"), ("en", "one\n\n")):
        path = folder / f"dev.{ending}"
        path.write_text(path.read_text(encoding="utf-8") + added, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "attention_figure", lambda *arguments: Figure(figsize=(1, 1)))
        trainer.train(config)
    return config.run_dir


def last(run: Path) -> Path:
    return checkpoint.step_folder(run / "checkpoints", STEPS)


def files(run: Path) -> tuple[Path, Path]:
    folder = run.parent.parent
    return folder / "dev.de", folder / "dev.en"


def pairs(run: Path) -> list[tuple[str, str]]:
    sources, targets = (path.read_text(encoding="utf-8").split("\n")[:-1] for path in files(run))
    return list(zip(sources, targets, strict=True))


def call(monkeypatch, capsys, *arguments: object) -> tuple[str, str]:
    """The command within this process: stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["nmt.score", *map(str, arguments)])
    score.main()
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_the_sum_is_what_validation_found(trained, monkeypatch, capsys):
    source, target = files(trained)
    out, err = call(
        monkeypatch,
        capsys,
        "--checkpoint",
        last(trained),
        "--source",
        source,
        "--target",
        target,
        "--output-format",
        "json",
    )
    total = json.loads(err)
    loaded = checkpoint.load(last(trained))
    data = prepare(loaded.config.data, lambda message: None)
    loader = Loader(data.validation, 160, None, seed=1, shuffle=False)
    expected = evaluate_likelihood(loaded.model, loader, CPU, "fp32")
    assert total["tokens"] == expected.tokens
    assert total["log_probability"] == pytest.approx(-expected.nll, rel=1e-5)
    assert total["perplexity"] == pytest.approx(expected.perplexity, rel=1e-5)
    [logged] = [line for line in metrics(trained, "validation") if line["step"] == STEPS]
    assert total["perplexity"] == pytest.approx(logged["perplexity"], rel=1e-4)
    lines = [json.loads(line) for line in out.removesuffix("\n").split("\n")]
    assert [(line["source"], line["target"]) for line in lines] == pairs(trained)
    assert ("", "one") in pairs(trained)
    assert sum(line["log_probability"] for line in lines) == pytest.approx(total["log_probability"])
    words = sum(len(line["target"].split()) + 1 for line in lines)
    assert total["perplexity_per_word"] == pytest.approx(math.exp(-total["log_probability"] / words))
    assert total["perplexity_per_byte"] == pytest.approx(math.exp(-total["log_probability"] / target.stat().st_size))


def test_each_score_is_that_of_the_pair_alone_token_for_token(trained):
    loaded = checkpoint.load(last(trained))
    scorer = Scorer([loaded.model], loaded.tokenizers, CPU, "fp32")
    for (source, target), found in zip(pairs(trained), scorer.score(pairs(trained)), strict=True):
        ids = loaded.tokenizers.target.encode(target)
        alone = log_probability(loaded.model, loaded.tokenizers.source.encode(source), ids, finished=True)
        assert found.log_probability == pytest.approx(alone, abs=1e-4)
        assert found.log_probability == pytest.approx(sum(found.token_log_probabilities))
        assert found.length == len(ids) + 1 == len(found.tokens) + 1
        assert found.per_token == pytest.approx(alone / found.length, abs=1e-4)
        assert found.perplexity == pytest.approx(math.exp(-alone / found.length), rel=1e-4)


def test_order_batches_and_buffers_change_nothing(trained):
    scorer = Scorer.load(last(trained), "cpu")
    lines = pairs(trained)
    usual = [found.log_probability for found in scorer.score(lines)]
    for batch_tokens in (1, 17):
        assert [found.log_probability for found in scorer.score(lines, batch_tokens)] == pytest.approx(usual, abs=1e-4)
    order = random.Random(1).sample(range(len(lines)), len(lines))
    shuffled = scorer.score([lines[place] for place in order])
    assert [found.log_probability for found in shuffled] == pytest.approx([usual[i] for i in order], abs=1e-4)
    for buffer_size in (1, 5, 1000):
        streamed = list(scorer.stream(lines, buffer_size))
        assert [(source, target) for source, target, _ in streamed] == lines
        assert [found.log_probability for *_, found in streamed] == pytest.approx(usual, abs=1e-4)


def test_translations_score_what_the_search_says_of_them(scored_runs):
    run = scored_runs / "a_s1"
    translator, scorer = Translator.load(run, "cpu"), Scorer.load(run, "cpu")
    config = dataclasses.replace(translator.search, beam_size=2, max_length_a=0.0, max_length_b=9)
    lines = ["eins zwei", "drei vier fünf", "sechs", "acht acht eins zwei drei"]
    seen = 0
    for line, found in zip(lines, translator.translate(lines, config, token_scores=True), strict=True):
        if found.finished and translator.tokenizers.target.encode(found.text) == found.ids:
            [given] = scorer.score([(line, found.text)])
            assert given.log_probability == pytest.approx(found.log_probability, abs=1e-4)
            assert given.token_log_probabilities == pytest.approx(found.token_log_probabilities, abs=1e-4)
            assert given.tokens == found.tokens
            seen += 1
    assert seen


def test_text_is_four_columns_for_each_pair(trained, tmp_path, monkeypatch, capsys):
    source, target = files(trained)
    with gzip.open(tmp_path / "dev.de.gz", "wb") as packed:
        packed.write(source.read_bytes())
    arguments = ["--checkpoint", last(trained), "--source", tmp_path / "dev.de.gz", "--target", target]
    out, err = call(monkeypatch, capsys, *arguments, "--output", tmp_path / "scores.txt", "--buffer-size", 4)
    assert out == ""
    rows = [line.split("\t") for line in (tmp_path / "scores.txt").read_text().removesuffix("\n").split("\n")]
    expected = Scorer.load(last(trained), "cpu").score(pairs(trained))
    assert [int(row[1]) for row in rows] == [found.length for found in expected]
    for column, name in ((0, "log_probability"), (2, "per_token"), (3, "perplexity")):
        values = [getattr(found, name) for found in expected]
        assert [float(row[column]) for row in rows] == pytest.approx(values, rel=1e-4, abs=1e-4)
    assert f"{len(rows)} pairs" in err
    total = Likelihood(-sum(found.log_probability for found in expected), sum(found.length for found in expected))
    assert f"perplexity {total.perplexity:.2f}" in err


def test_an_ensemble_of_a_model_with_itself_is_the_model(trained):
    one, two = Scorer.load(last(trained), "cpu"), Scorer.load([last(trained), last(trained)], "cpu")
    single, double = (scorer.score(pairs(trained)) for scorer in (one, two))
    assert [found.log_probability for found in double] == pytest.approx(
        [found.log_probability for found in single], abs=1e-4
    )


# --- mistakes and odd files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trained", ["transformer"], indirect=True)
def test_mistakes_are_named_and_leave_no_file(trained, tmp_path, monkeypatch, capsys):
    (tmp_path / "two").write_text("eins\nzwei\n")
    (tmp_path / "one").write_text("one\n")
    (tmp_path / "latin").write_bytes(b"one\ntw\xf6\n")

    def refused(match: str, source: str, target: str, *arguments: object) -> None:
        named = ["--source", tmp_path / source, "--target", tmp_path / target, "--output", tmp_path / "out"]
        with pytest.raises(ValueError, match=match):
            call(monkeypatch, capsys, "--checkpoint", last(trained), *named, *arguments)
        assert not (tmp_path / "out").exists()

    refused("two has 2 lines but .*one has 1", "two", "one", "--buffer-size", 1)
    refused("one has 1 lines but .*two has 2", "one", "two")
    refused("nowhere: no such file", "two", "nowhere")
    refused("latin: line 2", "two", "latin")
    refused("--buffer-size", "two", "two", "--buffer-size", 0)
    refused("--batch-tokens", "two", "two", "--batch-tokens", 0)
    refused("--threads", "two", "two", "--threads", 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latin", "one", "two"]


@pytest.mark.parametrize("trained", ["transformer"], indirect=True)
def test_nothing_in_nothing_out(trained, tmp_path, monkeypatch, capsys):
    (tmp_path / "none").write_text("")
    arguments = ["--checkpoint", last(trained), "--source", tmp_path / "none", "--target", tmp_path / "none"]
    assert call(monkeypatch, capsys, *arguments) == ("", "0 pairs\n")
    out, err = call(monkeypatch, capsys, *arguments, "--output-format", "json")
    assert (out, json.loads(err)["perplexity"]) == ("", None)


def test_a_users_mistake_is_one_line_and_status_2(tmp_path):
    (tmp_path / "text").write_text("eins\n")
    command = [sys.executable, "-m", "nmt.score", "--checkpoint", tmp_path / "nowhere"]
    command += ["--source", tmp_path / "text", "--target", tmp_path / "text"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "nowhere" in done.stderr
