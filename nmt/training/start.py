"""Where a run starts from: nothing, another run's checkpoint (``init_from``), or its own newest one."""

import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import yaml

from nmt import checkpoint
from nmt.checkpoint import Checkpoint, CheckpointError
from nmt.config import ConfigError, TrainConfig, to_tree
from nmt.data.dataset import PreparedData
from nmt.data.tokenizer import TokenizerPair
from nmt.training.resume import changes, check_same, may_differ

FREE = ("model.dropout", "model.attention_dropout", "model.initialization", "model.init_range")
"""Keys of a model that may differ from the checkpoint's in fine-tuning: all others decide what its parameters mean."""


class Start(NamedTuple):
    """What a run is really made of."""

    config: TrainConfig  # as asked for; in fine-tuning with the tokenizer keys of the checkpoint
    tokenizers: TokenizerPair | None  # encode the data with these (fine-tuning); None: train subwords on the data
    initial: Checkpoint | None  # take its parameters (the beginning of fine-tuning)
    lines: list[str]  # for the log


def find_start(config: TrainConfig) -> Start:
    """Look at the run's folder, and at ``init_from`` if the run is a new one.

    Raises:
        ConfigError: the run in the folder has another configuration, ``init_from`` does not fit, or there is nothing to
            reset yet.
        CheckpointError: there are checkpoints in the folder, and all of them are damaged.
    """
    checkpoints = config.run_dir / "checkpoints"
    folders = checkpoint.step_folders(checkpoints)
    if folders:
        return _resumed(config, folders)
    for key in ("reset_optimizer", "reset_schedule"):
        if getattr(config.training, key):
            raise ConfigError(f"training.{key}: there is nothing to reset: {checkpoints} holds no checkpoint to resume")
    return Start(config, None, None, []) if config.init_from is None else fine_tuning(config)


def _resumed(config: TrainConfig, folders: list[Path]) -> Start:
    """From the newest checkpoint whose configuration can be read; ``Keeper.resume`` sees to the rest of it."""
    for folder in reversed(folders):
        try:
            stored = checkpoint.load_config(folder)
            _, facts = checkpoint.load_weights(folder)
            tokenizers = checkpoint.load_tokenizers(folder, facts) if stored.init_from is not None else None
        except CheckpointError:
            continue
        if tokenizers is not None and config.init_from is not None:
            config = with_tokenizer_of(stored, config)
        check_same(stored, config, config.run_dir)
        return Start(config, tokenizers, None, _foreign(stored, config.run_dir))
    raise CheckpointError(
        f"{folders[0].parent}: none of its {len(folders)} checkpoints can be read; delete the folder to start over"
    )


def _foreign(stored: TrainConfig, folder: Path) -> list[str]:
    """A warning if the folder's own ``config.yaml``, which is written anew, is not that of its checkpoints."""
    try:
        changed = changes(stored, checkpoint.load_config(folder))
    except CheckpointError as error:
        return [f"warning: {error}; written anew, the checkpoints' own counts"]
    # The recipe may have changed in a resume that was killed before it had saved anything.
    other = [f"{key} ({was} there, {now} here)" for key, (was, now) in changed.items() if not may_differ(key)]
    if not other:
        return []
    return [f"warning: {folder / 'config.yaml'}: not that of its checkpoints: {'; '.join(other)}; written anew"]


def fine_tuning(config: TrainConfig) -> Start:
    """A new run that begins with the parameters and the tokenizer of ``config.init_from``.

    Raises:
        ConfigError: there is no whole checkpoint, or its model is another than ``config.model``; names every key.
    """
    assert config.init_from is not None
    try:
        initial = checkpoint.load(Path(config.init_from).expanduser())
    except CheckpointError as error:
        raise ConfigError(f"init_from: {error}") from error
    stored = initial.config
    differing = changes(stored.model, config.model, "model").items()
    refused = [f"{key} ({was} there, {now} here)" for key, (was, now) in differing if key not in FREE]
    if refused:
        raise ConfigError(
            f"init_from: {initial.path} holds another model: {'; '.join(refused)}. Give the checkpoint's values"
        )
    used = with_tokenizer_of(stored, config)
    languages = f"{stored.data.source} to {stored.data.target}"
    lines = [f"init_from: parameters and tokenizer of {initial.path} ({languages}, after update {initial.step})"]
    overridden = changes(config.data.tokenizer, used.data.tokenizer, "data.tokenizer")
    lines += [f"{key}: {asked} (config) -> {now} (checkpoint's)" for key, (asked, now) in overridden.items()]
    if (stored.data.source, stored.data.target) != (config.data.source, config.data.target):
        lines.append(f"warning: this run translates {config.data.source} to {config.data.target}")
    return Start(used, initial.tokenizers, initial, lines)


def with_tokenizer_of(stored: TrainConfig, config: TrainConfig) -> TrainConfig:
    """``config`` with the tokenizer keys of ``stored``; whether its subwords are sampled is the run's own choice."""
    rate = config.data.tokenizer.subword_regularization
    tokenizer = replace(stored.data.tokenizer, subword_regularization=rate)
    return replace(config, data=replace(config.data, tokenizer=tokenizer))


def write_start(folder: Path, config: TrainConfig, prepared: PreparedData) -> None:
    """Write down what the run is made of: its configuration, whole or not at all, and its tokenizers."""
    temporary = folder / "config.yaml.tmp"
    temporary.write_text(yaml.safe_dump(to_tree(config), sort_keys=False, allow_unicode=True), encoding="utf-8")
    os.replace(temporary, folder / "config.yaml")
    prepared.tokenizers.save(folder)
