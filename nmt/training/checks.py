"""Everything about a configuration that can be known to be wrong before any work is done."""

import torch

from nmt.config import ConfigError, TrainConfig, TrainingConfig, TransformerConfig
from nmt.device import resolve_device, resolve_precision
from nmt.models import build
from nmt.search import check as check_search
from nmt.training.optim import check_optim

LONGEST_TIMEOUT = 10**9
"""Seconds, 30 years: for ever. A clock cannot count much further."""


def check_config(config: TrainConfig) -> None:
    """Refuse values out of range and combinations that cannot work.

    Raises:
        ConfigError: naming the key, what was found and what is expected.
    """
    check_beginning(config)
    try:
        check_search(config.search)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    check_optim(config.optim)
    if isinstance(config.model, TransformerConfig) and config.model.positions == "learned":
        positions = config.model.max_positions
        if positions is not None and positions < config.data.max_length:
            raise ConfigError(
                f"model.max_positions: {positions} learned positions are fewer than data.max_length="
                f"{config.data.max_length} subwords: raise the one or lower the other"
            )
    tokenizer = config.data.tokenizer
    if config.model.tie_embeddings == "three-way" and not tokenizer.joint:
        raise ConfigError(
            "model.tie_embeddings: three-way shares one embedding between both languages, which needs "
            "data.tokenizer.joint=true (or model.tie_embeddings=two-way)"
        )
    if tokenizer.vocabulary_size > 4:  # a wrong one is for the tokenizer to explain
        with torch.device("meta"):  # shapes only: costs no memory and no time
            build(config.model, tokenizer.vocabulary_size, tokenizer.vocabulary_size, config.seed)


def check_beginning(config: TrainConfig) -> None:
    """What has to be right before there is a folder, or another process to wait for: its name, and ``training``."""
    if not config.tag or any(sign in config.tag for sign in "/\\\0"):
        raise ConfigError(f"tag: names a folder, so it must have no slash and not be empty, found {config.tag!r}")
    if config.seed < 0:
        raise ConfigError(f"seed: expected 0 or more, found {config.seed}")
    _check_training(config.training)


def _check_training(config: TrainingConfig) -> None:
    """The group ``training``."""
    _at_least(1, "batch_tokens", config.batch_tokens)
    _at_least(1, "batch_sentences", config.batch_sentences)
    _at_least(1, "accumulate", config.accumulate)
    _at_least(1, "max_steps", config.max_steps)
    _at_least(1, "validate_every", config.validate_every)
    _at_least(1, "validation_sentences", config.validation_sentences)
    _at_least(1, "patience", config.patience)
    _at_least(1, "keep_last", config.keep_last)
    _at_least(0, "average_last", config.average_last)
    _at_least(1, "max_bad_steps", config.max_bad_steps)
    _at_least(1, "log_every", config.log_every)
    for key, limit in (("max_epochs", config.max_epochs), ("max_minutes", config.max_minutes)):
        if limit is not None and not limit > 0:
            raise ConfigError(f"training.{key}: expected null or a number above 0, found {limit}")
    if not 0 < config.timeout <= LONGEST_TIMEOUT:
        raise ConfigError(
            f"training.timeout: expected seconds above 0, {LONGEST_TIMEOUT:,} at most, found {config.timeout}"
        )
    if config.max_steps is config.max_epochs is config.max_minutes is config.patience is None:
        raise ConfigError(
            "training.max_steps: null, and so are max_epochs, max_minutes and patience: "
            "nothing would ever end this run; set one of them"
        )
    if config.average_last == 1:
        raise ConfigError("training.average_last: 1 checkpoint has no other to be averaged with; set 0 or 2 or more")
    if config.average_last > config.keep_last:
        raise ConfigError(
            f"training.average_last: {config.average_last} checkpoints are to be averaged, but training.keep_last "
            f"keeps only {config.keep_last}; raise that, or lower training.average_last"
        )
    try:
        resolve_precision(config.precision, resolve_device(config.device))
    except ValueError as error:
        raise ConfigError(f"training.{error}") from error


def _at_least(least: int, key: str, value: int | None) -> None:
    if value is not None and value < least:
        raise ConfigError(f"training.{key}: expected {least} or more, found {value}")
