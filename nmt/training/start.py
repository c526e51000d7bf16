"""What comes before the loop: all processes have one configuration and one set of data, and the folder says which."""

import os
from collections.abc import Callable
from pathlib import Path

import yaml

from nmt.config import ConfigError, DataConfig, TrainConfig, to_tree
from nmt.data.dataset import PreparedData, prepare
from nmt.training.distributed import PREPARING, Processes
from nmt.training.resume import flatten, show

_OF_A_MACHINE = ("runs", "data.cache", "data.folder", "training.device")


def check_alike(main: TrainConfig, own: TrainConfig) -> None:
    """Refuse to train together with a process that was started with another configuration.

    Args:
        main: the configuration of rank 0.
        own: that of this process; where things lie on its machine may differ.

    Raises:
        ConfigError: naming every other key with both values.
    """
    theirs, ours = flatten(to_tree(main)), flatten(to_tree(own))
    different = [
        f"{key} (process 0: {show(theirs.get(key, 'absent'))}, here: {show(ours.get(key, 'absent'))})"
        for key in theirs | ours
        if theirs.get(key, "absent") != ours.get(key, "absent") and key not in _OF_A_MACHINE
    ]
    if different:
        raise ConfigError(
            f"the processes of one run must be started with the same configuration, found {'; '.join(different)}"
        )


def prepare_together(config: DataConfig, processes: Processes, log: Callable[[str], None]) -> PreparedData:
    """One process a machine prepares the data, the others then open what it has prepared.

    However long it takes, none goes on before all have them. Machines that share ``data.cache`` share the work as well;
    others must come to the same by themselves.

    Raises:
        ConfigError: they did not.
        DataError, OSError: see :func:`nmt.data.dataset.prepare`.
        ProcessLostError: another process ended.
    """
    what = "waiting for the data to be prepared"
    if processes.local_rank > 0:
        processes.meet(what, PREPARING)
    prepared = prepare(config, log)
    if processes.local_rank == 0:
        processes.meet(what, PREPARING)
    processes.meet(what, PREPARING)
    found = processes.gather((prepared.fingerprint, prepared.tokenizers.digest), what)
    if len(set(found)) > 1:
        other = next(rank for rank, each in enumerate(found) if each != found[0])
        raise ConfigError(
            f"data: processes 0 and {other} have prepared different data or subwords; give all machines the same files "
            "and versions, or one shared data.cache"
        )
    return prepared


def write_start(folder: Path, config: TrainConfig, prepared: PreparedData) -> None:
    """Write down what the run is made of: its configuration, whole or not at all, and its tokenizers."""
    temporary = folder / "config.yaml.tmp"
    temporary.write_text(yaml.safe_dump(to_tree(config), sort_keys=False, allow_unicode=True), encoding="utf-8")
    os.replace(temporary, folder / "config.yaml")
    prepared.tokenizers.save(folder)
