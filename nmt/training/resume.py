"""Whether a run folder may be gone on with: one process at a time, and the same configuration."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from nmt.config import ConfigError, TrainConfig, to_tree

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
)
"""Keys that may differ when a run is resumed: where things lie, when to stop, what to keep and to show."""


def flatten(tree: Any, path: str = "") -> dict[str, Any]:
    """``{"a": {"b": 1}}`` as ``{"a.b": 1}``; lists stay values."""
    if not isinstance(tree, dict):
        return {path: tree}
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat.update(flatten(value, f"{path}.{key}" if path else str(key)))
    return flat


def check_same(stored: TrainConfig, asked: TrainConfig, folder: Path) -> None:
    """Refuse to resume with another configuration than the run began with.

    Raises:
        ConfigError: naming every changed key with both values.
    """
    before, now = flatten(to_tree(stored)), flatten(to_tree(asked))
    changed = [
        f"{key} (was {show(before.get(key, 'absent'))}, now {show(now.get(key, 'absent'))})"
        for key in [*before, *(key for key in now if key not in before)]
        if before.get(key, "absent") != now.get(key, "absent") and key not in CHANGEABLE
    ]
    if changed:
        raise ConfigError(
            f"{folder}: this run began with another configuration: {'; '.join(changed)}. "
            "Give the old values to resume it, or another tag or seed to begin a new run"
        )


def show(value: Any) -> str:
    """A value of the configuration in one line."""
    return yaml.safe_dump(value, default_flow_style=True, allow_unicode=True).splitlines()[0]


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold a run folder for this process; the system lets go of it even if the process is killed.

    Raises:
        ConfigError: another process trains in it.
    """
    import fcntl  # not on Windows; needed here only

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "a+", encoding="utf-8") as file:
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
        yield
