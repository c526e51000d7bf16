"""What other programs read: one module for each format a checkpoint can be written in, and what all share.

A module of a format offers ``export(checkpoint, folder, options)``: it writes into an empty folder, which the command
``nmt.export`` gives its final name when everything is in it. What a format cannot express it refuses, with the reason,
as an :class:`ExportError`; libraries beyond those of translating are imported where they are used.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nmt.checkpoint import CONFIG_FILE, Checkpoint
from nmt.config import to_tree

DESCRIPTION_FILE = "nmt.json"
VERSION = 1
"""Of what ``nmt.json`` says; another number is refused when a folder is loaded."""


class ExportError(ValueError):
    """A model that a format cannot express, or an exported folder that cannot be used; says why."""


class Options(NamedTuple):
    """What the command line asks of a format; None: not asked for. A format refuses by name what it cannot do."""

    quantization: str | None


def write_description(folder: Path, checkpoint: Checkpoint, format_name: str, facts: Mapping[str, Any]) -> None:
    """Leave in ``folder`` where it came from: ``nmt.json``, ``config.yaml`` and the SentencePiece models.

    ``nmt.json`` holds the format's name and version of the description, the checkpoint's update and tokenizers' digest,
    and what the format adds.
    """
    checkpoint.tokenizers.save(folder)
    tree = yaml.safe_dump(to_tree(checkpoint.config), sort_keys=False, allow_unicode=True)
    (folder / CONFIG_FILE).write_text(tree, encoding="utf-8")
    description = {
        "format": format_name,
        "version": VERSION,
        "step": checkpoint.step,
        "tokenizers": checkpoint.tokenizers.digest,
        **facts,
    }
    text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    (folder / DESCRIPTION_FILE).write_text(text, encoding="utf-8")


def is_exported(folder: Path) -> bool:
    """Whether a path leads to a folder that ``nmt.export`` wrote, in whatever format, and not to a checkpoint."""
    return (folder / DESCRIPTION_FILE).is_file()


def read_description(folder: Path, format_name: str) -> dict[str, Any]:
    """What :func:`write_description` left in a folder of this format.

    Raises:
        ExportError: there is none, or one of another format or version.
    """
    path = folder / DESCRIPTION_FILE
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        found = description["format"], description["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(f"{path}: missing or damaged ({error}); write the folder again with nmt.export") from error
    if found[0] != format_name:
        raise ExportError(
            f"{path}: expected format {format_name}, found {found[0]}: nmt itself can only use the former; "
            f"write the folder again with nmt.export --format {format_name}"
        )
    if found != (format_name, VERSION):
        raise ExportError(
            f"{path}: expected format {format_name}, version {VERSION}, found {found[0]}, version {found[1]}; "
            "write the folder again with nmt.export"
        )
    return dict(description)
