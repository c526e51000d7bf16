"""What several processes settle before the loop: one configuration, one beginning, one set of data."""

from collections.abc import Callable

from nmt.config import ConfigError, DataConfig, TrainConfig
from nmt.data.dataset import PreparedData, prepare
from nmt.data.tokenizer import TokenizerPair
from nmt.device import Precision
from nmt.training.distributed import PREPARING, Processes
from nmt.training.resume import changes
from nmt.training.start import Start, find_start, with_tokenizer_of

_OF_A_MACHINE = ("runs", "init_from", "data.cache", "data.folder", "training.device")


def start_together(config: TrainConfig, processes: Processes) -> Start:
    """Rank 0 looks where the run starts from, and says so to the others; it alone has the parameters, if any.

    Raises:
        ConfigError, CheckpointError: see :func:`nmt.training.start.find_start`; or the processes differ in a key.
        ProcessLostError: another process ended, perhaps since rank 0 may not begin.
    """
    own = find_start(config) if processes.is_main else None
    said = None if own is None else own._replace(initial=None)
    main, start = processes.broadcast((config, said), "waiting for process 0 to open the run's folder")
    _check_alike(main, config)
    if own is not None:
        return own
    assert start is not None
    return start._replace(config=with_tokenizer_of(start.config, config))


def _check_alike(main: TrainConfig, own: TrainConfig) -> None:
    """Refuse to train with a process that has another configuration; where things lie on its machine may differ."""
    different = [
        f"{key} (process 0: {theirs}, here: {ours})"
        for key, (theirs, ours) in changes(main, own).items()
        if key not in _OF_A_MACHINE
    ]
    if different:
        raise ConfigError(
            f"the processes of one run must be started with the same configuration, found {'; '.join(different)}"
        )


def common_precision(own: Precision, processes: Processes) -> Precision:
    """The number format of this process, which must be that of all.

    Raises:
        ConfigError: ``training.precision=auto`` means different formats on different hardware.
    """
    found = processes.gather(own, "comparing number formats")
    if len(set(found)) > 1:
        raise ConfigError(
            f"training.precision: auto is {', '.join(found)} in processes 0 to {len(found) - 1}; set fp32 or bf16"
        )
    return own


def prepare_together(
    config: DataConfig, tokenizers: TokenizerPair | None, processes: Processes, log: Callable[[str], None]
) -> PreparedData:
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
    prepared = prepare(config, log, tokenizers)
    if processes.local_rank == 0:
        processes.meet(what, PREPARING)
    processes.meet(what, PREPARING)
    # Not the fingerprint: it goes by the times of files, and those of copies on two machines differ.
    found = processes.gather((prepared.contents, prepared.tokenizers.digest), what)
    different = [rank for rank, each in enumerate(found) if each != found[0]]
    if different:
        raise ConfigError(
            f"data: processes 0 and {different[0]} have prepared different data or subwords; give all machines the "
            "same files and versions, or one shared data.cache"
        )
    return prepared
