"""``python -m nmt.export`` and ``python -m nmt.translate`` on what it wrote, as a user meets them."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt import checkpoint, export, translate
from nmt.checkpoint import CheckpointError
from nmt.config import ModelConfig
from nmt.data.tokenizer import train_tokenizers
from nmt.formats import DESCRIPTION_FILE, ExportError
from nmt.models import build
from tests.model_configs import BAHDANAU, SEQ2SEQ, TRANSFORMER, shake
from tests.tiny_run import compose_config

TEXT = ["ein hund läuft", "eine frau liest ein buch", "zwei kinder spielen im park", "ein mann schläft"] * 5
LINES = ["ein hund läuft", "", "eine frau liest im park", "  ", "zwei"]


def make_run(folder: Path, model_config: ModelConfig, seed: int = 1) -> Path:
    """A run folder with one checkpoint of an untrained model with opinions; the seed is also that of its tokenizers."""
    config = replace(compose_config("data.tokenizer.vocabulary_size=48"), model=model_config)
    tokenizers = train_tokenizers(config.data.tokenizer, TEXT[seed:], TEXT[seed:], len(TEXT) - seed, seed)
    model = build(model_config, tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size, seed)
    shake(model)
    step = checkpoint.step_folder(folder / "checkpoints", 7)
    checkpoint.save(step, model.state_dict(), tokenizers, config, step=7)
    checkpoint.link(folder / "checkpoints", "best", step)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "one", TRANSFORMER)


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["nmt.export", *map(str, arguments)])
    export.main()


def write(monkeypatch: pytest.MonkeyPatch, run: Path, output: Path, *arguments: object) -> Path:
    call(monkeypatch, "--checkpoint", run, "--format", "ctranslate2", "--output", output, *arguments)
    return output


def translated(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    options = ["--max-length-a", 1, "--max-length-b", 5, "--threads", torch.get_num_threads(), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["nmt.translate", *map(str, [*arguments, *options])])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(LINES).encode())))
    capsys.readouterr()
    translate.main()
    return capsys.readouterr().out


# --- writing ----------------------------------------------------------------------------------------------------------


def test_the_folder_says_what_it_is(run, tmp_path, monkeypatch, capsys):
    output = write(monkeypatch, run, tmp_path / "exported", "--quantization", "int8")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "(update 7) as ctranslate2" in captured.err
    loaded = checkpoint.load(run)
    assert json.loads((output / DESCRIPTION_FILE).read_text(encoding="utf-8")) == {
        "format": "ctranslate2",
        "version": 1,
        "step": 7,
        "tokenizers": loaded.tokenizers.digest,
        "quantization": "int8",
        "positions": 4096,
    }
    assert checkpoint.load_config(output) == loaded.config
    assert [path.name for path in tmp_path.iterdir()] == ["exported"]


def test_an_empty_folder_is_filled(run, tmp_path, monkeypatch):
    (tmp_path / "exported").mkdir()
    assert (write(monkeypatch, run, tmp_path / "exported") / "model.bin").is_file()


def test_what_is_in_the_way_is_refused_and_left_alone(run, tmp_path, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name, message in (
        ("full", "is not empty; remove it or name another folder"),
        ("file", "is a file; name a folder that is not there yet"),
        ("nowhere/exported", "no folder .*nowhere; make it first"),
    ):
        with pytest.raises(ValueError, match=rf"output \(--output\): .*{message}"):
            write(monkeypatch, run, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]
    assert [path.read_text() for path in (tmp_path / "full").iterdir()] == ["mine"]


@pytest.mark.parametrize("model", [SEQ2SEQ, BAHDANAU], ids=lambda config: config.name)
def test_models_that_the_format_cannot_express(model, tmp_path, monkeypatch):
    other = make_run(tmp_path / "run", model)
    with pytest.raises(ExportError, match=f"ctranslate2 computes Transformers only .* found {model.name}"):
        write(monkeypatch, other, tmp_path / "exported")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_failure_half_way_leaves_nothing(run, tmp_path, monkeypatch):
    def full_disk(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nmt.formats.ctranslate2.write_description", full_disk)  # the model has been written by then
    with pytest.raises(OSError, match="No space left"):
        write(monkeypatch, run, tmp_path / "exported")
    assert list(tmp_path.iterdir()) == []


# --- translating ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return write(monkeypatch, run, tmp_path_factory.mktemp("exported") / "model")


@pytest.mark.parametrize(
    "options",
    [["--beam-size", 1], ["--n-best", 3], ["--alpha", 0.5, "--min-length", 2, "--buffer-size", 1]],
    ids=str,
)
def test_translations_are_those_of_the_checkpoint(run, exported, monkeypatch, capsys, options):
    there, here = (translated(monkeypatch, capsys, "--checkpoint", path, *options) for path in (exported, run))
    assert there.count("\n") >= len(LINES)
    assert there == here or "|||" in here  # scores have more digits than float32
    assert [line.split(" ||| ")[:2] for line in there.split("\n")] == [
        line.split(" ||| ")[:2] for line in here.split("\n")
    ]
    as_json = [
        [
            json.loads(line)
            for line in translated(
                monkeypatch, capsys, "--checkpoint", path, "--output-format", "json", "--token-scores", *options
            ).split("\n")
            if line
        ]
        for path in (exported, run)
    ]
    for one, other in zip(*as_json, strict=True):
        assert one["source"] == other["source"]
        for mine, theirs in zip(one["translations"], other["translations"], strict=True):
            assert mine["score"] == pytest.approx(theirs["score"], abs=1e-3)
            assert mine["token_log_probabilities"] == pytest.approx(theirs["token_log_probabilities"], abs=1e-3)
            assert mine["log_probability"] == pytest.approx(theirs["log_probability"], abs=1e-3)
            for key in ("text", "tokens", "length", "finished"):
                assert mine[key] == theirs[key]


def test_workers_give_the_same_translations(exported, monkeypatch, capsys):
    alone, shared = (
        translated(monkeypatch, capsys, "--checkpoint", exported, "--batch-tokens", 5, *workers)
        for workers in ([], ["--workers", 2])
    )
    assert shared == alone


def test_options_that_do_not_go_together(run, exported, monkeypatch, capsys):
    for arguments, message in (
        (["--checkpoint", exported, "--checkpoint", run], "exported model, which is in no ensemble"),
        (["--checkpoint", run, "--checkpoint", exported], "exported model, which is in no ensemble"),
        (["--checkpoint", exported, "--precision", "bf16"], "chosen when it is written: .* --quantization"),
        (["--checkpoint", exported, "--shortlist", "some"], r"shortlist \(--shortlist\): not with an exported model"),
        (["--checkpoint", exported, "--sample"], "--sample: not with an exported model"),
    ):
        with pytest.raises(ValueError, match=message):
            translated(monkeypatch, capsys, *arguments)


def test_a_damaged_folder_is_refused(run, tmp_path, monkeypatch, capsys):
    """Whatever part is missing, cut short or of another model."""
    other = make_run(tmp_path / "other", TRANSFORMER, seed=2)
    foreign = (checkpoint.resolve(other) / "tokenizer.model").read_bytes()
    damages = {
        DESCRIPTION_FILE: (b"{", r"nmt\.json: missing or damaged"),
        "tokenizer.model": (foreign, "the tokenizer is not the one this model was trained with"),
        "model.bin": (b"\x06", "ctranslate2 cannot load it"),
    }
    for name, (content, message) in damages.items():
        output = write(monkeypatch, run, tmp_path / name.replace(".", "_"))
        (output / name).write_bytes(content)
        with pytest.raises((ExportError, CheckpointError), match=message):
            translated(monkeypatch, capsys, "--checkpoint", output)
    description = json.loads((output / DESCRIPTION_FILE).read_text())
    for key, value in (("version", 99), ("format", "elsewhere")):
        (output / DESCRIPTION_FILE).write_text(json.dumps({**description, key: value}))
        with pytest.raises(ExportError, match=f"found .*{value}.*; write the folder again"):
            translated(monkeypatch, capsys, "--checkpoint", output)


@pytest.mark.parametrize("name", export.FORMATS)
def test_an_exported_folder_is_no_checkpoint(tmp_path, monkeypatch, capsys, name):
    """Commands that need a checkpoint say what it is; translate does so for formats that are for others alone."""
    run = make_run(tmp_path / "run", replace(TRANSFORMER, norm="post"))
    output = tmp_path / "exported"
    call(monkeypatch, "--checkpoint", run, "--format", name, "--output", output)
    with pytest.raises(CheckpointError, match=r"written by nmt\.export, no checkpoint; name the one"):
        checkpoint.resolve(output)
    if name != "ctranslate2":
        with pytest.raises(
            ValueError, match=r"no checkpoint; name the one|write .* with nmt\.export --format ctranslate2"
        ):
            translated(monkeypatch, capsys, "--checkpoint", output)


def test_without_the_package_both_commands_name_the_extra(run, exported, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ExportError, match=r"pip install 'nmt\[ctranslate2\]'"):
        write(monkeypatch, run, tmp_path / "exported")
    with pytest.raises(ExportError, match=r"pip install 'nmt\[ctranslate2\]'"):
        translated(monkeypatch, capsys, "--checkpoint", exported)
    assert list(tmp_path.iterdir()) == []
