"""A corpus and models so small that a whole training run takes a second."""

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from nmt import checkpoint
from nmt.composition import register_resolvers
from nmt.config import CONFIG_DIR, TrainConfig, parse

WORDS = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four", "fünf": "five", "sechs": "six", "acht": "eight"}

MODELS = {
    "seq2seq": ("model.embedding_dim=12", "model.hidden_dim=16"),
    "bahdanau": ("model.embedding_dim=12", "model.hidden_dim=12", "model.attention_dim=12", "model.maxout_dim=12"),
    "transformer": (
        "model.dim=16",
        "model.heads=2",
        "model.encoder_layers=1",
        "model.decoder_layers=2",
        "model.feedforward_dim=24",
        "model.attention_dropout=0.1",
    ),
}


def write_corpus(folder: Path) -> None:
    """Train and validation files: numerals, translated word by word in reverse order."""
    generator = random.Random(7)
    for split, pairs in (("train", 240), ("dev", 12)):
        sentences = [generator.choices(list(WORDS), k=generator.randint(1, 7)) for _ in range(pairs)]
        targets = [[WORDS[word] for word in reversed(sentence)] for sentence in sentences]
        for ending, lines in (("de", sentences), ("en", targets)):
            text = "".join(" ".join(line) + "\n" for line in lines)
            (folder / f"{split}.{ending}").write_text(text, encoding="utf-8")


def tiny_config(folder: Path, model: str = "transformer", *overrides: str) -> TrainConfig:
    """The shipped configuration with tiny sizes; data and cache in ``folder``, which several tests may share."""
    if not (folder / "dev.en").exists():
        write_corpus(folder)
    return compose_config(*tiny_overrides(folder, model), *overrides)


def tiny_overrides(folder: Path, model: str = "transformer") -> list[str]:
    """What :func:`tiny_config` changes, as the command line takes it."""
    return [
        f"model={model}",
        *MODELS[model],
        "model.dropout=0.2",
        "data=files",
        "data.source=de",
        "data.target=en",
        f"data.train={folder}/train",
        f"data.validation={folder}/dev",
        f"data.cache={folder}/cache",
        "data.tokenizer.vocabulary_size=48",
        "search=greedy",
        "search.max_length_b=5",
        f"runs={folder}/runs",
        "training.device=cpu",
        "training.precision=fp32",
        "training.batch_tokens=160",
        "training.max_steps=12",
        "training.validate_every=6",
        "training.log_every=3",
        "training.average_last=2",
        "training.patience=null",
        "optim.schedule.warmup_steps=5",
    ]


def compose_config(*overrides: str) -> TrainConfig:
    """A shipped configuration with overrides, as ``nmt.train`` composes it."""
    register_resolvers()
    with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        tree = compose("train", overrides=list(overrides))
    return parse(TrainConfig, OmegaConf.to_container(tree, resolve=True, throw_on_missing=True))


def metrics(run: Path, *events: str) -> list[dict[str, Any]]:
    """Lines of ``metrics.jsonl`` without times, of the named events only (all, if none is named)."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n") if line]
    for line in lines:
        del line["time"]
    return [line for line in lines if not events or line["event"] in events]


def limited(config: TrainConfig, **changes: object) -> TrainConfig:
    """The same run with other keys of ``training``."""
    return dataclasses.replace(config, training=dataclasses.replace(config.training, **changes))  # type: ignore[arg-type]


def saved(config: TrainConfig, step: int) -> dict[str, Any]:
    """All that a checkpoint holds but times: weights, optimizer, counters, generators."""
    folder = checkpoint.step_folder(config.run_dir / "checkpoints", step)
    training = checkpoint.load_training(folder)
    del (
        training["state"]["train_seconds"],
        training["state"]["elapsed_seconds"],
        training["state"]["interval"]["seconds"],
    )
    return {"weights": checkpoint.load_weights(folder)[0], **training}


def assert_equal(one: Any, two: Any, where: str = "checkpoint") -> None:
    """Two trees of plain values and tensors are bit for bit the same."""
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, two), where
    elif isinstance(one, dict):
        assert one.keys() == two.keys(), where
        for key in one:
            assert_equal(one[key], two[key], f"{where}: {key}")
    elif isinstance(one, list):
        assert len(one) == len(two), where
        for number, (left, right) in enumerate(zip(one, two, strict=True)):
            assert_equal(left, right, f"{where}: {number}")
    else:
        assert one == two, where


def assert_same_end(one: TrainConfig, two: TrainConfig, step: int) -> None:
    """Two runs ended after ``step`` updates with the same checkpoint and have the same metrics, times left out."""
    assert_equal(saved(one, step), saved(two, step))
    assert metrics(one.run_dir) == metrics(two.run_dir)
