"""Several processes, one training run: what they must do together, and nothing else.

``torchrun`` starts the processes and tells each its place in the environment (``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``,
``MASTER_ADDR``, ``MASTER_PORT``); :func:`connect` reads it and joins them through ``torch.distributed``. Decisions and
results travel over gloo, gradients over NCCL where they are on GPUs and over gloo elsewhere. With one process nothing
is set up and every method gives back what it is given, so the loop has one form for any number of processes.

The model is not wrapped in ``DistributedDataParallel``. The loss goes back through the output layer chunk by chunk
(:mod:`nmt.training.loss`), so a parameter's gradient arrives several times per update and a process without a row has
none at all; DDP's reducer wants each gradient exactly once per backward pass. Instead the gradients are summed once per
update, in flat buckets that are all sent before the first is waited for. The sum is the same bits in every process, so
the norm, clipping, a skipped update and the parameters are, too.
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from nmt.config import ConfigError
from nmt.device import resolve_device

Value = TypeVar("Value")

BUCKET_NUMBERS = 25 * 2**20 // 4
"""Gradients sent at once, in float32 numbers: 25 MB."""

PREPARING = timedelta(days=7)
"""How long a process that has its data waits for one that still prepares them."""


class ProcessLostError(ConnectionError):
    """Another process of the run ended, or did not answer in time."""


class Processes:
    """The processes of one run, seen from one of them.

    Every method is called by all of them in the same order; each raises :class:`ProcessLostError` if that cannot be, at
    once when another process has ended, after ``training.timeout`` when it does not answer.

    Args:
        rank: of this process, 0 <= rank < size. Rank 0 is the one that reads and writes the run's folder.
        size: number of processes.
        local_rank: of this process on its machine: which GPU it has.
        timeout: seconds that an operation waits for the other processes.
    """

    def __init__(self, rank: int, size: int, local_rank: int, timeout: float) -> None:
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.timeout = timeout
        self._of_gradients: dist.ProcessGroup | None = None  # None: the same as for everything else

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    def device(self, name: str) -> torch.device:
        """Where this process computes, for a value of ``training.device``: each has a GPU of its own.

        Raises:
            ValueError: there is no such device here, or fewer than processes.
        """
        device = resolve_device(name)
        if self.size == 1 or device.type == "cpu":
            return device
        if name not in ("auto", "cuda"):
            raise ConfigError(
                f"training.device: {name} is one GPU, but this run has {self.size} processes and each takes its own; "
                "expected cuda, auto or cpu"
            )
        if self.local_rank >= torch.cuda.device_count():
            raise ConfigError(
                f"training.device: process {self.local_rank + 1} on this machine finds only "
                f"{torch.cuda.device_count()} GPUs; start one process per GPU, or set training.device=cpu"
            )
        return torch.device("cuda", self.local_rank)

    # --- joining ------------------------------------------------------------------------------------------------------

    def join(self, device: torch.device) -> None:
        """Wait until every process is there. Undone by :meth:`leave`."""
        if self.size == 1:
            return
        limit = timedelta(seconds=self.timeout)
        with self._waiting(f"waiting for {self.size} processes to start"):
            dist.init_process_group(
                "gloo", store=self._meeting_place(limit), rank=self.rank, world_size=self.size, timeout=limit
            )
            if device.type == "cuda":
                torch.cuda.set_device(device)
                os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")  # a late answer is an error here, not an abort
                self._of_gradients = dist.new_group(backend="nccl", timeout=limit)

    def _meeting_place(self, limit: timedelta) -> PrefixStore:
        """A part of torchrun's store that no earlier job of a sweep has left its addresses in."""
        store, _, _ = next(rendezvous("env://", self.rank, self.size, timeout=limit))
        return PrefixStore(f"job {store.add(f'jobs of {self.rank}', 1)}", store)

    def leave(self) -> None:
        """Let the other processes go; those that still wait for this one are told so by the closed connection."""
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()

    # --- together -----------------------------------------------------------------------------------------------------

    def sum_gradients(self, model: nn.Module, numbers: Tensor) -> Tensor:
        """Sum every parameter's ``.grad`` (a missing one counts as zeros) and a few numbers over all processes.

        Args:
            model: its trainable parameters, each once however it is tied, are the same in every process.
            numbers: [n], on the model's device.

        Returns:
            The summed numbers, [n].
        """
        if self.size == 1:
            return numbers
        what = "summing gradients"
        sent: list[tuple[list[nn.Parameter], Tensor, dist.Work | None]] = []
        for bucket in _buckets([parameter for parameter in model.parameters() if parameter.requires_grad]):
            flat = torch.cat([_gradient(parameter) for parameter in bucket])
            for parameter in bucket:
                parameter.grad = None
            with self._waiting(what):
                sent.append((bucket, flat, dist.all_reduce(flat, group=self._of_gradients, async_op=True)))
        total = numbers.clone()
        with self._waiting(what):
            dist.all_reduce(total, group=self._of_gradients)
            for _, _, work in sent:
                if work is not None:
                    work.wait()
        for bucket, flat, _ in sent:
            pieces = torch.split(flat, [parameter.numel() for parameter in bucket])
            for parameter, piece in zip(bucket, pieces, strict=True):
                parameter.grad = piece.view_as(parameter)
        return total

    def highest(self, *numbers: float) -> tuple[float, ...]:
        """For each number the highest that any process has: how decisions are taken together."""
        if self.size == 1:
            return numbers
        shared = torch.tensor(numbers, dtype=torch.float64)
        with self._waiting("agreeing on what to do next"):
            dist.all_reduce(shared, dist.ReduceOp.MAX)
        return tuple(shared.tolist())

    def gather(self, value: Value, what: str) -> list[Value]:
        """What every process has, by rank. Picklable, on the CPU, and not large."""
        if self.size == 1:
            return [value]
        values: list[Value | None] = [None] * self.size
        with self._waiting(what):
            dist.all_gather_object(values, value)
        return values  # type: ignore[return-value]

    def broadcast(self, value: Value, what: str) -> Value:
        """What rank 0 has; the others' values are ignored. Picklable and on the CPU."""
        if self.size == 1:
            return value
        values = [value if self.is_main else None]
        with self._waiting(what):
            dist.broadcast_object_list(values, src=0)
        return values[0]  # type: ignore[return-value]

    def meet(self, what: str, patience: timedelta | None = None) -> None:
        """Wait until every process has come here, for ``patience`` instead of the usual time if that is given."""
        if self.size > 1:
            with self._waiting(what):
                dist.monitored_barrier(timeout=patience or timedelta(seconds=self.timeout))

    @contextmanager
    def _waiting(self, what: str) -> Iterator[None]:
        """An operation of torch.distributed; its errors, all of them RuntimeErrors, in one line of ours."""
        try:
            yield
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ProcessLostError(
                f"another process of this run ended or stopped answering while process {self.rank} of {self.size} was "
                f"{what} (training.timeout={self.timeout:g} seconds; {reason}); see what the others say, and run the "
                "same command again to resume"
            ) from error


ALONE = Processes(rank=0, size=1, local_rank=0, timeout=math.inf)
"""One process by itself."""


@contextmanager
def connect(device: str, timeout: float) -> Iterator[Processes]:
    """Join the processes that the environment speaks of, and leave them in the end, also after an error.

    Args:
        device: as in ``training.device``.
        timeout: seconds that any operation waits for the other processes, starting included.

    Raises:
        ConfigError: the environment names only a part of what is needed, or this machine has too few GPUs.
        ProcessLostError: the others did not start in time.
    """
    processes = _from_environment(timeout)
    try:
        processes.join(processes.device(device))
        yield processes
    finally:
        processes.leave()


def _from_environment(timeout: float) -> Processes:
    size = _integer("WORLD_SIZE", 1)
    if size <= 1:
        return ALONE
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(
            f"the environment says WORLD_SIZE={size} but not {', '.join(missing)}: start with torchrun, or unset "
            "WORLD_SIZE to train in one process"
        )
    rank = _integer("RANK", 0)
    if not 0 <= rank < size:
        raise ConfigError(f"the environment says RANK={rank}, expected 0 to {size - 1} with WORLD_SIZE={size}")
    _integer("MASTER_PORT", 0)
    return Processes(rank, size, _integer("LOCAL_RANK", rank), timeout)


def _integer(name: str, absent: int) -> int:
    found = os.environ.get(name, str(absent))
    try:
        return int(found)
    except ValueError:
        raise ConfigError(f"the environment says {name}={found!r}, expected a whole number") from None


def stream_seed(seed: int, rank: int, step: int) -> int:
    """Seed of the generator that a process draws dropout from, if it has no state to go on from.

    Args:
        seed: of the run; rank 0 begins with it as it is.
        rank: of the process.
        step: updates made before.
    """
    if rank == step == 0:
        return seed
    return int(np.random.SeedSequence((seed, rank, step)).generate_state(1, np.uint64)[0])


def _buckets(parameters: list[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Parameters in order, in lists that hold ``BUCKET_NUMBERS`` numbers, or one parameter, at most."""
    bucket: list[nn.Parameter] = []
    for parameter in parameters:
        if bucket and sum(each.numel() for each in bucket) + parameter.numel() > BUCKET_NUMBERS:
            yield bucket
            bucket = []
        bucket.append(parameter)
    if bucket:
        yield bucket


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        return parameter.new_zeros(parameter.numel())
    return parameter.grad.reshape(-1)
