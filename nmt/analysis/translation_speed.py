"""How fast a finished model translates: text in, text out, through :class:`nmt.translator.Translator` like any program.

Each measurement is made by a fresh process, so that nothing of one shows in another, and has these parts:

    load      a checkpoint's folder becomes a translator (Python and torch have been imported)
    first     some sentences, with a translator that has done nothing yet
    again     the same sentences once more: what `first` took beyond that is the cost of starting
    passes    all sentences with each search, subwords cut and joined again included: the steady state

:class:`GrowthTask` is about the cost of one token as a sentence grows: every sentence has as many target tokens as it
is told to, and as many source tokens.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from nmt import checkpoint
from nmt.analysis.fresh_process import in_fresh_process
from nmt.analysis.synthetic import FIRST_SUBWORD
from nmt.analysis.uncached import Uncached
from nmt.config import SearchConfig
from nmt.data.corpus import is_blank
from nmt.device import keep_freed_memory, resolve_device, resolve_search_precision, synchronize
from nmt.engine import Request, TorchEngine
from nmt.machine import peak_memory
from nmt.models.base import TranslationModel
from nmt.models.transformer import Transformer
from nmt.translator import Translator

EXPORTED = "exported"
"""The precision of a model that ``nmt.export`` has written: the format says it."""


class Setting(NamedTuple):
    """How a translator computes: what changes its speed, and perhaps its output a little, but not what it does."""

    precision: str  # or EXPORTED
    shortlist: str | None = None  # a file
    workers: int = 1  # that share the threads

    def load(self, path: Path, device: str, threads: int) -> Translator:
        """The translator of a checkpoint that computes like this, with so many threads together."""
        precision = "fp32" if self.precision == EXPORTED else self.precision  # which is no choice there
        share = max(1, threads // self.workers)
        return Translator.load(path, device, precision, self.shortlist, self.workers, share)

    def __str__(self) -> str:
        parts = [self.precision]
        if self.shortlist is not None:
            parts.append("shortlist")
        if self.workers > 1:
            parts.append(f"{self.workers} workers")
        return ", ".join(parts)


class TranslationTask(NamedTuple):
    """What one process measures."""

    checkpoint: Path
    setting: Setting
    device: str
    threads: int
    searches: tuple[SearchConfig, ...]
    lines: tuple[str, ...]
    sample: tuple[str, ...]  # translated first

    def measure(self) -> "Measured":
        """In a fresh process."""
        return in_fresh_process(_translate, self, f"translated with {self.checkpoint} ({self.setting})")


class Pass(NamedTuple):
    """All sentences, translated once."""

    seconds: float
    sentences: int  # that are not blank
    tokens: int  # subwords of the translations, EOS included
    texts: list[str]

    @property
    def sentences_per_second(self) -> float:
        """Blank lines do not count."""
        return self.sentences / self.seconds

    @property
    def tokens_per_second(self) -> float:
        """Target tokens."""
        return self.tokens / self.seconds


class Measured(NamedTuple):
    """What one process has measured; the module's docstring has the parts."""

    load: float  # seconds
    first: float
    again: float
    passes: list[Pass]  # one for each search
    peak: int  # bytes


def _translate(task: TranslationTask) -> Measured:
    """Runs in the fresh process."""
    torch.set_num_threads(task.threads)
    keep_freed_memory()  # as nmt.translate does
    started = time.perf_counter()
    translator = task.setting.load(task.checkpoint, task.device, task.threads)
    load = time.perf_counter() - started
    first, again = (_pass(translator, task.sample, task.searches[0]).seconds for _ in range(2))
    passes = []
    for search in task.searches:
        _pass(translator, task.sample, search)
        passes.append(_pass(translator, task.lines, search))
    peak = peak_memory(resolve_device(task.device))
    translator.close()
    return Measured(load, first, again, passes, peak)


def _pass(translator: Translator, lines: tuple[str, ...], search: SearchConfig) -> Pass:
    """The output is text on the CPU, so that a GPU has finished when the clock is read."""
    started = time.perf_counter()
    translations = translator.translate(lines, search)
    seconds = time.perf_counter() - started
    sentences = sum(not is_blank(line) for line in lines)
    return Pass(seconds, sentences, sum(each.length for each in translations), [each.text for each in translations])


def spread_sample(lines: list[str], size: int) -> tuple[str, ...]:
    """``size`` lines, or all if there are fewer, evenly spaced, blank ones left out."""
    spoken = [line for line in lines if not is_blank(line)]
    size = min(size, len(spoken))
    return tuple(spoken[place * len(spoken) // size] for place in range(size))


# --- growth with length -----------------------------------------------------------------------------------------------


class GrowthTask(NamedTuple):
    """What one process measures."""

    checkpoint: Path
    cached: bool  # False: a Transformer without its cache
    precision: str
    device: str
    threads: int
    search: SearchConfig
    lengths: tuple[int, ...]  # target tokens, and source tokens with EOS
    sentences: int  # at once

    def measure(self) -> list[float]:
        """Seconds for each length, of all sentences from ids to ids, in a fresh process."""
        return in_fresh_process(_grow, self, f"translated with {self.checkpoint}")


def _grow(task: GrowthTask) -> list[float]:
    """Runs in the fresh process."""
    torch.set_num_threads(task.threads)
    keep_freed_memory()  # as nmt.translate does
    device = resolve_device(task.device)
    loaded = checkpoint.load(task.checkpoint, device)
    model: TranslationModel = loaded.model
    if not task.cached:
        assert isinstance(model, Transformer)
        model = Uncached(model)
    engine = TorchEngine([model], device, resolve_search_precision(task.precision, device))
    vocabulary = loaded.tokenizers.source.vocabulary_size
    _forced(engine, task, task.lengths[0], vocabulary)  # a warm-up
    return [_forced(engine, task, length, vocabulary) for length in task.lengths]


def _forced(engine: TorchEngine, task: GrowthTask, length: int, vocabulary: int) -> float:
    """Seconds in which every sentence of a batch gets exactly ``length`` target tokens."""
    generator = np.random.default_rng(length)
    sources = generator.integers(FIRST_SUBWORD, vocabulary, (task.sentences, length - 1)).tolist()
    request = Request(sources, forced(task.search, length))
    synchronize(engine.device)
    started = time.perf_counter()
    (found,) = engine.run([request])
    seconds = time.perf_counter() - started
    if any(len(best.tokens) + best.finished != length for best, *_ in found):
        raise AssertionError(f"translations of another length than {length}")
    return seconds


def forced(search: SearchConfig, length: int) -> SearchConfig:
    """The same search with exactly ``length`` steps: EOS may be the last of them, and it is the last in any case."""
    return replace(search, min_length=length - 1, max_length_a=0.0, max_length_b=length)
