"""How fast a model trains: throughput, share of the hardware's rate, and where a step's time goes.

The updates are those of :class:`nmt.training.update.Updater` over the batches of :class:`nmt.data.loader.Loader`, as
in training; validation, logging and checkpoints are no part of it.

    MFU = (operations that the pairs need, per second) / (rate of the model's own matrix products, per second)

with the operations of :mod:`nmt.analysis.cost`, padding not counted, and the rate of :mod:`nmt.analysis.probe`, timed
just before and just after. Neighbours on a machine slow both alike, so the ratio is steadier than either.

Several processes train together as in :mod:`nmt.training.distributed`, and every figure is of all of them: tokens and
sentences per second of their common updates, the sum of their products' rates (each times its own, all at once).
"""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch

from nmt.analysis.cost import operations, products
from nmt.analysis.probe import Probe
from nmt.config import ConfigError, TrainConfig
from nmt.data.batch import Batch, Group
from nmt.data.loader import Loader
from nmt.data.store import PairDataset
from nmt.device import Precision, autocast, move, synchronize
from nmt.models import build, parameter_count
from nmt.training.distributed import ALONE, Processes
from nmt.training.loss import backward, real_positions
from nmt.training.optim import build_optimizer, clip_gradient, learning_rate
from nmt.training.update import Updater

Stage = Literal["data", "encode", "decode", "output and loss", "backward", "optimizer"]
STAGES: tuple[Stage, ...] = get_args(Stage)


class Tally(NamedTuple):
    """Sizes of the batches of some updates, in all processes together."""

    updates: int
    sentences: int
    source_tokens: int  # real ones, EOS included
    target_tokens: int
    source_slots: int  # rows x longest row
    target_slots: int
    operations: int  # of forward and backward; what is computed at padded positions is not counted

    @property
    def padding(self) -> float:
        """Share of positions that hold no token, both sides together."""
        return 1.0 - (self.source_tokens + self.target_tokens) / (self.source_slots + self.target_slots)

    @property
    def target_padding(self) -> float:
        """The same on the target side."""
        return 1.0 - self.target_tokens / self.target_slots


class Round(NamedTuple):
    """One measurement."""

    tally: Tally
    seconds: float
    product_rate: float  # operations per second of the model's matrix products by themselves

    @property
    def tokens_per_second(self) -> float:
        """Real target tokens, EOS included."""
        return self.tally.target_tokens / self.seconds

    @property
    def sentences_per_second(self) -> float:
        """Pairs."""
        return self.tally.sentences / self.seconds

    @property
    def utilisation(self) -> float:
        """MFU, see the module's docstring."""
        return self.tally.operations / self.seconds / self.product_rate


class TrainingBench:
    """One model that can be trained for some seconds at a time.

    Args:
        config: model, recipe and batch sizes.
        dataset: the pairs.
        vocabularies: source and target subwords.
        device: where to train.
        precision: number format of matrix products.
        processes: that train together; each has a bench, and all call the same methods in the same order.

    Raises:
        ConfigError: sizes that do not fit together, or no pair within the token budget.
    """

    def __init__(
        self,
        config: TrainConfig,
        dataset: PairDataset,
        vocabularies: tuple[int, int],
        device: torch.device,
        precision: Precision,
        processes: Processes = ALONE,
    ) -> None:
        self.config = config
        self.processes = processes
        self.vocabularies = vocabularies
        self.device = device
        self.precision = precision
        torch.manual_seed(config.seed)  # of dropout
        self.model = build(config.model, *vocabularies, config.seed).to(device)
        self.parameters = parameter_count(self.model)
        self.optimizer = build_optimizer(self.model, config.optim)
        training = config.training
        self.updater = Updater(
            self.model,
            self.optimizer,
            config.optim,
            device,
            precision,
            processes,
            use_tf32=training.tf32,
            compiled=training.compile,
        )
        self.loader = Loader(dataset, training.batch_tokens, training.batch_sentences, config.seed, shuffle=True)
        for warning in self.loader.warnings if processes.is_main else ():
            warnings.warn(warning, stacklevel=2)
        if self.loader.batches_in_epoch(0) == 0:
            raise ConfigError(f"training.batch_tokens: no pair fits into {training.batch_tokens} tokens a side")
        self.probe = self._probe()
        self._groups = self._endless_groups()
        self._step = 0

    def measure(self, seconds: float, warm_up: int) -> Round:
        """Make ``warm_up`` updates that do not count, then for ``seconds`` those that do, between two probes."""
        self.train(warm_up)
        before = self._product_rate()
        done: list[Batch] = []
        updates = 0
        synchronize(self.device)
        started = time.perf_counter()
        while True:
            group = next(self._groups)
            self._update(group)
            done += group.batches
            updates += 1
            elapsed = time.perf_counter() - started  # an update ends with a number on the CPU: the GPU has finished
            (elapsed,) = self.processes.highest(elapsed)  # so that all stop after the same update
            if elapsed >= seconds:
                break
        return Round(self._tally(done, updates), elapsed, 2 / (1 / before + 1 / self._product_rate()))

    def _product_rate(self) -> float:
        """Of all processes together."""
        self.processes.meet("measuring matrix products")
        return sum(self.processes.gather(self.probe.rate(), "measuring matrix products"))

    def train(self, updates: int) -> None:
        """Make so many updates."""
        for _ in range(updates):
            self._update(next(self._groups))

    def breakdown(self, updates: int) -> dict[Stage, float]:
        """Mean seconds of an update by stage, timed one by one: a GPU is waited for after each.

        ``output and loss`` is the output layer, forward and backward, with the loss; ``backward`` is that of encoder
        and decoder; ``data`` is cutting, padding and moving batches; ``optimizer`` has in it clipping and, with several
        processes, the sum of their gradients. The stages of this process: others may take longer or less.
        """
        watch = Stopwatch(self.device)
        for _ in range(updates):
            self._step += 1
            with watch.over("data"):
                group = next(self._groups)
                batches = [(batch.to(self.device), move(real_positions(batch), self.device)) for batch in group.batches]
            scale = 1.0 / group.tokens
            for batch, positions in batches:
                self._staged(batch, positions, scale, watch)
            with watch.over("optimizer"):
                self.processes.sum_gradients(self.model, torch.zeros(1, device=self.device))
                clip_gradient(self.model, self.config.optim.clip_norm)
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
        return {stage: watch.seconds[stage] / updates for stage in STAGES}

    def _staged(self, batch: Batch, positions: torch.Tensor, scale: float, watch: "Stopwatch") -> None:
        """What :class:`Updater` does with a batch, with a look at the clock in between."""
        with autocast(self.device, self.precision):
            with watch.over("encode"):
                memory = self.model.encode(batch.source, batch.source_lengths)
            with watch.over("decode"):
                features = self.model.decode(batch.target_in, memory)  # [batch, tgt_len, dim]
            with watch.over("output and loss"):
                leaf = features.detach().requires_grad_()
                backward(self.model, leaf, batch, positions, self.config.optim.label_smoothing, scale)
        with watch.over("backward"):
            torch.autograd.backward(features, leaf.grad)

    def _update(self, group: Group) -> None:
        self._step += 1
        update = self.updater.update(group, learning_rate(self.config.optim, self._step, 0.0, 0))
        if not update.made:
            raise ValueError(f"update {self._step}: the gradient norm is {update.gradient_norm}: nothing to measure")

    def _endless_groups(self) -> Iterator[Group]:
        """What one update after the other is made from: this process's share."""
        accumulate, rank, size = self.config.training.accumulate, self.processes.rank, self.processes.size
        for epoch in count():
            yield from self.loader.groups(epoch, 0, accumulate, rank, size)

    def _tally(self, batches: list[Batch], updates: int) -> Tally:
        """What all processes have done, of which ``batches`` is this one's share."""
        none = np.zeros(0, np.int64)  # a process may have had no row
        source_lengths = np.concatenate([none, *(batch.source_lengths.numpy() for batch in batches)])
        target_lengths = np.concatenate([none, *(batch.target_lengths.numpy() for batch in batches)])
        own = Tally(
            updates=updates,
            sentences=len(target_lengths),
            source_tokens=int(source_lengths.sum()),
            target_tokens=int(target_lengths.sum()),
            source_slots=sum(batch.source.numel() for batch in batches),
            target_slots=sum(batch.target_out.numel() for batch in batches),
            operations=operations(self.config.model, self.vocabularies[1], source_lengths, target_lengths).training,
        )
        together = Tally(*map(sum, zip(*self.processes.gather(own, "counting"), strict=True)))
        return together._replace(updates=updates)

    def _probe(self) -> Probe:
        """Of the products of a mean batch, or a process's share of it: its pairs, of the length that its slots make."""
        batches = self.loader.epoch_batches(0)
        lengths = self.loader.dataset.source_lengths, self.loader.dataset.target_lengths
        pairs = sum(map(len, batches)) / len(batches)
        source, target = (
            sum(len(batch) * int(side[batch].max()) for batch in batches) / len(batches) / pairs for side in lengths
        )
        if self.config.training.accumulate < self.processes.size:  # else each has whole batches
            pairs = max(1.0, pairs * self.config.training.accumulate / self.processes.size)
        mean = products(self.config.model, self.vocabularies[1], round(pairs), round(source), round(target))
        return Probe(mean, self.device, self.precision)


class Stopwatch:
    """Seconds by stage."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds: dict[Stage, float] = dict.fromkeys(STAGES, 0.0)

    @contextmanager
    def over(self, stage: Stage) -> Iterator[None]:
        """Add the time inside to the stage."""
        synchronize(self.device)
        started = time.perf_counter()
        yield
        synchronize(self.device)
        self.seconds[stage] += time.perf_counter() - started
