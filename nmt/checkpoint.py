"""Checkpoints: folders that describe themselves, written whole or not at all.

    checkpoints/step_000500/   model.safetensors, config.yaml, tokenizer.model (or source.model + target.model),
                               training.pt (what resuming needs; plain types and tensors)
    checkpoints/average/       the same without training.pt: the mean of the newest checkpoints at the end of a run
    checkpoints/last, best     links to one of them

A checkpoint is written under a temporary name, fsynced and renamed, so that a folder with a final name is complete.
"""

import errno
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import safetensors
import safetensors.torch
import torch
import yaml
from torch import Tensor, nn

from nmt.config import ConfigError, TrainConfig, parse, to_tree
from nmt.data.staging import flush
from nmt.data.tokenizer import TokenizerPair
from nmt.models import build
from nmt.models.base import TranslationModel
from nmt.older_keys import fill_in

Value = TypeVar("Value")

MODEL_FILE = "model.safetensors"
CONFIG_FILE = "config.yaml"
TRAINING_FILE = "training.pt"
AVERAGE = "average"
EXPORTED = ("nmt.json", "config.json")
"""What formats of ``nmt.export`` leave in their folders, one or both; no checkpoint holds them."""

FORMAT = "1"
"""Among the facts in a model file (the first ones have none: 1); to be raised when what is written would be misread."""

_BELONGS = "model_sha256"
"""Key in ``training.pt`` of the hash of the model file written with it."""

TEMPORARY = ".writing_"
DELETING = ".deleting_"


class CheckpointError(ValueError):
    """A checkpoint that is missing, incomplete or damaged; the message names the file."""


class NewerFormatError(ValueError):
    """A checkpoint of a later format. It is not damaged: resuming must not pass it over."""


class Checkpoint(NamedTuple):
    """All that is needed to translate."""

    model: TranslationModel  # in eval mode
    tokenizers: TokenizerPair
    config: TrainConfig
    path: Path
    step: int  # updates made


def step_folder(checkpoints: Path, step: int) -> Path:
    """Where the checkpoint of an update lies."""
    return checkpoints / f"step_{step:06d}"


def step_of(folder: Path) -> int:
    """The inverse of :func:`step_folder`."""
    return int(folder.name.removeprefix("step_"))


def step_folders(checkpoints: Path) -> list[Path]:
    """The checkpoints of updates, oldest first (``average`` and the links are not among them)."""
    found = [path for path in checkpoints.glob("step_*") if path.is_dir() and re.fullmatch("[0-9]+", path.name[5:])]
    return sorted(found, key=step_of)


# --- writing ----------------------------------------------------------------------------------------------------------


def save(
    folder: Path,
    weights: Mapping[str, Tensor],
    tokenizers: TokenizerPair,
    config: TrainConfig,
    step: int,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint; one of the same name is replaced after the new one is safe.

    Raises:
        OSError: nothing was written (a full disk, say). The temporary folder is gone and every older checkpoint intact.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.parent / f"{TEMPORARY}{folder.name}"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir()
        tokenizers.save(temporary)
        tree = yaml.safe_dump(to_tree(config), sort_keys=False, allow_unicode=True)
        (temporary / CONFIG_FILE).write_text(tree, encoding="utf-8")
        facts = {"checkpoint_format": FORMAT, "step": str(step), "tokenizers": tokenizers.digest}
        model = _model_bytes(weights, facts)
        (temporary / MODEL_FILE).write_bytes(model)
        if training is not None:
            buffer = io.BytesIO()
            torch.save({**training, _BELONGS: hashlib.sha256(model).hexdigest()}, buffer)
            (temporary / TRAINING_FILE).write_bytes(buffer.getbuffer())
        for path in (*temporary.iterdir(), temporary):
            flush(path)
        _replace(temporary, folder)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"checkpoint not written ({reason}); older checkpoints are intact"
        raise OSError(error.errno or errno.EIO, message, str(folder)) from error


def _model_bytes(weights: Mapping[str, Tensor], facts: dict[str, str]) -> bytes:
    """Safetensors of the weights, each tensor once: a tied one is stored under its first name, the others noted."""
    stored: dict[str, Tensor] = {}
    names: dict[tuple[Any, ...], str] = {}
    ties: dict[str, str] = {}
    for name, tensor in weights.items():
        key = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and key in names:
            ties[name] = names[key]
        else:
            names[key] = name
            stored[name] = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    data: bytes = safetensors.torch.save(stored, {**facts, "ties": json.dumps(ties)})
    return data


def _replace(temporary: Path, folder: Path) -> None:
    """Rename a folder to its final name, where one may stand already."""
    old = folder.parent / f"{TEMPORARY}old_{folder.name}"
    if folder.exists():
        _delete(old)
        os.rename(folder, old)
    os.rename(temporary, folder)
    flush(folder.parent)
    _delete(old)


def _delete(path: Path) -> None:
    """Remove a folder, or whatever else may have got in the way under such a name."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def link(checkpoints: Path, name: str, folder: Path) -> None:
    """Point ``name`` (``last`` or ``best``) at a checkpoint beside it, atomically.

    A symbolic link, or a one-line text file on a file system that has none.
    """
    temporary = checkpoints / f"{TEMPORARY}{name}"
    temporary.unlink(missing_ok=True)
    try:
        temporary.symlink_to(folder.name)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        temporary.write_text(folder.name + "\n", encoding="utf-8")
    os.replace(temporary, checkpoints / name)
    flush(checkpoints)


def remove(folder: Path) -> None:
    """Delete a checkpoint so that what a kill leaves half-deleted does not pass for one."""
    doomed = folder.parent / f"{DELETING}{folder.name}"
    os.rename(folder, doomed)
    shutil.rmtree(doomed)


def clean_up(checkpoints: Path) -> None:
    """Remove what a killed process left half-written. Only for the process that holds the run's lock."""
    for path in (*checkpoints.glob(f"{TEMPORARY}*"), *checkpoints.glob(f"{DELETING}*")):
        old_name = path.name.removeprefix(f"{TEMPORARY}old_")
        if old_name != path.name and not (checkpoints / old_name).exists():
            os.rename(path, checkpoints / old_name)  # killed between the two renames of _replace
        else:
            _delete(path)


# --- reading ----------------------------------------------------------------------------------------------------------


def resolve(path: Path | str) -> Path:
    """The checkpoint folder that a path means: itself, or a run's ``checkpoints/best``, else ``checkpoints/last``.

    Raises:
        CheckpointError: there is none.
    """
    path = Path(path)
    if path.is_file() and path.parent.name == "checkpoints":  # a link on a file system without links
        path = follow(path.parent, path.name) or path
    if any((path / name).is_file() for name in EXPORTED):
        raise CheckpointError(f"{path}: written by nmt.export, no checkpoint; name the one that it was made from")
    if (path / MODEL_FILE).is_file():
        return path
    checkpoints = path / "checkpoints" if (path / "checkpoints").is_dir() else path
    for name in ("best", "last"):
        target = follow(checkpoints, name)
        if target is not None and (target / MODEL_FILE).is_file():
            return target
    if not path.exists():
        raise CheckpointError(f"{path}: no such checkpoint or run folder")
    raise CheckpointError(
        f"{path}: no checkpoint here (expected {MODEL_FILE}, or checkpoints/best or checkpoints/last)"
    )


def follow(checkpoints: Path, name: str) -> Path | None:
    """The folder a link written by :func:`link` points to, or None."""
    path = checkpoints / name
    if path.is_symlink():
        target = os.readlink(path)
    elif path.is_file():
        target = path.read_text(encoding="utf-8", errors="replace").strip()
    else:
        return path if path.is_dir() else None  # a copy that followed the link
    return checkpoints / target if re.fullmatch(f"step_[0-9]+|{AVERAGE}", target) else None


def load(path: Path | str, device: torch.device | str = "cpu") -> Checkpoint:
    """Load a checkpoint folder, or a run folder's best checkpoint. Works wherever it was trained.

    Raises:
        CheckpointError, NewerFormatError: nothing there, or a file is damaged; or a later version has written it.
    """
    folder = resolve(path)
    config = load_config(folder)
    weights, facts = load_weights(folder)
    tokenizers = load_tokenizers(folder, facts)
    model = build(config.model, tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size, config.seed)
    load_into(model, weights, folder)
    return Checkpoint(model.to(device).eval(), tokenizers, config, folder, int(facts["step"]))


def load_ensemble(paths: Sequence[Path | str], device: torch.device | str = "cpu") -> list[Checkpoint]:
    """Load checkpoints whose models are to work as one: all must have the same tokenizers.

    Raises:
        CheckpointError: see :func:`load`; none is named, or their tokenizers differ.
    """
    loaded = [load(path, device) for path in paths]
    if not loaded:
        raise CheckpointError("no checkpoint named: one or more are needed")
    for other in loaded[1:]:
        if other.tokenizers.digest != loaded[0].tokenizers.digest:
            raise CheckpointError(
                f"{loaded[0].path} and {other.path} have different tokenizers: the models of an ensemble must be "
                "trained on the same prepared data"
            )
    return loaded


def load_config(folder: Path) -> TrainConfig:
    """The configuration stored in a checkpoint, or in a run folder."""
    if (folder / MODEL_FILE).is_file():
        _guard(folder, MODEL_FILE, lambda: _facts(folder))  # a newer format is the reason of all that is strange here

    def read() -> TrainConfig:
        tree = yaml.safe_load((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        if not isinstance(tree, dict):
            raise ValueError("holds no keys")
        fill_in(tree)
        return parse(TrainConfig, tree)

    return _guard(folder, CONFIG_FILE, read)


def load_tokenizers(folder: Path, facts: Mapping[str, str]) -> TokenizerPair:
    """The subword models stored in a checkpoint.

    Args:
        folder: the checkpoint.
        facts: of :func:`load_weights`: hold the hash of the tokenizers that the model was trained with.

    Raises:
        CheckpointError: they are missing, damaged or others.
    """
    tokenizers = _guard(folder, "tokenizer", lambda: TokenizerPair.load(folder))
    if facts.get("tokenizers") != tokenizers.digest:
        raise CheckpointError(f"{folder}: the tokenizer is not the one this model was trained with")
    return tokenizers


def load_weights(folder: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Weights on the CPU under every name they have, and the facts stored with them (step, tokenizers' digest)."""

    def read() -> tuple[dict[str, Tensor], dict[str, str]]:
        facts = _facts(folder)
        with safetensors.safe_open(folder / MODEL_FILE, framework="pt") as file:
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        int(facts["step"])
        weights.update({name: weights[first] for name, first in json.loads(facts["ties"]).items()})
        return weights, facts

    return _guard(folder, MODEL_FILE, read)


def _facts(folder: Path) -> dict[str, str]:
    """What is stored with the weights, if this version can read them."""
    with safetensors.safe_open(folder / MODEL_FILE, framework="pt") as file:
        facts: dict[str, str] = file.metadata() or {}
    found = facts.get("checkpoint_format", FORMAT)
    if found != FORMAT:
        raise NewerFormatError(
            f"{folder}: written by a newer version of nmt (format {found}, this one reads {FORMAT}): update nmt"
        )
    return facts


def load_into(model: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Copy weights into a model that must have exactly these.

    Raises:
        CheckpointError: names or shapes differ.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(f"{folder / MODEL_FILE}: does not fit the model of its {CONFIG_FILE}: {error}") from error


def load_training(folder: Path) -> dict[str, Any]:
    """What resuming needs, from ``training.pt``; tensors on the CPU. Reads data only, never code.

    Raises:
        CheckpointError: it is missing, damaged, or of another checkpoint than the model file beside it.
    """
    state = _guard(
        folder, TRAINING_FILE, lambda: torch.load(folder / TRAINING_FILE, map_location="cpu", weights_only=True)
    )
    if not isinstance(state, dict):
        raise CheckpointError(f"{folder / TRAINING_FILE}: damaged")
    belongs = state.pop(_BELONGS, None)  # none in the first checkpoints ever written
    if belongs is not None:
        model = _guard(folder, MODEL_FILE, lambda: (folder / MODEL_FILE).read_bytes())
        if hashlib.sha256(model).hexdigest() != belongs:
            raise CheckpointError(f"{folder}: {TRAINING_FILE} and {MODEL_FILE} are not of one checkpoint")
    return state


def _guard(folder: Path, name: str, read: Callable[[], Value]) -> Value:
    """Read a part of a checkpoint; whatever goes wrong with its bytes becomes a CheckpointError naming it."""
    try:
        return read()
    except (MemoryError, CheckpointError, NewerFormatError):
        raise
    except ConfigError as error:
        raise CheckpointError(f"{folder / name}: {error}; changed by hand, or of a newer nmt: update nmt") from error
    except Exception as error:  # each library has its own family for a damaged file: Runtime, EOF, Unpickling, ...
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{folder / name}: missing or damaged ({reason})") from error
