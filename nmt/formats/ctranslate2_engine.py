"""Translating with a folder that was written for CTranslate2: an :class:`nmt.engine.Engine` that runs no torch model.

The answers are those of ``nmt/search.py``. CTranslate2's beam search keeps the same beam: of the best 2 x beam
continuations those that end and are among the first ``beam`` are finished, the best ``beam`` of the others stay alive.
What differs is when it stops and how it ranks. So it goes a fixed number of steps, returns every hypothesis that is
finished by then and those that are alive, and what follows is done here: penalties, limits, and the rule that a
sentence is settled once nothing alive can enter its n best. One that is not settled is searched again, twice as far.
Only where ``patience`` decides can CTranslate2 stop by itself: its rule is the same then.

PAD and BOS end a hypothesis for CTranslate2 and are dropped here, so that they are never produced and yet stay in the
normalisation. Unlike in ``nmt/search.py`` they take a place while they are among the best ``beam`` continuations, which
a trained model does not let happen. Greedy search has no such exception.
"""

from collections.abc import Iterable, Iterator
from math import ceil, inf
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nmt.checkpoint import load_tokenizers
from nmt.config import SearchConfig
from nmt.device import resolve_device
from nmt.engine import Request
from nmt.formats import ExportError, read_description
from nmt.formats.ctranslate2 import library
from nmt.lengths import length_limit, length_penalty
from nmt.search import Hypothesis, check
from nmt.tokens import BOS, EOS, PAD

_KEEP_ALL = 1e-30
"""Exponent of CTranslate2's own length penalty: 1 in float32 for every length, yet not 0, at which it stops early."""


class _Found(NamedTuple):
    """A hypothesis of CTranslate2."""

    pieces: list[str]  # the end included if there is one
    log_probability: float
    ended: bool  # in EOS


class CTranslate2Engine:
    """A model in the memory of CTranslate2.

    Args:
        folder: what ``nmt.export`` wrote.
        device: auto, cpu, cuda, cuda:N.
        threads: on a CPU; None: CTranslate2's choice.

    Raises:
        ValueError: the folder is not complete or not of this version, the package is missing, there is no such device.
    """

    def __init__(self, folder: Path, device: str = "auto", threads: int | None = None) -> None:
        self.folder = folder
        description = read_description(folder, "ctranslate2")
        self.tokenizers = load_tokenizers(folder, description)
        self.positions = int(description["positions"])
        self._model = _open(folder, device, str(description["quantization"]), threads)
        target = self.tokenizers.target
        self._ids = {piece: i for i, piece in enumerate(target.pieces(range(target.vocabulary_size)))}
        self._eos, *self._barred = target.pieces((EOS, PAD, BOS))

    def run(self, requests: Iterable[Request]) -> Iterator[list[list[Hypothesis]]]:
        """See :class:`nmt.engine.Engine`.

        Raises:
            ValueError: an option out of range, or one that CTranslate2 does not do as ``nmt/search.py`` does, or a
                sentence that is longer than the positions of the folder.
        """
        for request in requests:
            yield self._answer(request)

    def _answer(self, request: Request) -> list[list[Hypothesis]]:
        config, n_best = request.config, request.n_best
        check(config, n_best)
        _refuse(request)
        lengths = torch.tensor([len(ids) + 1 for ids in request.sources], dtype=torch.int64)
        limits: list[int] = length_limit(lengths, config).tolist()
        longest, farthest = max(lengths.tolist(), default=0), max(limits, default=0)
        if longest > self.positions:
            raise ValueError(
                f"a line has {longest} subwords (EOS counted), the exported model positions for {self.positions}: "
                "cut the line, or translate it with the checkpoint that the model was made from"
            )
        sources = [self.tokenizers.source.pieces(ids) for ids in request.sources]
        best = self._hasty(sources, limits, config) if n_best == 1 and sources else [[] for _ in sources]
        rows = [row for row, each in enumerate(best) if not each]
        reach = farthest if config.beam_size == 1 else min(_first_reach(longest), farthest)
        waiting = {min(reach, self.positions): rows} if rows else {}  # steps to go: rows
        while waiting:
            reach, rows = waiting.popitem()
            for row, found in zip(rows, self._search([sources[row] for row in rows], reach, config), strict=True):
                best[row] = _settle(found, reach, limits[row], config, n_best)
                if not best[row]:
                    waiting.setdefault(self._next_reach(reach, limits[row], farthest), []).append(row)
        hypotheses = [[self._hypothesis(each, config) for each in row] for row in best]
        return self._with_token_scores(sources, hypotheses) if request.with_token_scores else hypotheses

    def _next_reach(self, reach: int, limit: int, farthest: int) -> int:
        """How far to search a sentence that ``reach`` steps did not settle."""
        if limit < reach:  # nothing has ended by its limit: what was alive there?
            return limit
        if limit == reach:
            raise ValueError("ctranslate2 gives no translation a probability: are the parameters finite numbers?")
        if reach == self.positions:
            raise ValueError(
                f"a translation may have {limit} subwords, the exported model has positions for {self.positions}: "
                "lower --max-length-a or --max-length-b, or translate with the checkpoint that the model was made from"
            )
        return min(2 * reach, farthest, self.positions)

    def _hypothesis(self, found: _Found, config: SearchConfig) -> Hypothesis:
        tokens = [self._ids[piece] for piece in (found.pieces[:-1] if found.ended else found.pieces)]
        return Hypothesis(tokens, _score(found, config), found.log_probability, found.ended)

    def _with_token_scores(self, sources: list[list[str]], found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """The same with the log probability of each subword, by teacher forcing."""
        flat = [(source, each) for source, row in zip(sources, found, strict=True) for each in row]
        targets = [self.tokenizers.target.pieces(each.tokens) for _, each in flat]
        scored = iter(
            self._model.score_batch(
                [source for source, _ in flat], targets, max_input_length=0, max_batch_size=len(sources)
            )
            if flat
            else []
        )
        return [
            [
                each._replace(token_log_probabilities=next(scored).log_probs[: len(each.tokens) + each.finished])
                for each in row
            ]
            for row in found
        ]

    def _search(self, sources: list[list[str]], reach: int, config: SearchConfig) -> list[list[_Found]]:
        """All that has ended after 1 to ``reach`` subwords, and what is alive then."""
        if config.beam_size == 1:
            return self._greedy(sources, reach, config.min_length)
        return self._beam(sources, reach, config.beam_size, config.beam_size * reach)

    def _hasty(self, sources: list[list[str]], limits: list[int], config: SearchConfig) -> list[list[_Found]]:
        """The best hypothesis where CTranslate2 stopped by itself when ``patience`` ran out, nothing for other sources.

        If more have ended by then than were asked for, the least probable are lost. The best is none of those as long
        as a penalty does not fall with the length: some hypothesis is more probable and not shorter.
        """
        endings = _endings(config)
        if endings is None or config.min_length > 0 or config.alpha < 0:
            return [[] for _ in sources]
        reach = min(max(limits), self.positions)
        found = self._beam(sources, reach, config.beam_size, min(endings, config.beam_size * reach))
        ended = [_ended(each, limit, config) for each, limit in zip(found, limits, strict=True)]
        return [each[:1] if len(each) == endings else [] for each in ended]

    def _beam(self, sources: list[list[str]], reach: int, beam_size: int, endings: int) -> list[list[_Found]]:
        """For each source the most probable ``endings`` hypotheses of those that have ended when so many have, or that
        are alive after ``reach`` steps."""
        results = self._model.translate_batch(
            sources,
            beam_size=beam_size,
            patience=endings / beam_size,
            num_hypotheses=endings,
            length_penalty=_KEEP_ALL,
            end_token=[self._eos, *self._barred],
            return_end_token=True,
            return_scores=True,
            max_input_length=0,
            max_decoding_length=reach,
            min_decoding_length=0,
        )
        ends = {self._eos, *self._barred}
        return [
            [
                _Found(pieces, log_probability, pieces[-1] == self._eos)
                for pieces, log_probability in zip(result.hypotheses, result.scores, strict=True)
                # Beside PAD and BOS: what no continuation was left for goes on after its end.
                if pieces[-1] not in self._barred and ends.isdisjoint(pieces[:-1])
            ]
            for result in results
        ]

    def _greedy(self, sources: list[list[str]], reach: int, min_length: int) -> list[list[_Found]]:
        """The one hypothesis of each source."""
        if min_length > 0:
            return self._greedy_forced(sources, reach, min_length)
        results = self._model.translate_batch(
            sources,
            beam_size=1,
            length_penalty=0,
            end_token=[self._eos, *self._barred],
            return_end_token=True,
            return_scores=True,
            max_input_length=0,
            max_decoding_length=reach,
            min_decoding_length=0,
        )
        found = [
            [_Found(result.hypotheses[0], result.scores[0], result.hypotheses[0][-1] == self._eos)]
            for result in results
        ]
        barred = [row for row, [each] in enumerate(found) if each.pieces[-1] in self._barred]
        if barred:
            instead = self._greedy_forced([sources[row] for row in barred], reach, min_length)
            for row, other in zip(barred, instead, strict=True):
                found[row] = other
        return found

    def _greedy_forced(self, sources: list[list[str]], reach: int, min_length: int) -> list[list[_Found]]:
        """The same without PAD and BOS, and without EOS up to ``min_length`` subwords.

        CTranslate2 takes what it may not produce out of the normalisation, so the probabilities are computed anew.
        """
        results = self._model.translate_batch(
            sources,
            beam_size=1,
            suppress_sequences=[[piece] for piece in self._barred],
            return_end_token=True,
            max_input_length=0,
            max_decoding_length=reach,
            min_decoding_length=min_length,
        )
        hypotheses = [result.hypotheses[0] for result in results]
        ended = [pieces[-1] == self._eos for pieces in hypotheses]
        targets = [pieces[:-1] if end else pieces for pieces, end in zip(hypotheses, ended, strict=True)]
        scored = self._model.score_batch(sources, targets, max_input_length=0)  # of each piece and of EOS
        return [
            [_Found(pieces, sum(score.log_probs[: len(pieces)]), end)]
            for pieces, score, end in zip(hypotheses, scored, ended, strict=True)
        ]


def _refuse(request: Request) -> None:
    """What the search would do in another way than ``nmt/search.py``: it bars by taking out of the normalisation."""
    asked = {
        "--sample": request.sampling is not None,
        "--no-repeat-ngram": request.config.no_repeat_ngram > 0,
        "--forbid-unk": request.config.forbid_unk,
        "--target-prefix": any(request.prefixes or []),
        "--align": request.with_attention,
    }
    for name, wanted in asked.items():
        if wanted:
            raise ValueError(f"{name}: not with an exported model; use the checkpoint that it was made from")


def _score(found: _Found, config: SearchConfig) -> float:
    return found.log_probability / length_penalty(float(len(found.pieces)), config)


def _ended(found: list[_Found], limit: int, config: SearchConfig) -> list[_Found]:
    """The finished hypotheses within the limits, best first; the shorter one where two tie."""
    ended = [each for each in found if each.ended and config.min_length < len(each.pieces) <= limit]
    return sorted(ended, key=lambda each: (-_score(each, config), len(each.pieces)))


def _endings(config: SearchConfig) -> int | None:
    """How many hypotheses have finished when the patience with a sentence has run out; None: it never does."""
    if config.patience is None or config.beam_size == 1:
        return None
    return ceil(config.patience * config.beam_size)


def _settle(found: list[_Found], reach: int, limit: int, config: SearchConfig, n_best: int) -> list[_Found]:
    """The answer for a sentence that was searched for ``reach`` steps; nothing if that was too short or too far."""
    ended = _ended(found, limit, config)
    best = ended[:n_best]
    endings = _endings(config)
    if endings is not None and len(ended) >= endings:
        last_step = sorted(len(each.pieces) for each in ended)[endings - 1]
        return [each for each in ended if len(each.pieces) <= last_step][:n_best]
    last = [each for each in found if len(each.pieces) == reach]
    alive = [each for each in last if not each.ended]
    if reach >= limit:
        return best or (alive[:n_best] if reach == limit else [])  # CTranslate2 has sorted them
    # What is alive is at most as probable as the best of it; where all that was ranked has ended, as the last of those.
    bound = max((each.log_probability for each in alive), default=min((e.log_probability for e in last), default=-inf))
    most_favourable = max(length_penalty(float(length), config) for length in (reach + 1, limit))
    return best if len(best) == n_best and _score(best[-1], config) >= bound / most_favourable else []


def _first_reach(source_length: int) -> int:
    """Steps after which most sentences are settled that have up to ``source_length`` subwords."""
    return 3 * source_length // 2 + 6


def _open(folder: Path, device: str, quantization: str, threads: int | None) -> Any:
    """A ``ctranslate2.Translator`` that adds up log probabilities in float32, whatever the matrices are stored in."""
    ctranslate2 = library()
    where = resolve_device(device)
    if where.type == "cuda" and ctranslate2.get_cuda_device_count() == 0:
        if device != "auto":
            raise ExportError(f"device: {device} asked for, but ctranslate2 finds no GPU that it can use")
        where = torch.device("cpu")
    wanted = {"int8": "int8_float32", "int8_float32": "int8_float32", "int16": "int16"}.get(quantization, "float32")
    supported = ctranslate2.get_supported_compute_types(where.type)
    try:
        return ctranslate2.Translator(
            str(folder),
            device=where.type,
            device_index=where.index or 0,
            compute_type=wanted if wanted in supported else "float32",
            intra_threads=threads or 0,
        )
    except (RuntimeError, ValueError) as error:
        raise ExportError(f"{folder}: ctranslate2 cannot load it: {error}") from error
