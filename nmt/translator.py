"""Text in, text out: what a program imports to translate with a trained model.

    from nmt import Translator

    translator = Translator.load("runs/X")
    for translation in translator.translate(["A man is sleeping.", "Two dogs play."], beam_size=5):
        print(translation.text, translation.score)

Blank lines (nothing but white space) never reach the model: blank in, blank out. All others are encoded, searched in
batches of like length, and decoded on the target side; the order and the batching of the input do not show in the
output.
"""

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path

import torch

from nmt.alignment import AttentionChoice
from nmt.checkpoint import Checkpoint, load_config, load_ensemble
from nmt.cli import default_search
from nmt.config import Sampling, SearchConfig
from nmt.data.corpus import buffered, in_step
from nmt.data.tokenizer import TokenizerPair
from nmt.device import SearchPrecision, cores, keep_freed_memory, resolve_device, resolve_search_precision
from nmt.engine import Engine, Request, TorchEngine
from nmt.formats import is_exported
from nmt.formats.ctranslate2_engine import CTranslate2Engine
from nmt.lexicon import Shortlist
from nmt.search import check
from nmt.translation import Answer, Buffer, Task, Translation
from nmt.workers import WorkerEngine

BUFFER_LINES = 4096
"""Lines read, sorted by length and answered at a time."""


class Translator:
    """An engine and the tokenizers of the models behind it.

    Args:
        engine: what translates ids.
        tokenizers: of both sides.
        search: search options where none are given.
    """

    def __init__(self, engine: Engine, tokenizers: TokenizerPair, search: SearchConfig) -> None:
        self.engine = engine
        self.tokenizers = tokenizers
        self.search = search

    @classmethod
    def load(
        cls,
        paths: str | Path | Sequence[str | Path],
        device: str = "auto",
        precision: str = "fp32",
        shortlist: str | Path | None = None,
        workers: int = 1,
        threads: int | None = None,
    ) -> "Translator":
        """Load a run folder or a checkpoint folder, or several for an ensemble; or what ``nmt.export`` has written for
        ctranslate2, which then translates.

        The search options are those of ``configs/search/beam.yaml``, whatever the model was validated with.

        Args:
            paths: what ``nmt.checkpoint.load`` takes.
            device: auto, cpu, cuda, cuda:N.
            precision: fp32, bf16, int8 or auto. In bf16 the rounding of a product depends on the size of the batch, so
                that hypotheses of almost equal score may change places.
            shortlist: a file that ``nmt.shortlist`` has made: searches are faster, their probabilities are over the
                sentence's shortlist, and they lack what is not on it. Samples and scores of subwords do not use it.
            workers: processes that translate, for a machine with several cores; 1 is this one alone.
            threads: of each of several workers; None: the cores are shared out. Of one worker, only
                those of an exported model; torch has ``torch.set_num_threads``.

        Raises:
            ValueError: no checkpoint there, a damaged one, tokenizers that differ, an unknown device or precision, a
                shortlist for others, workers on a GPU; of an exported model also a missing package or an option that
                it has no place for.
        """
        places = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
        if any(is_exported(path) for path in places):
            return cls._load_exported(places, device, precision, shortlist, workers, threads)
        where = resolve_device(device)
        make = partial(_engine, places, where, resolve_search_precision(precision, where), shortlist)
        engine: Engine
        engine, first = make()  # in any case: what cannot be loaded is better said before processes start
        if workers != 1:
            engine = _workers(partial(_first, make), workers, threads, where)
        return cls(engine, first.tokenizers, default_search() or first.config.search)

    @classmethod
    def _load_exported(
        cls,
        places: Sequence[Path],
        device: str,
        precision: str,
        shortlist: str | Path | None,
        workers: int,
        threads: int | None,
    ) -> "Translator":
        exported = next(place for place in places if is_exported(place))
        if len(places) > 1:
            raise ValueError(f"checkpoint (--checkpoint): {exported} is an exported model, which is in no ensemble")
        if precision != "fp32":
            raise ValueError(
                f"precision (--precision): found {precision}, but the format of an exported model is chosen when "
                "it is written: python -m nmt.export --quantization"
            )
        if shortlist is not None:
            raise ValueError("shortlist (--shortlist): not with an exported model; use the checkpoint it was made from")
        threads = threads if workers == 1 else _share(workers, threads)
        make = partial(CTranslate2Engine, exported, device, threads)
        first = make()
        engine = first if workers == 1 else _workers(make, workers, threads, resolve_device(device))
        return cls(engine, first.tokenizers, default_search() or load_config(exported).search)

    def close(self) -> None:
        """End the processes of several workers; without them there is nothing to end."""
        if isinstance(self.engine, WorkerEngine):
            self.engine.close()

    def translate(
        self,
        lines: Iterable[str],
        config: SearchConfig | None = None,
        *,
        beam_size: int | None = None,
        prefixes: Iterable[str] | None = None,
        sampling: Sampling | None = None,
        token_scores: bool = False,
        alignment: AttentionChoice | None = None,
    ) -> list[Translation]:
        """The best translation of every line, in the order of the input.

        Args:
            lines: one sentence each.
            config: search options; ``dataclasses.replace(translator.search, alpha=0.6)`` makes others.
            beam_size: instead of that of ``config``.
            prefixes: what each line's translation begins with, as text; blank: anything. White space at its end does
                not count, and its last word may go on: after ``Ein`` may come `` Hund``, but also ``em``. A blank line
                stays blank in any case.
            sampling: draw a translation instead of searching for the best; a line's number and text decide what is
                drawn, not what is translated with it.
            token_scores: also give the log probability of each subword.
            alignment: also look where the model looked, at this layer and head.

        Raises:
            ValueError: an option out of range, something that the models cannot do, or another number of prefixes than
                of lines, or one that holds what the target subwords cannot write.
        """
        task = self._task(config, beam_size, 1, sampling, token_scores, alignment)
        return [answer.translations[0] for answer in self._answers(lines, prefixes, task, buffer_size=None)]

    def n_best(
        self,
        lines: Iterable[str],
        n: int,
        config: SearchConfig | None = None,
        *,
        beam_size: int | None = None,
        prefixes: Iterable[str] | None = None,
        sampling: Sampling | None = None,
        token_scores: bool = False,
        alignment: AttentionChoice | None = None,
    ) -> list[list[Translation]]:
        """``n`` or fewer translations of every line, best first, no two with equal subwords; or ``n`` samples.

        See :meth:`translate`; ``n`` is at most the beam size, but for samples.
        """
        task = self._task(config, beam_size, n, sampling, token_scores, alignment)
        return [answer.translations for answer in self._answers(lines, prefixes, task, buffer_size=None)]

    def stream(
        self,
        lines: Iterable[str],
        config: SearchConfig | None = None,
        *,
        n_best: int = 1,
        buffer_size: int = BUFFER_LINES,
        prefixes: Iterable[str] | None = None,
        sampling: Sampling | None = None,
        token_scores: bool = False,
        alignment: AttentionChoice | None = None,
    ) -> Iterator[Answer]:
        """Every line with its translations, in order, read and translated ``buffer_size`` lines at a time.

        See :meth:`translate`. An option out of range is refused at once, what the models cannot do before the first
        line is read.
        """
        if buffer_size < 1:
            raise ValueError(f"buffer size (--buffer-size): expected 1 or more lines, found {buffer_size}")
        task = self._task(config, None, n_best, sampling, token_scores, alignment)
        return self._answers(lines, prefixes, task, buffer_size)

    def _task(
        self,
        config: SearchConfig | None,
        beam_size: int | None,
        n_best: int,
        sampling: Sampling | None,
        token_scores: bool,
        alignment: AttentionChoice | None,
    ) -> Task:
        config = config or self.search
        if beam_size is not None:
            config = dataclasses.replace(config, beam_size=beam_size)
        check(config, n_best, sampling)
        return Task(config, n_best, sampling, token_scores, alignment)

    def _answers(
        self, lines: Iterable[str], prefixes: Iterable[str] | None, task: Task, buffer_size: int | None
    ) -> Iterator[Answer]:
        """Answers in order; ``buffer_size`` None: all lines are read first."""
        for name, given in (("lines", lines), ("prefixes", prefixes)):
            if isinstance(given, str):
                raise TypeError(f"{name}: expected a list of sentences, found one str; write [{given[:20]!r}]")
        free = zip(lines, repeat(""))
        pairs = free if prefixes is None else in_step(lines, prefixes, "input", "target prefix")
        waiting: deque[Buffer] = deque()

        def requests() -> Iterator[Request]:
            # Asks whether it can be done at all.
            yield task.request([], [], [])
            number = 0
            for read in buffered(pairs, buffer_size):
                waiting.append(Buffer(read, number, self.tokenizers, task))
                yield from waiting[-1].requests()
                number += len(read)

        found = self.engine.run(requests())
        next(found)
        for hypotheses in found:
            if waiting[0].take(hypotheses):
                yield from waiting.popleft().answers()


def _engine(
    paths: Sequence[Path], device: torch.device, precision: SearchPrecision, shortlist: str | Path | None
) -> tuple[TorchEngine, Checkpoint]:
    """The models at some paths as an engine, and the first of their checkpoints."""
    loaded = load_ensemble(paths, device)
    words = None if shortlist is None else Shortlist.load(Path(shortlist), loaded[0].tokenizers.digest)
    return TorchEngine([each.model for each in loaded], device, precision, words), loaded[0]


def _first(make: Callable[[], tuple[TorchEngine, Checkpoint]]) -> TorchEngine:
    keep_freed_memory()  # a process that does nothing else
    return make()[0]


def _workers(make: Callable[[], Engine], workers: int, threads: int | None, device: torch.device) -> WorkerEngine:
    """Several processes, each with the engine that ``make`` makes."""
    if device.type != "cpu":
        raise ValueError(f"workers (--workers): several are for the CPU; {device} is used best by one process")
    return WorkerEngine(make, workers, _share(workers, threads))


def _share(workers: int, threads: int | None) -> int:
    """Threads of each worker."""
    return threads or max(1, cores() // max(1, workers))
