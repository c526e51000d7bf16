"""``summary.json``: what came out of a run, for tables and comparisons. Its presence says that the run is finished."""

import json
import os
import platform
from pathlib import Path
from typing import Any

import torch

import nmt

SUMMARY_FILE = "summary.json"


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    from importlib.metadata import version

    names = ("torch", "sentencepiece", "sacrebleu", "numpy")
    return {"nmt": nmt.__version__, "python": platform.python_version(), **{name: version(name) for name in names}}


def write_summary(folder: Path, facts: dict[str, Any]) -> None:
    """Write the summary, whole or not at all; threads and versions are added."""
    tree = {**facts, "threads": torch.get_num_threads(), "versions": versions()}
    temporary = folder / f"{SUMMARY_FILE}.tmp"
    temporary.write_text(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(temporary, folder / SUMMARY_FILE)
