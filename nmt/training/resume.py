"""Whether a run folder may be gone on with: one process at a time, and the same configuration.

``training.reset_optimizer`` and ``training.reset_schedule`` let the recipe change. Whether a reset is still to be made
follows from the checkpoint gone on from, whose configuration says under which recipe and flags it was written: a reset
is made if the flag was not set then, or if the recipe was another one. So a run that is killed before the first
checkpoint after a reset, or that falls back to one before it, makes the reset again from the same state; and once there
is a checkpoint the same command makes no second one.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nmt.config import ConfigError, TrainConfig, to_tree
from nmt.training.state import TrainState

CHANGEABLE = (
    "tag",
    "runs",
    "data.cache",
    "data.folder",
    "data.timeout",
    "search.batch_tokens",
    "training.device",
    "training.max_steps",
    "training.max_epochs",
    "training.max_minutes",
    "training.patience",
    "training.keep_last",
    "training.average_last",
    "training.max_bad_steps",
    "training.log_every",
    "training.timeout",
    "training.reset_optimizer",
    "training.reset_schedule",
)
"""Keys that may differ when a run is resumed: where things lie, when to stop, what to keep and to show."""


LOCK_FILE = ".lock"


class Resets(NamedTuple):
    """What is to be forgotten on this resume."""

    optimizer: bool
    schedule: bool

    def allow(self, key: str) -> bool:
        """Whether a key of the recipe may differ: all with a new optimizer; else not what the moments were made by."""
        moments = key.startswith("optim.optimizer.") and key != "optim.optimizer.learning_rate"
        return key.startswith("optim.") and (self.optimizer or (self.schedule and not moments))


def due_resets(stored: TrainConfig, asked: TrainConfig) -> Resets:
    """Which resets are asked for and not made yet in a checkpoint that was written with ``stored``."""
    other = stored.optim != asked.optim
    before, now = stored.training, asked.training
    return Resets(
        optimizer=now.reset_optimizer and (other or not before.reset_optimizer),
        schedule=now.reset_schedule and (other or not before.reset_schedule),
    )


def apply_resets(resets: Resets, state: TrainState, epochs: float) -> None:
    """Forget what the state holds of it; ``epochs`` are the passes over the training data so far."""
    if resets.optimizer:
        state.optimizer_reset = state.step
    if resets.schedule:
        state.restart_schedule(epochs)


def reset_lines(config: TrainConfig, resets: Resets, state: TrainState) -> list[str]:
    """For the log: what is reset now, and what was on an earlier resume and is not once more."""
    training = config.training
    lines = []
    if training.reset_optimizer:
        done = f"the moments are forgotten after update {state.optimizer_reset}"
        lines.append(f"training.reset_optimizer: {done}" + ("" if resets.optimizer else ", not once more"))
    if training.reset_schedule:
        done = f"warm-up and decay begin anew after update {state.schedule_start}"
        lines.append(f"training.reset_schedule: {done}" + ("" if resets.schedule else ", not once more"))
    return lines


def flatten(tree: Any, path: str = "") -> dict[str, Any]:
    """``{"a": {"b": 1}}`` as ``{"a.b": 1}``; lists stay values."""
    if not isinstance(tree, dict):
        return {path: tree}
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat.update(flatten(value, f"{path}.{key}" if path else str(key)))
    return flat


def changes(before: Any, now: Any, path: str = "") -> dict[str, tuple[str, str]]:
    """The keys in which two configurations (of the group ``path``) differ, with both values as YAML shows them."""
    first, second = flatten(to_tree(before), path), flatten(to_tree(now), path)
    return {
        key: (show(first.get(key, "absent")), show(second.get(key, "absent")))
        for key in [*first, *(key for key in second if key not in first)]
        if first.get(key, "absent") != second.get(key, "absent")
    }


def may_differ(key: str) -> bool:
    """Whether a key can ever have two values in one run."""
    return key in CHANGEABLE or key.startswith("optim.")


def check_same(stored: TrainConfig, asked: TrainConfig, folder: Path) -> list[str]:
    """Refuse to resume with another configuration than the run has had; returns a line for each key that may differ.

    Raises:
        ConfigError: naming every changed key with both values.
    """
    changed, resets = changes(stored, asked), due_resets(stored, asked)
    refused = {key: values for key, values in changed.items() if key not in CHANGEABLE and not resets.allow(key)}
    if refused:
        hint = "Give the old values to resume it, or another tag or seed to begin a new run"
        if all(key.startswith("optim.") for key in refused):
            hint += "; training.reset_optimizer=true lets every key of optim change, training.reset_schedule=true most"
        named = "; ".join(f"{key} (was {was}, now {now})" for key, (was, now) in refused.items())
        raise ConfigError(f"{folder}: this run began with another configuration: {named}. {hint}")
    return [f"{key}: {was} (checkpoint) -> {now} (now)" for key, (was, now) in changed.items()]


def show(value: Any) -> str:
    """A value of the configuration in one line."""
    return yaml.safe_dump(value, default_flow_style=True, allow_unicode=True).splitlines()[0]


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold a run folder for this process; the system lets go of it even if the process is killed.

    If an error ends this before the run has begun (with its ``config.yaml``), the folder is taken away again: one that
    holds nothing but a log would only be in the way.

    Raises:
        ConfigError: another process trains in it.
    """
    import fcntl  # not on Windows; needed here only

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK_FILE, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise ConfigError(
                f"{folder}: another process (id {holder}) is training in this folder; "
                "wait for it, or give this run another tag or seed"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        except BaseException:
            with suppress(OSError):
                if {path.name for path in folder.iterdir()} <= {LOCK_FILE, "train.log"}:
                    shutil.rmtree(folder)
            raise
