"""Checkpoints of small, lively, untrained models, as the formats of other programs get them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from nmt.checkpoint import Checkpoint
from nmt.config import ModelConfig, TrainConfig
from nmt.data.tokenizer import TokenizerPair, train_tokenizers
from nmt.models import build
from tests.model_configs import shake
from tests.tiny_run import compose_config

SOURCES = [
    "Ein Hund läuft über die Straße .",
    "Die Frau liest ein „altes“ Buch – oder zwei ?",
    "Zwei Männer sitzen im Café & trinken 10,5 l Tee ( heiß ) ...",
    "Über 1.000 <kleine> Mädchen spielen im Park !",
    "Ist das Öl von 1998 ; teuer : ja / nein ' so ' ?",
] * 3
TARGETS = [
    "A dog runs across the street .",
    "The woman reads an “old” book - or two ?",
    "Two men sit in the café & drink 10.5 l of tea ( hot ) ...",
    "More than 1,000 <little> girls play in the park !",
    "Is the oil from 1998 ; expensive : yes / no ' so ' ?",
] * 3


def tokenizer_config(**tokenizer: Any) -> TrainConfig:
    """The shipped configuration for files, with keys of ``data.tokenizer`` changed."""
    usual = {"vocabulary_size": 150, "num_threads": 1} | tokenizer
    overrides = [f"data.tokenizer.{key}={value}" for key, value in usual.items()]
    files = ["data=files", "data.source=de", "data.target=en", "data.train=train", "data.validation=dev"]
    return compose_config(*files, "search=greedy", *overrides)


def train_pair(config: TrainConfig) -> TokenizerPair:
    """Subwords of the sentences above."""
    return train_tokenizers(config.data.tokenizer, SOURCES, TARGETS, len(SOURCES), seed=1)


def lively_checkpoint(model: ModelConfig, tokenizers: TokenizerPair, config: TrainConfig, seed: int = 1) -> Checkpoint:
    """A model in eval mode, none of whose parameters is zero or one, with its tokenizers."""
    sizes = (tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size)
    network = build(model, *sizes, seed).eval()
    shake(network)
    return Checkpoint(network, tokenizers, replace(config, model=model), Path("step_000007"), 7)
