"""Lines on their way through an engine: read together, cut into batches of like length, and put back in their order.

What comes out is an :class:`Answer` for each line, made of :class:`Translation`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nmt.alignment import Alignment, AttentionChoice, align
from nmt.config import Sampling, SearchConfig
from nmt.data.corpus import is_blank
from nmt.data.tokenizer import TokenizerPair
from nmt.engine import Request
from nmt.search import Hypothesis
from nmt.tokens import UNK


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


class Task(NamedTuple):
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

    def request(
        self, sources: Sequence[Sequence[int]], prefixes: Sequence[Sequence[int]], numbers: Sequence[int]
    ) -> Request:
        """The same in ids, for the lines of these numbers."""
        return Request(
            sources,
            self.config,
            self.n_best,
            prefixes=prefixes if any(prefixes) else None,
            sampling=self.sampling,
            keys=None if self.sampling is None else numbers,
            with_token_scores=self.token_scores,
            with_attention=self.alignment is not None,
        )


class Buffer:
    """Lines and prefixes read together, the first of them number ``first``, and their answers as they come in."""

    def __init__(self, read: list[tuple[str, str]], first: int, tokenizers: TokenizerPair, task: Task) -> None:
        self._lines = [line for line, _ in read]
        self._first = first
        self._tokenizers = tokenizers
        self._task = task
        spoken = [place for place, line in enumerate(self._lines) if not is_blank(line)]
        encoded = tokenizers.source.encode_batch([self._lines[place] for place in spoken])
        self._sources = {place: ids for place, ids in zip(spoken, encoded, strict=True) if ids}
        self._prefixes = self._encode_prefixes([prefix for _, prefix in read])
        lengths = {place: len(ids) + 1 for place, ids in self._sources.items()}
        # A buffer of blank lines makes a request, too, so that it gets its turn.
        self._batches = list(batches_by_length(lengths, task.config.batch_tokens // task.hypotheses)) or [[]]
        self._translations: list[list[Translation]] = [[BLANK] for _ in read]
        self._taken = 0

    def requests(self) -> Iterator[Request]:
        """One for each batch, long sentences first."""
        for batch in self._batches:
            yield self._task.request(
                [self._sources[place] for place in batch],
                [self._prefixes[place] for place in batch],
                [self._first + place for place in batch],
            )

    def _encode_prefixes(self, prefixes: list[str]) -> list[list[int]]:
        """Subwords of each.

        Raises:
            ValueError: the target subwords cannot write one of its characters; names the line.
        """
        target = self._tokenizers.target
        encoded = target.encode_batch(prefixes) if any(prefixes) else [[] for _ in prefixes]
        for place, (prefix, ids) in enumerate(zip(prefixes, encoded, strict=True)):
            if UNK in ids:
                spans = zip(target.source_spans(prefix), ids, strict=True)
                strange = [prefix[slice(*span)] for span, token in spans if token == UNK]
                raise ValueError(
                    f"target prefix (--target-prefix): line {self._first + place + 1}: no translation can begin with "
                    f"this: the model's target subwords cannot write {' '.join(strange)!r}"
                )
        return encoded

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
