"""A run that ``nmt.translate`` can be tried on within a second, and the command within the process of a test."""

import dataclasses
import io
import sys
from pathlib import Path

from nmt import checkpoint, translate
from nmt.cli import default_search
from nmt.data.tokenizer import TokenizerPair, train_tokenizers
from nmt.models import build
from nmt.translator import Translator
from tests.tiny_run import compose_config

TEXT = ["ein hund läuft", "eine frau liest ein buch", "zwei kinder spielen im park", "ein mann schläft ½ tag"] * 5
KEYS = {"text", "score", "log_probability", "log_probability_per_token", "tokens", "length", "finished"}
SHORT = ["--max-length-a", "0", "--max-length-b", "6", "--precision", "fp32"]
"""An untrained model rarely ends by itself: keep its translations short."""
BAHDANAU = ("model=bahdanau", *(f"model.{name}_dim=8" for name in ("embedding", "attention", "maxout")))
BAHDANAU += ("model.hidden_dim=12",)
SEQ2SEQ = ("model=seq2seq", "model.embedding_dim=8", "model.hidden_dim=12")


def make_run(
    folder: Path, seed: int, tokenizers: TokenizerPair | None = None, text: list[str] = TEXT, *model: str
) -> Path:
    """A run folder with one checkpoint of an untrained model."""
    config = compose_config(
        *(model or BAHDANAU), f"seed={seed}", "data.tokenizer.vocabulary_size=60", "training.precision=fp32"
    )
    if tokenizers is None:
        tokenizers = train_tokenizers(config.data.tokenizer, text, text, len(text), seed=1)
    model = build(config.model, tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size, seed)
    for parameter in model.parameters():
        parameter.data.mul_(3.0)  # away from the uniform distribution
    checkpoints = folder / "checkpoints"
    checkpoint.save(checkpoint.step_folder(checkpoints, 1), model.state_dict(), tokenizers, config, step=1)
    checkpoint.link(checkpoints, "last", checkpoint.step_folder(checkpoints, 1))
    return folder


def call(monkeypatch, capsys, stdin: bytes, *arguments: object) -> str:
    """The command within this process: stdout."""
    monkeypatch.setattr(sys, "argv", ["nmt.translate", *map(str, arguments), *SHORT])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii"))
    translate.main()
    return capsys.readouterr().out


def by_the_library(run: Path | list[Path], lines: list[str], n_best: int = 1, **changes: object):
    config = dataclasses.replace(default_search(), max_length_a=0.0, max_length_b=6, **changes)
    return Translator.load(run, "cpu", "fp32").n_best(lines, n_best, config)
