"""How much memory a training update takes at its peak: each figure from a fresh process, where nothing came before.

On a CPU it is the peak resident size of the whole process, Python and torch included (``at_rest`` says how much that is
before there is a model); on a GPU the peak of what torch has allocated there.

Three updates are made: with the shortest, the middle and the longest pairs that the token budget allows.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

import torch

from nmt.analysis.fresh_process import in_fresh_process
from nmt.analysis.synthetic import uniform_lengths, write_pairs
from nmt.config import TrainConfig
from nmt.data.batch import Batch, Group
from nmt.data.loader import Loader
from nmt.data.store import PairDataset
from nmt.device import Precision, keep_freed_memory
from nmt.machine import peak_memory
from nmt.models import build, parameter_count
from nmt.training.optim import build_optimizer
from nmt.training.update import Updater

STATES = 4
"""Numbers kept per parameter: its value, its gradient, and two moments of Adam; 4 bytes each."""


class Peak(NamedTuple):
    """Memory of a training process, in bytes."""

    at_rest: int  # before there is a model; 0 on a GPU
    peak: int
    parameters: int  # number of them

    @property
    def states(self) -> int:
        """Parameters, gradients and the optimizer's two moments (Adam)."""
        return 4 * STATES * self.parameters

    @property
    def rest(self) -> int:
        """What is neither: activations, logits, and what allocators keep."""
        return self.peak - self.at_rest - self.states


class Point(NamedTuple):
    """What peak memory is measured at, with random pairs of every length up to the longest."""

    batch_tokens: int
    vocabulary: int
    longest: int  # tokens of the longest sentence, EOS included


def measure_point(point: Point, config: TrainConfig, device: torch.device, precision: Precision) -> Peak:
    """Peak of a fresh process that trains on random pairs; ``config`` says the rest.

    Raises:
        ValueError: the process was killed, for want of memory perhaps.
    """
    pairs = 4 * point.batch_tokens // point.longest + 100  # some batches' worth, so that three differ
    with tempfile.TemporaryDirectory() as name:
        dataset = write_pairs(Path(name), uniform_lengths(pairs, point.longest, seed=1), point.vocabulary, seed=1)
        vocabularies = (point.vocabulary, point.vocabulary)
        return measure_peak(config, dataset, vocabularies, point.batch_tokens, device, precision)


def measure_peak(
    config: TrainConfig,
    dataset: PairDataset,
    vocabularies: tuple[int, int],
    batch_tokens: int,
    device: torch.device,
    precision: Precision,
) -> Peak:
    """Peak of a fresh process that trains on these pairs with this token budget.

    Raises:
        ValueError: the process was killed, for want of memory perhaps.
    """
    task = _Task(config, dataset.folder, vocabularies, batch_tokens, device, precision, torch.get_num_threads())
    what = f"trained {config.model.name} with batch_tokens={batch_tokens} and {vocabularies[1]:,} subwords"
    return in_fresh_process(_train, task, what)


class _Task(NamedTuple):
    """What the fresh process trains."""

    config: TrainConfig
    folder: Path
    vocabularies: tuple[int, int]
    batch_tokens: int
    device: torch.device
    precision: Precision
    threads: int


def _train(task: _Task) -> Peak:
    """Runs in the fresh process."""
    torch.set_num_threads(task.threads)
    keep_freed_memory()  # as training does
    config, training = task.config, task.config.training
    dataset = PairDataset(task.folder, "train", task.vocabularies)
    loader = Loader(dataset, task.batch_tokens, training.batch_sentences, config.seed, shuffle=True)
    at_rest = peak_memory(task.device)
    model = build(config.model, *task.vocabularies, config.seed).to(task.device)
    optimizer = build_optimizer(model, config.optim)
    updater = Updater(
        model,
        optimizer,
        config.optim,
        task.device,
        task.precision,
        use_tf32=training.tf32,
        compiled=training.compile,
    )
    for batch in _short_middle_long(loader):
        updater.update(Group.of([batch]), rate=1e-5)
    return Peak(at_rest, peak_memory(task.device), parameter_count(model))


def _short_middle_long(loader: Loader) -> list[Batch]:
    """Three batches of an epoch."""
    batches = sorted(loader.epoch_batches(0), key=len)
    return [loader.batch(batches[number]) for number in (-1, len(batches) // 2, 0)]
