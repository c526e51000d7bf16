"""What each architecture costs as sentences grow: time and memory at one length, exponents, and where curves cross.

Each figure is of a fresh process, on random pairs of exactly so many tokens a side (EOS counted), a fixed number of
them at once:

- ``train``: forward, backward and the optimizer's update;
- ``encode``: the encoder alone, without gradients;
- ``step``: one token more for every sentence, after as many tokens as the source has, output layer included;
- ``step, no cache``: the same for a Transformer that decodes all tokens before it again.

Seconds are the median of repetitions behind a first one. Bytes are what the process holds at its peak beyond what it
held once the model was there, less the gradients and Adam's two moments for ``train``: what grows with length.
"""

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

import numpy as np
import torch

from nmt.analysis.cost import operations
from nmt.analysis.fresh_process import in_fresh_process
from nmt.analysis.synthetic import FIRST_SUBWORD, Lengths, write_pairs
from nmt.analysis.training_memory import STATES
from nmt.analysis.uncached import Uncached
from nmt.config import ModelConfig, TrainConfig
from nmt.data.batch import Batch, Group
from nmt.data.loader import Loader
from nmt.device import Precision, autocast, keep_freed_memory, synchronize
from nmt.machine import peak_memory
from nmt.models import build, parameter_count
from nmt.models.base import TranslationModel
from nmt.models.transformer import Transformer
from nmt.training.optim import build_optimizer
from nmt.training.update import Updater

Work = Literal["train", "encode", "step", "step, no cache"]
WORKS: tuple[Work, ...] = ("train", "encode", "step", "step, no cache")

LEAST_REPETITIONS = 3
SECONDS = 1.0
"""Repeated until both are reached ..."""
MOST_SECONDS = 20.0
"""... or this."""

LAST_STEPS = 16
"""The median of so many steps is the time of a step."""


class Cost(NamedTuple):
    """Of one work at one length."""

    seconds: float
    peak_bytes: int


class Curve(NamedTuple):
    """Costs of one work of one model; None where there was not enough memory."""

    model: str
    work: Work
    costs: Mapping[int, Cost | None]  # by length
    counted: Mapping[int, int]  # operations of the matrix products, by length


class Task(NamedTuple):
    """What one process measures."""

    config: TrainConfig
    vocabulary: int
    work: Work
    length: int  # tokens a side, EOS included
    sentences: int
    device: torch.device
    precision: Precision
    threads: int

    def measure(self) -> Cost:
        """Time and peak of a fresh process.

        Raises:
            ValueError: the process was killed, for want of memory perhaps.
        """
        return in_fresh_process(_measure, self, f"had {self.sentences} sentences of {self.length} tokens")


def works_of(model: TranslationModel) -> tuple[Work, ...]:
    """What is measured of a model: only a Transformer has a cache to do without."""
    return WORKS if isinstance(model, Transformer) else WORKS[:-1]


def counted(config: ModelConfig, vocabulary: int, work: Work, length: int, sentences: int) -> int:
    """Operations of the matrix products of a work (``nmt.analysis.cost``): what a textbook counts.

    A step is counted as a decoding pass over so many tokens divided by them: what its last token needs.
    """
    sizes = np.full(sentences, length)
    of_pass = operations(config, vocabulary, sizes, sizes)
    match work:
        case "train":
            return of_pass.training
        case "encode":
            return of_pass.encode
        case "step":
            return (of_pass.decode + of_pass.output) // length
        case "step, no cache":
            return of_pass.decode + of_pass.output // length


# --- measuring --------------------------------------------------------------------------------------------------------


def _measure(task: Task) -> Cost:
    """Runs in the fresh process."""
    torch.set_num_threads(task.threads)
    keep_freed_memory()  # as training and nmt.translate do
    with tempfile.TemporaryDirectory() as folder:
        batch = _batch(task, Path(folder)).to(task.device)
        model = build(task.config.model, task.vocabulary, task.vocabulary, task.config.seed).to(task.device)
        at_rest = peak_memory(task.device)
        if task.work == "train":
            at_rest += (STATES - 1) * 4 * parameter_count(model)  # those of the parameters are there already
            seconds = _train(task, model, batch)
        else:
            seconds = _translate(task, model.eval(), batch)
        return Cost(seconds, peak_memory(task.device) - at_rest)


def _batch(task: Task, folder: Path) -> Batch:
    """Pairs of the length asked for, as training gets them."""
    lengths = np.full(task.sentences, task.length)
    dataset = write_pairs(folder, Lengths(lengths, lengths), task.vocabulary, seed=task.length)
    loader = Loader(dataset, task.length * task.sentences, task.sentences, task.config.seed, shuffle=False)
    (rows,) = loader.epoch_batches(0)
    return loader.batch(rows)


def _train(task: Task, model: TranslationModel, batch: Batch) -> float:
    optimizer = build_optimizer(model, task.config.optim)
    updater = Updater(model, optimizer, task.config.optim, task.device, task.precision)
    group = Group.of([batch])
    return _median_time(lambda: updater.update(group, rate=1e-5), task.device)


@torch.inference_mode()
def _translate(task: Task, model: TranslationModel, batch: Batch) -> float:
    with autocast(task.device, task.precision):
        if task.work == "encode":
            return _median_time(lambda: model.encode(batch.source, batch.source_lengths), task.device)
        if task.work == "step, no cache":
            assert isinstance(model, Transformer)
            model = Uncached(model)
        memory = model.encode(batch.source, batch.source_lengths)
        generator = torch.Generator().manual_seed(task.length)
        shape = (task.length, task.sentences)
        tokens = torch.randint(FIRST_SUBWORD, task.vocabulary, shape, generator=generator).to(task.device)
        state = model.init_state(memory)
        if task.work == "step, no cache":
            before = tokens[:-1].T.contiguous()  # which is its state
            return _median_time(lambda: model.project(model.step(tokens[-1], before, memory).features), task.device)
        times = []
        for previous in tokens:
            started = _now(task.device)
            features, state, _ = model.step(previous, state, memory)
            model.project(features)
            times.append(_now(task.device) - started)
        return median(times[-LAST_STEPS:])


def _median_time(work: Callable[[], object], device: torch.device) -> float:
    """Seconds; the first time does not count."""
    work()
    times: list[float] = []
    while sum(times) < MOST_SECONDS and (len(times) < LEAST_REPETITIONS or sum(times) < SECONDS):
        started = _now(device)
        work()
        times.append(_now(device) - started)
    return median(times)


def _now(device: torch.device) -> float:
    synchronize(device)
    return time.perf_counter()


# --- reading the curves -----------------------------------------------------------------------------------------------


def exponent(values: Mapping[int, float], shortest: int) -> float | None:
    """b of a T^b, fitted by least squares in logarithms to lengths T from ``shortest`` on; None: fewer than two."""
    points = [(math.log(length), math.log(value)) for length, value in values.items() if length >= shortest]
    if len(points) < 2:
        return None
    x, y = np.array(points).T
    return float(np.polyfit(x, y, 1)[0])


def crossings(first: Mapping[int, float], second: Mapping[int, float]) -> list[float]:
    """Lengths at which two curves cross, each taken as a straight line between neighbours in logarithms."""
    lengths = sorted(first.keys() & second.keys())
    found = []
    for low, high in pairwise(lengths):
        at_low, at_high = (math.log(first[length] / second[length]) for length in (low, high))
        if at_low * at_high < 0 or (at_high == 0 and at_low != 0):
            share = at_low / (at_low - at_high)
            found.append(low * (high / low) ** share)
    return found


def seconds_of(curve: Curve) -> dict[int, float]:
    """By length, where there was memory enough."""
    return {length: cost.seconds for length, cost in curve.costs.items() if cost is not None}


def bytes_of(curve: Curve) -> dict[int, float]:
    """By length; what a process did not have to ask the system for is left out."""
    return {length: cost.peak_bytes for length, cost in curve.costs.items() if cost is not None and cost.peak_bytes > 0}


def of_work(curves: Sequence[Curve], work: Work) -> list[Curve]:
    """The curves of one work."""
    return [curve for curve in curves if curve.work == work]
