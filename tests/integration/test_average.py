"""``python -m nmt.average``: the mean of what checkpoints hold, in a folder that the other commands take."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from nmt import Scorer, Translator, average, checkpoint
from nmt.data.tokenizer import train_tokenizers
from nmt.models import build
from nmt.training import trainer
from tests.tiny_run import WORDS, assert_equal, tiny_config


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints after updates 6, 9 and 12, and the average of the last two that training makes itself."""
    config = tiny_config(
        tmp_path_factory.mktemp("averaged"),
        "transformer",
        "training.validate_every=3",
        "model.tie_embeddings=three-way",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "attention_figure", lambda *arguments: Figure(figsize=(1, 1)))
        trainer.train(config)
    return config.run_dir


def call(monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["nmt.average", *map(str, arguments)])
    average.main()


def step(run: Path, number: int) -> Path:
    return checkpoint.step_folder(run / "checkpoints", number)


def test_the_mean_is_the_one_that_training_makes(run, tmp_path, monkeypatch, capsys):
    call(monkeypatch, "--run", run, "--last", 2, "--output", tmp_path / "mean")
    own, trained = checkpoint.load(tmp_path / "mean"), checkpoint.load(run / "checkpoints" / "average")
    assert_equal(own.model.state_dict(), trained.model.state_dict())
    assert (own.step, own.config, own.tokenizers.digest) == (12, trained.config, trained.tokenizers.digest)
    assert capsys.readouterr().out == ""
    stored, of_one = (folder / checkpoint.MODEL_FILE for folder in (tmp_path / "mean", step(run, 12)))
    assert stored.stat().st_size == pytest.approx(of_one.stat().st_size, rel=0.01)  # a tied matrix once, in float32


def test_every_weight_is_the_mean_of_the_named_checkpoints(run, tmp_path, monkeypatch):
    folders = [step(run, number) for number in (12, 3, 9)]
    call(monkeypatch, "--checkpoints", *folders[:2], "--checkpoints", folders[2], "--output", tmp_path / "mean")
    each = [checkpoint.load(folder).model.state_dict() for folder in folders]
    found = checkpoint.load(tmp_path / "mean")
    for name, weight in found.model.state_dict().items():
        expected = torch.stack([weights[name].double() for weights in each]).mean(dim=0)
        torch.testing.assert_close(weight.double(), expected, atol=1e-7, rtol=1e-6)
    assert any(not torch.equal(weight, each[0][name]) for name, weight in found.model.state_dict().items())
    assert found.step == 12


def test_what_is_written_translates_and_scores(run, tmp_path, monkeypatch):
    call(monkeypatch, "--run", run, "--last", 3, "--output", tmp_path / "new" / "mean")
    assert len(Translator.load(tmp_path / "new" / "mean", "cpu").translate(["eins zwei"], beam_size=1)) == 1
    [score] = Scorer.load(tmp_path / "new" / "mean", "cpu").score([("eins zwei", "two one")])
    assert score.log_probability < 0


def other(run: Path, folder: Path, **changes: object) -> Path:
    """A checkpoint of the same data and another model."""
    loaded = checkpoint.load(step(run, 12))
    config = dataclasses.replace(loaded.config, model=dataclasses.replace(loaded.config.model, **changes))
    size = loaded.tokenizers.source.vocabulary_size
    weights = build(config.model, size, size, seed=1).state_dict()
    checkpoint.save(folder, weights, loaded.tokenizers, config, step=1)
    return folder


def test_what_does_not_belong_together_is_refused_and_named(run, tmp_path, monkeypatch):
    first = step(run, 12)

    def refused(match: str, *arguments: object) -> None:
        with pytest.raises(ValueError, match=match):
            call(monkeypatch, *arguments, "--output", tmp_path / "mean")
        assert not (tmp_path / "mean").exists()

    wider = other(run, tmp_path / "wider", feedforward_dim=20, norm="post")
    refused(r"model\.feedforward_dim \(24 and 20\).*model\.norm \(pre and post\)", "--checkpoints", first, wider)
    loaded = checkpoint.load(first)
    lines = [*WORDS, *WORDS.values()] * 3
    strange = train_tokenizers(loaded.config.data.tokenizer, lines, lines, len(lines), seed=1)
    checkpoint.save(tmp_path / "strange", loaded.model.state_dict(), strange, loaded.config, step=1)
    refused("different tokenizers", "--checkpoints", first, tmp_path / "strange")
    refused("holds 4 checkpoints, 9 are wanted", "--run", run, "--last", 9)
    refused("--last: expected 2 or more", "--run", run, "--last", 1)
    refused("no other", "--checkpoints", first)
    refused("there already", "--checkpoints", first, step(run, 9), run / "checkpoints" / "last")
    refused("either --checkpoints", "--run", run)
    refused("either --checkpoints", "--last", 2)
    refused("either --checkpoints", "--checkpoints", first, step(run, 9), "--run", run, "--last", 2)
    refused("nowhere", "--checkpoints", first, tmp_path / "nowhere")


def test_other_dropout_is_no_other_model(run, tmp_path, monkeypatch):
    same = other(run, tmp_path / "same", dropout=0.0)
    call(monkeypatch, "--checkpoints", step(run, 12), same, "--output", tmp_path / "mean")
    assert checkpoint.load(tmp_path / "mean").step == 12


def test_nothing_that_is_there_is_overwritten(run, tmp_path, monkeypatch):
    before = sorted(path.name for path in run.iterdir())
    for taken in (run, step(run, 9), tmp_path):
        with pytest.raises(ValueError, match="exists already"):
            call(monkeypatch, "--run", run, "--last", 2, "--output", taken)
    assert sorted(path.name for path in run.iterdir()) == before


def test_a_users_mistake_is_one_line_and_status_2(tmp_path):
    command = [sys.executable, "-m", "nmt.average", "--run", tmp_path / "nowhere", "--last", "2"]
    done = subprocess.run([*command, "--output", tmp_path / "mean"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "nowhere" in done.stderr
