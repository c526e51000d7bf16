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
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from nmt.alignment import Alignment, AttentionChoice, align
from nmt.checkpoint import load_ensemble
from nmt.cli import default_search
from nmt.config import Sampling, SearchConfig
from nmt.data.corpus import is_blank
from nmt.data.tokenizer import TokenizerPair
from nmt.device import resolve_device, resolve_search_precision
from nmt.engine import Engine, Request, TorchEngine
from nmt.search import Hypothesis, check

BUFFER_LINES = 4096
"""Lines read, sorted by length and answered at a time."""


class Translation(NamedTuple):
    """One translation of one line."""

    text: str
    score: float  # log_probability / penalty(length), see nmt/search.py
    log_probability: float  # natural logarithm, of all subwords and EOS
    ids: list[int]  # target subwords, without EOS
    tokens: list[str]  # the same as pieces, with the mark of a word's beginning
    length: int  # |y| as the length penalty counts it: subwords, EOS included if there is one
    finished: bool  # False: cut at the length limit
    token_log_probabilities: list[float] | None = None  # of each of the |y| subwords, if asked for
    alignment: Alignment | None = None  # if asked for


BLANK = Translation(text="", score=0.0, log_probability=0.0, ids=[], tokens=[], length=0, finished=True)
"""The translation of a blank line. No model made it: it has no probability and no alignment."""


class Answer(NamedTuple):
    """A line and what became of it."""

    source: str  # as it was given
    source_tokens: list[str]  # subwords, without EOS; none of a blank line
    translations: list[Translation]  # best first; samples in the order of drawing


class _Task(NamedTuple):
    """What is wanted of every line."""

    config: SearchConfig
    n_best: int
    sampling: Sampling | None
    token_scores: bool
    alignment: AttentionChoice | None

    @property
    def hypotheses(self) -> int:
        """That each line takes the place of in a batch."""
        return self.config.beam_size if self.sampling is None else self.n_best

    def request(self, sources: Sequence[Sequence[int]], numbers: Sequence[int]) -> Request:
        """The same in ids, for the lines of these numbers."""
        return Request(
            sources,
            self.config,
            self.n_best,
            sampling=self.sampling,
            keys=None if self.sampling is None else numbers,
            with_token_scores=self.token_scores,
            with_attention=self.alignment is not None,
        )


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
        cls, paths: str | Path | Sequence[str | Path], device: str = "auto", precision: str = "fp32"
    ) -> "Translator":
        """Load a run folder or a checkpoint folder, or several for an ensemble.

        The search options are those of ``configs/search/beam.yaml``, whatever the model was validated with.

        Args:
            paths: what ``nmt.checkpoint.load`` takes.
            device: auto, cpu, cuda, cuda:N.
            precision: fp32, bf16, int8 or auto. In bf16 the rounding of a product depends on the size of the batch, so
                that hypotheses of almost equal score may change places.

        Raises:
            ValueError: no checkpoint there, a damaged one, tokenizers that differ, an unknown device or precision.
        """
        where = resolve_device(device)
        loaded = load_ensemble([paths] if isinstance(paths, (str, Path)) else paths, where)
        engine = TorchEngine([each.model for each in loaded], where, resolve_search_precision(precision, where))
        return cls(engine, loaded[0].tokenizers, default_search() or loaded[0].config.search)

    def translate(
        self,
        lines: Iterable[str],
        config: SearchConfig | None = None,
        *,
        beam_size: int | None = None,
        sampling: Sampling | None = None,
        token_scores: bool = False,
        alignment: AttentionChoice | None = None,
    ) -> list[Translation]:
        """The best translation of every line, in the order of the input.

        Args:
            lines: one sentence each.
            config: search options; ``dataclasses.replace(translator.search, alpha=0.6)`` makes others.
            beam_size: instead of that of ``config``.
            sampling: draw a translation instead of searching for the best; a line's number and text decide what is
                drawn, not what is translated with it.
            token_scores: also give the log probability of each subword.
            alignment: also look where the model looked, at this layer and head.

        Raises:
            ValueError: an option out of range, or something that the models cannot do.
        """
        task = self._task(config, beam_size, 1, sampling, token_scores, alignment)
        return [answer.translations[0] for answer in self._answers(lines, task, buffer_size=None)]

    def n_best(
        self,
        lines: Iterable[str],
        n: int,
        config: SearchConfig | None = None,
        *,
        beam_size: int | None = None,
        sampling: Sampling | None = None,
        token_scores: bool = False,
        alignment: AttentionChoice | None = None,
    ) -> list[list[Translation]]:
        """``n`` or fewer translations of every line, best first, no two with equal subwords; or ``n`` samples.

        See :meth:`translate`; ``n`` is at most the beam size, but for samples.
        """
        task = self._task(config, beam_size, n, sampling, token_scores, alignment)
        return [answer.translations for answer in self._answers(lines, task, buffer_size=None)]

    def stream(
        self,
        lines: Iterable[str],
        config: SearchConfig | None = None,
        *,
        n_best: int = 1,
        buffer_size: int = BUFFER_LINES,
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
        return self._answers(lines, self._task(config, None, n_best, sampling, token_scores, alignment), buffer_size)

    def _task(
        self,
        config: SearchConfig | None,
        beam_size: int | None,
        n_best: int,
        sampling: Sampling | None,
        token_scores: bool,
        alignment: AttentionChoice | None,
    ) -> _Task:
        config = config or self.search
        if beam_size is not None:
            config = dataclasses.replace(config, beam_size=beam_size)
        check(config, n_best, sampling)
        return _Task(config, n_best, sampling, token_scores, alignment)

    def _answers(self, lines: Iterable[str], task: _Task, buffer_size: int | None) -> Iterator[Answer]:
        """Answers in order; ``buffer_size`` None: all lines are read first."""
        if isinstance(lines, str):
            raise TypeError(f"lines: expected a list of sentences, found one str; write [{lines[:20]!r}]")
        waiting: deque[_Buffer] = deque()

        def requests() -> Iterator[Request]:
            yield task.request([], [])  # asks whether it can be done at all
            remaining, number = iter(lines), 0
            while read := list(islice(remaining, buffer_size)):
                waiting.append(_Buffer(read, number, self.tokenizers, task))
                yield from waiting[-1].requests()
                number += len(read)

        found = self.engine.run(requests())
        next(found)
        for hypotheses in found:
            if waiting[0].take(hypotheses):
                yield from waiting.popleft().answers()


class _Buffer:
    """Lines read together, the first of them number ``first``, and their answers as they come in."""

    def __init__(self, lines: list[str], first: int, tokenizers: TokenizerPair, task: _Task) -> None:
        self._lines = lines
        self._first = first
        self._tokenizers = tokenizers
        self._task = task
        spoken = [place for place, line in enumerate(lines) if not is_blank(line)]
        encoded = tokenizers.source.encode_batch([lines[place] for place in spoken])
        self._sources = {place: ids for place, ids in zip(spoken, encoded, strict=True) if ids}
        lengths = {place: len(ids) + 1 for place, ids in self._sources.items()}
        # A buffer of blank lines makes a request, too, so that it gets its turn.
        self._batches = list(batches_by_length(lengths, task.config.batch_tokens // task.hypotheses)) or [[]]
        self._translations: list[list[Translation]] = [[BLANK] for _ in lines]
        self._taken = 0

    def requests(self) -> Iterator[Request]:
        """One for each batch, long sentences first."""
        for batch in self._batches:
            yield self._task.request(
                [self._sources[place] for place in batch], [self._first + place for place in batch]
            )

    def take(self, found: list[list[Hypothesis]]) -> bool:
        """Put the answer to the next request in its places; whether that was the last one."""
        for place, hypotheses in zip(self._batches[self._taken], found, strict=True):
            self._translations[place] = [self._decode(place, hypothesis) for hypothesis in hypotheses]
        self._taken += 1
        return self._taken == len(self._batches)

    def answers(self) -> Iterator[Answer]:
        """In the order of the lines."""
        for place, (line, translations) in enumerate(zip(self._lines, self._translations, strict=True)):
            yield Answer(line, self._tokenizers.source.pieces(self._sources.get(place, [])), translations)

    def _decode(self, place: int, hypothesis: Hypothesis) -> Translation:
        target, ids = self._tokenizers.target, hypothesis.tokens
        text, alignment = target.decode(ids), None
        if self._task.alignment is not None:
            assert hypothesis.attention is not None
            line, source = self._lines[place], self._sources[place]
            alignment = align(hypothesis.attention, self._task.alignment, self._tokenizers, line, source, text, ids)
        return Translation(
            text=text,
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            ids=ids,
            tokens=target.pieces(ids),
            length=len(ids) + int(hypothesis.finished),
            finished=hypothesis.finished,
            token_log_probabilities=hypothesis.token_log_probabilities,
            alignment=alignment,
        )


def batches_by_length(lengths: dict[int, int], budget: int) -> Iterator[list[int]]:
    """Keys of ``lengths`` in batches of like length: number of rows x longest row is ``budget`` at most.

    A row that is longer than the budget is a batch of its own. Long rows come first, so that what does not fit into
    memory shows at once.
    """
    batch: list[int] = []
    for place in sorted(lengths, key=lengths.__getitem__, reverse=True):
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
