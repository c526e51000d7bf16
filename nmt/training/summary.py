"""The first and the last of a run: lines that introduce it, and ``summary.json``, what came out of it.

The presence of a summary says that the run is finished.
"""

import json
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import nmt
from nmt.config import TrainConfig
from nmt.data.dataset import PreparedData
from nmt.device import Precision, cores
from nmt.machine import peak_memory, processor
from nmt.models import parameter_count
from nmt.models.base import TranslationModel

SUMMARY_FILE = "summary.json"


def introduction(
    config: TrainConfig,
    prepared: PreparedData,
    model: TranslationModel,
    device: torch.device,
    precision: Precision,
    processes: int,
) -> list[str]:
    """What a log begins with: what is trained, on what, where."""
    training = config.training
    why = f"training.precision={training.precision}"
    if training.precision == "auto":
        why += f": this hardware has {'' if precision == 'bf16' else 'no '}bf16 arithmetic"
    lines = [
        f"{config.run_dir}: {config.model.name}, {parameter_count(model):,} parameters, "
        f"on {device} with {torch.get_num_threads()} threads in {precision} ({why})",
        f"{config.data.name}: {len(prepared.train):,} training pairs, {len(prepared.validation):,} validation pairs",
    ]
    if processes > 1:
        lines.append(
            f"{processes} processes share every update of training.accumulate={training.accumulate} "
            f"batches of at most training.batch_tokens={training.batch_tokens} tokens"
        )
    return lines


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    from importlib.metadata import version

    names = ("torch", "sentencepiece", "sacrebleu", "numpy")
    return {"nmt": nmt.__version__, "python": platform.python_version(), **{name: version(name) for name in names}}


def write_summary(folder: Path, facts: dict[str, Any], device: torch.device) -> None:
    """Write the summary, whole or not at all; machine, memory, date and versions are added.

    ``peak_memory_mb`` is of this process: resident, or allocated by torch on a GPU, in MiB. A run that was continued
    has that of its last process, and its command.
    """
    tree = {
        **facts,
        "command": shlex.join(["python", *sys.orig_argv[1:]]),
        "peak_memory_mb": peak_memory(device) / (1 << 20),
        "hardware": {"cpu": processor(), "cores": cores(), "device": _name(device)},
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }
    temporary = folder / f"{SUMMARY_FILE}.tmp"
    temporary.write_text(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(temporary, folder / SUMMARY_FILE)


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
