"""The one beam search: models and source ids in, hypotheses out, no text.

Greedy search is beam size 1, sampling is greedy search with another picker of the next token, an ensemble is a list of
models, and the three architectures share every line: the search knows ``encode``, ``init_state``, ``step`` and
``project``, and moves rows with ``select_rows`` alone. What a translation must begin with and may not contain stands in
``nmt/constraints.py``, how a token is drawn in ``nmt/sampling.py``.

A hypothesis y of |y| subwords, **EOS counted**, has the score log p(y | source) / penalty(|y|), the penalty as in
``nmt/lengths.py``; log p(y | source) is exactly what teacher forcing gives, with an ensemble the mean of what it gives
for each model (``nmt/models/ensemble.py``).

Every step ranks the 2 x beam best continuations of a sentence. Those that end in EOS and are among the best ``beam``
of them are finished; the best ``beam`` of the others stay alive, so that a finished hypothesis takes nobody's place.
A sentence stops at the step after which no live hypothesis can enter its n best any more, whatever follows: a log
probability only falls, so the best live one is bounded by its present log probability over the most favourable penalty
it can still reach. The result is therefore the one that searching on to the length limit would give. With beam size 1
there is no alternative to keep: the sentence ends with its first EOS, which is greedy search. With ``patience`` p a
sentence stops, at the latest, as soon as p x beam hypotheses have finished (Kasai et al. 2022): less work, and a
better one that would have finished later is missed.

With a shortlist (``nmt/lexicon.py``) all tokens in here are places in it, until results leave.

The limit is ``max_length_a * source length + max_length_b`` subwords (rounded down, EOS counted on both sides), or
``min_length`` + 1, or the sentence's prefix + 1, whichever is most: there is always room for EOS. ``min_length`` counts
the prefix. What is still alive at the limit is cut; cut hypotheses are returned, ``finished=False``, only if the
sentence has no finished one.

Samples are independent of each other: a sentence's ``n_best`` of them may be equal, stand in the order of drawing, and
are searched as so many sentences with a beam of 1. Temperature and filters decide what is drawn, not what it scores:
score and log probability are those of the model as it is.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from nmt.config import Sampling, SearchConfig
from nmt.constraints import Constraints, check_prefixes
from nmt.largest import largest
from nmt.lengths import length_limit, length_penalty
from nmt.lexicon import Shortlist, Words
from nmt.models.base import State, TranslationModel
from nmt.models.ensemble import eval_mode, log_probabilities
from nmt.models.memory import Memory, select_rows
from nmt.sampling import Sampler, check_sampling
from nmt.tokens import BOS, EOS, PAD


class Hypothesis(NamedTuple):
    """One translation of one sentence, in subword ids."""

    tokens: list[int]  # without BOS and EOS
    score: float  # log_probability / penalty(|y|)
    log_probability: float  # sum over the tokens, EOS included if finished
    finished: bool  # ended in EOS; False: cut at the length limit
    token_log_probabilities: list[float] | None = None  # of the |y| subwords; these two are filled in by nmt/forced.py
    attention: Tensor | None = None  # [|y|, layers, heads, src_len] float32 on the CPU


class _Live(NamedTuple):
    """Hypotheses that can still grow, best first."""

    tokens: Tensor  # [sentences, beams, length]
    log_probability: Tensor  # [sentences, beams], -inf in a place that no hypothesis takes


class _Candidates(NamedTuple):
    """Continuations of the live hypotheses by one token, best first."""

    log_probability: Tensor  # [sentences, candidates]
    parents: Tensor  # [sentences, candidates], place of the parent in its beam
    tokens: Tensor  # [sentences, candidates]


class _Finished(NamedTuple):
    """The n best finished hypotheses so far, best first."""

    tokens: Tensor  # [sentences, n, length], EOS and padding behind it included
    lengths: Tensor  # [sentences, n], EOS counted
    log_probability: Tensor  # [sentences, n], -inf in a place that no hypothesis takes
    score: Tensor  # [sentences, n], likewise
    endings: Tensor  # [sentences], how many have finished, those that were not good enough included


class _Frontier(NamedTuple):
    """Where the search of every unfinished sentence stands; a tree for ``select_rows``."""

    sentence: Tensor  # [sentences], its row in the batch
    limit: Tensor  # [sentences]
    live: _Live
    finished: _Finished


def check(config: SearchConfig, n_best: int = 1, sampling: Sampling | None = None) -> None:
    """Refuse options that make no sense.

    Raises:
        ValueError: naming the option.
    """
    if config.beam_size < 1:
        raise ValueError(f"beam size (--beam-size, search.beam_size): expected 1 or more, found {config.beam_size}")
    if n_best < 1:
        raise ValueError(f"n-best (--n-best): expected 1 or more, found {n_best}")
    if sampling is not None:
        check_sampling(sampling)
    elif n_best > config.beam_size:
        raise ValueError(
            f"n-best (--n-best): {n_best} translations need a beam of as many, found {config.beam_size}; "
            "raise --beam-size"
        )
    for name in ("min_length", "max_length_a", "max_length_b", "no_repeat_ngram"):
        value = getattr(config, name)
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} (--{name.replace('_', '-')}, search.{name}): expected 0 or more, found {value}")
    if config.patience is not None and not config.patience > 0:
        raise ValueError(f"patience (--patience, search.patience): expected a number above 0, found {config.patience}")
    if not math.isfinite(config.alpha):
        raise ValueError(f"alpha (--alpha, search.alpha): expected a number, found {config.alpha}")
    if config.batch_tokens < 1:
        raise ValueError(
            f"batch tokens (--batch-tokens, search.batch_tokens): expected 1 or more, found {config.batch_tokens}"
        )


def search(
    models: Sequence[TranslationModel],
    source: Tensor,
    source_lengths: Tensor,
    config: SearchConfig,
    n_best: int = 1,
    prefixes: Sequence[Sequence[int]] | None = None,
    sampling: Sampling | None = None,
    keys: Sequence[int] | None = None,
    shortlist: Shortlist | None = None,
) -> list[list[Hypothesis]]:
    """Translate one batch of sentences.

    Args:
        models: one, or an ensemble over one target vocabulary; they are put into eval mode meanwhile.
        source: [batch, src_len] int64, as ``encode`` takes it, on the models' device.
        source_lengths: [batch] int64.
        config: beam size, length penalty, limits, constraints (``batch_tokens`` is the caller's business).
        n_best: entries wanted for each sentence.
        prefixes: target subwords that each sentence's translation begins with; empty is free.
        sampling: draw ``n_best`` translations of each sentence instead of searching; the beam size has no part in it.
        keys: for sampling, an int of 0 or more for each sentence: with equal key, sentence and seed go equal samples.
        shortlist: compute the output layer only for what it offers each sentence; probabilities are over that.

    Returns:
        For each sentence, in order, 1 to ``n_best`` hypotheses, best first, no two with equal tokens; or ``n_best``
        samples in the order of drawing.

    Raises:
        ValueError: an option out of range, a prefix that no translation can have, sampling without keys, vocabularies
            of different sizes, a model whose output is not a number, constraints that leave nothing.
    """
    check(config, n_best, sampling)
    if not models:
        raise ValueError("search needs at least one model")
    batch = source.size(0)
    if prefixes is not None:
        check_prefixes(prefixes, batch)
    if sampling is not None and (keys is None or len(keys) != batch or any(key < 0 for key in keys)):
        raise ValueError(f"keys: sampling needs an int of 0 or more for each of {batch} sentences, found {keys}")
    if sampling is not None and shortlist is not None:
        raise ValueError("sampling draws from the whole vocabulary: leave out the shortlist")
    if batch == 0:
        return []
    with torch.inference_mode(), eval_mode(models):
        memories = [model.encode(source, source_lengths) for model in models]
        limit = length_limit(source_lengths, config)
        if sampling is not None and keys is not None:
            return _sample(models, memories, limit, config, n_best, prefixes, Sampler(sampling, keys, n_best))
        if shortlist is None:
            return _search(models, memories, limit, config, n_best, prefixes)
        words = shortlist.of(source, prefixes or ())
        local = None if prefixes is None else [words.places(prefix) for prefix in prefixes]
        found = _search(models, memories, limit, config, n_best, local, words=words)
        return [[each._replace(tokens=words.ids[each.tokens].tolist()) for each in row] for row in found]


def _sample(
    models: Sequence[TranslationModel],
    memories: list[Memory],
    limit: Tensor,
    config: SearchConfig,
    samples: int,
    prefixes: Sequence[Sequence[int]] | None,
    sampler: Sampler,
) -> list[list[Hypothesis]]:
    """As a search of every sentence ``samples`` times with a beam of 1."""
    rows = torch.arange(limit.size(0), device=limit.device).repeat_interleave(samples)
    memories = [select_rows(memory, rows) for memory in memories]
    prefixes = None if prefixes is None else [prefix for prefix in prefixes for _ in range(samples)]
    single = dataclasses.replace(config, beam_size=1)
    drawn = [sample for [sample] in _search(models, memories, limit[rows], single, 1, prefixes, sampler)]
    return [drawn[start : start + samples] for start in range(0, len(drawn), samples)]


def _search(
    models: Sequence[TranslationModel],
    memories: list[Memory],
    limit: Tensor,
    config: SearchConfig,
    n_best: int,
    prefixes: Sequence[Sequence[int]] | None,
    sampler: Sampler | None = None,
    words: Words | None = None,
) -> list[list[Hypothesis]]:
    outputs = [model.project if words is None else model.projection(words.ids) for model in models]
    barred = None if words is None else words.barred  # [sentences, words]
    constraints = Constraints(config, prefixes, limit.device)
    limit = constraints.raise_limit(limit)
    frontier = _start(limit, n_best)
    lengths = torch.arange(int(limit.max()) + 2, dtype=torch.float64, device=limit.device)
    penalties = length_penalty(lengths, config).float()  # [length], one table so that bounds and scores agree exactly
    states: list[State] = [model.init_state(memory) for model, memory in zip(models, memories, strict=True)]
    results: list[list[Hypothesis]] = [[] for _ in range(limit.size(0))]
    previous = torch.full_like(limit, BOS)  # [rows]
    length = 0
    while frontier.sentence.size(0):
        length += 1
        given = previous if words is None else words.ids[previous]
        steps = [model.step(given, *read) for model, *read in zip(models, states, memories, strict=True)]
        states = [step.state for step in steps]
        log_probs = log_probabilities(outputs, [step.features for step in steps], barred)  # [rows, vocabulary]
        beams = frontier.live.tokens.size(1)
        constraints.apply(log_probs, frontier.live.tokens, frontier.sentence)
        if sampler is None:
            candidates = _best_continuations(frontier.live, log_probs, config.beam_size)
        else:
            candidates = _drawn(frontier.live, log_probs, sampler.pick(log_probs, frontier.sentence))
        finished = _finish(frontier, candidates, penalties[length], config.beam_size)
        live, parents = _grow(frontier.live, candidates, config.beam_size)
        frontier = frontier._replace(live=live, finished=finished)

        done = _is_done(frontier, penalties, config)  # [sentences]
        going = torch.arange(done.size(0), device=done.device)
        if bool(done.any()):
            _collect(select_rows(frontier, done.nonzero()[:, 0]), float(penalties[length]), results)
            going = (~done).nonzero()[:, 0]
            frontier = select_rows(frontier, going)
            memories = [select_rows(memory, going) for memory in memories]
            barred = None if barred is None else barred[going]
        rows = (going[:, None] * beams + parents[going]).flatten()  # [sentences * beams]
        if rows.size(0) != previous.size(0) or not torch.equal(rows, torch.arange(rows.size(0), device=rows.device)):
            states = [select_rows(state, rows) for state in states]
        previous = frontier.live.tokens[:, :, -1].flatten()
    return results


def _start(limit: Tensor, n_best: int) -> _Frontier:
    """Every sentence with one live hypothesis, the empty one."""
    batch, device = limit.size(0), limit.device
    nothing = torch.full((batch, n_best), -torch.inf, device=device)
    return _Frontier(
        sentence=torch.arange(batch, device=device),
        limit=limit,
        live=_Live(limit.new_empty(batch, 1, 0), torch.zeros(batch, 1, device=device)),
        finished=_Finished(
            limit.new_empty(batch, n_best, 0), limit.new_zeros(batch, n_best), nothing, nothing, torch.zeros_like(limit)
        ),
    )


def _best_continuations(live: _Live, log_probs: Tensor, beam_size: int) -> _Candidates:
    """The best 2 x beam continuations of every sentence. Equal log probabilities go by parent, then by token id.

    Args:
        live: ``beams`` hypotheses for each sentence.
        log_probs: [sentences * beams, vocabulary] of the next token; changed in place.
        beam_size: hypotheses to be kept for each sentence.
    """
    sentences, beams = live.log_probability.shape
    vocabulary = log_probs.size(1)
    log_probs += live.log_probability.flatten()[:, None]
    joint = log_probs.view(sentences, beams * vocabulary)
    if beam_size == 1:  # the runner-up is of no use; max is faster, and settles ties by position
        best, places = largest(joint, 1)  # [sentences, 1]
        return _Candidates(best, torch.zeros_like(places), places)
    wanted = 2 * beam_size
    places, _ = largest(joint, min(wanted, joint.size(1)))[1].sort(dim=1)
    scores, order = joint.gather(1, places).sort(dim=1, descending=True, stable=True)
    places = places.gather(1, order)  # [sentences, candidates]
    missing = wanted - places.size(1)
    if missing > 0:  # the first step over a tiny vocabulary: more places than continuations
        scores, places = functional.pad(scores, (0, missing), value=-torch.inf), functional.pad(places, (0, missing))
    return _Candidates(scores, places // vocabulary, places % vocabulary)


def _drawn(live: _Live, log_probs: Tensor, tokens: Tensor) -> _Candidates:
    """The one continuation of every sample, by the token that was drawn for it, [sentences]."""
    log_probability = live.log_probability + log_probs.gather(1, tokens[:, None])  # [sentences, 1]
    return _Candidates(log_probability, torch.zeros_like(tokens[:, None]), tokens[:, None])


def _finish(frontier: _Frontier, candidates: _Candidates, penalty: Tensor, beam_size: int) -> _Finished:
    """Put what ends now among the n best finished hypotheses; at equal scores the earlier one stands first."""
    finished = frontier.finished
    scores, parents, tokens = (part[:, :beam_size] for part in candidates)  # [sentences, new]
    ended = tokens == EOS
    if not bool(ended.any()):
        return finished
    log_probability = scores.masked_fill(~ended, -torch.inf)
    histories = _append(frontier.live.tokens, parents, tokens)  # [sentences, new, length]
    length = histories.size(2)
    padded = functional.pad(finished.tokens, (0, length - finished.tokens.size(2)), value=PAD)
    merged = _Finished(
        tokens=torch.cat((padded, histories), dim=1),
        lengths=torch.cat((finished.lengths, torch.full_like(tokens, length)), dim=1),
        log_probability=torch.cat((finished.log_probability, log_probability), dim=1),
        score=torch.cat((finished.score, log_probability / penalty), dim=1),
        endings=finished.endings + (log_probability > -torch.inf).sum(dim=1),
    )
    n_best = finished.score.size(1)
    best = merged.score.sort(dim=1, descending=True, stable=True).indices[:, :n_best]  # [sentences, n]
    return _Finished(
        tokens=_gather_beams(merged.tokens, best),
        lengths=merged.lengths.gather(1, best),
        log_probability=merged.log_probability.gather(1, best),
        score=merged.score.gather(1, best),
        endings=merged.endings,
    )


def _grow(live: _Live, candidates: _Candidates, beam_size: int) -> tuple[_Live, Tensor]:
    """The best ``beam`` candidates that do not end now, and each one's parent, [sentences, beams]."""
    scores, parents, tokens = candidates
    growing_first = (tokens == EOS).to(torch.uint8).sort(dim=1, stable=True).indices[:, :beam_size]
    parents = parents.gather(1, growing_first)
    histories = _append(live.tokens, parents, tokens.gather(1, growing_first))
    return _Live(histories, scores.gather(1, growing_first)), parents


def _append(history: Tensor, parents: Tensor, tokens: Tensor) -> Tensor:
    """Every parent's tokens and one more: [sentences, beams, length] at [sentences, new] to [..., new, length + 1]."""
    return torch.cat((_gather_beams(history, parents), tokens[:, :, None]), dim=2)


def _gather_beams(history: Tensor, beams: Tensor) -> Tensor:
    """[sentences, beams, length] at [sentences, new] is [sentences, new, length]."""
    return history.gather(1, beams[:, :, None].expand(-1, -1, history.size(2)))


def _is_done(frontier: _Frontier, penalties: Tensor, config: SearchConfig) -> Tensor:
    """Sentences whose result nothing can change any more, or whose patience has run out, [sentences] bool."""
    live, finished = frontier.live, frontier.finished
    length = live.tokens.size(2)
    at_limit = frontier.limit <= length
    if config.beam_size == 1:
        return at_limit | (live.tokens[:, 0, -1] == EOS)
    # What follows has length + 1 to limit subwords, and a penalty is monotone: one of the two ends is the best case.
    most_favourable = torch.maximum(penalties[length + 1], penalties[frontier.limit])
    bound = live.log_probability[:, 0] / most_favourable  # [sentences]
    done = at_limit | (finished.score[:, -1] >= bound)
    return done if config.patience is None else done | (finished.endings >= config.patience * config.beam_size)


def _collect(stopped: _Frontier, penalty: float, results: list[list[Hypothesis]]) -> None:
    """Write the hypotheses of sentences that stop now into ``results``; ``penalty`` is that of the present length."""
    live, finished = stopped.live, stopped.finished
    n_best = finished.score.size(1)
    tokens, lengths = finished.tokens.tolist(), finished.lengths.tolist()
    scores, log_probability = finished.score.tolist(), finished.log_probability.tolist()
    cut_tokens, cut_log_probability = live.tokens.tolist(), live.log_probability.tolist()
    for row, sentence in enumerate(stopped.sentence.tolist()):
        ended = [
            Hypothesis(tokens[row][n][: lengths[row][n] - 1], scores[row][n], log_probability[row][n], True)
            for n in range(n_best)
            if log_probability[row][n] > -math.inf
        ]
        cut = [
            Hypothesis(ids, value / penalty, value, False)
            for ids, value in zip(cut_tokens[row], cut_log_probability[row], strict=True)
            if value > -math.inf
        ]
        results[sentence] = ended or cut[:n_best]
        if not results[sentence]:
            raise ValueError(
                "no translation has a probability: the models' parameters are not finite numbers, or min_length, "
                "no_repeat_ngram, forbid_unk and the prefix together leave no subword to go on with"
            )
