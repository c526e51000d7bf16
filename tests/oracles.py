"""Slow and obvious answers to what a search should find."""

import dataclasses
import itertools
import math
import statistics
from collections.abc import Sequence

import torch

from nmt.config import Sampling, SearchConfig
from nmt.data.batch import encode_source
from nmt.models.base import TranslationModel
from nmt.tokens import BOS, EOS, PAD, UNK

Models = TranslationModel | Sequence[TranslationModel]


def options(**changes: object) -> SearchConfig:
    start = SearchConfig(
        beam_size=4,
        length_penalty="gnmt",
        alpha=1.0,
        min_length=0,
        max_length_a=0.0,
        max_length_b=7,
        patience=None,
        no_repeat_ngram=0,
        forbid_unk=False,
        batch_tokens=4096,
    )
    return dataclasses.replace(start, **changes)


def penalty(length: int, config: SearchConfig) -> float:
    """The formulas once more, from the papers."""
    if config.length_penalty == "none":
        return 1.0
    base = length if config.length_penalty == "simple" else (5 + length) / (5 + 1)
    return base**config.alpha


def log_probability(models: Models, source: Sequence[int], tokens: Sequence[int], finished: bool) -> float:
    """By teacher forcing through the public interface of a model; of an ensemble the mean."""
    if not isinstance(models, TranslationModel):
        return statistics.fmean(log_probability(model, source, tokens, finished) for model in models)
    model = models
    rows, lengths = encode_source([source])
    features = model(rows, lengths, torch.tensor([[BOS, *tokens]]))
    log_probs = model.project(features)[0].double().log_softmax(dim=-1)  # [tgt_len, vocabulary]
    target = [*tokens, EOS] if finished else tokens
    return sum(log_probs[place, token].item() for place, token in enumerate(target))


def may_follow(token: int, tokens: tuple[int, ...], config: SearchConfig, begin: Sequence[int]) -> bool:
    """Whether a hypothesis that has ``tokens`` may go on with ``token``, if it must begin with ``begin``."""
    if len(tokens) < len(begin):
        return token == begin[len(tokens)]
    if token == EOS:
        return len(tokens) >= config.min_length
    if token in (PAD, BOS) or (token == UNK and config.forbid_unk):
        return False
    n, grown = config.no_repeat_ngram, (*tokens, token)
    grams = [grown[start : start + n] for start in range(len(grown) - n + 1)]
    return n == 0 or len(grown) < n or grams[-1] not in grams[:-1]


def plain_beam_search(
    models: Models, source: Sequence[int], config: SearchConfig, begin: Sequence[int] = ()
) -> list[tuple[tuple[int, ...], float, bool]]:
    """What the module docstring of ``nmt.search`` says, for one sentence, to the limit: (tokens, score, finished).

    ``begin`` is what the translation must begin with. Nothing comes back if nothing has a probability."""
    source = [*source, EOS]
    limit = max(int(config.max_length_a * len(source) + config.max_length_b), config.min_length + 1, len(begin) + 1)
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for length in range(1, limit + 1):
        grown = []
        for total, prefix in live:
            for token, value in enumerate(next_log_probabilities(models, source, prefix)):
                if value > -math.inf and may_follow(token, prefix, config, begin):
                    grown.append((total + value, (*prefix, token)))
        grown.sort(key=lambda item: -item[0])
        ending = [item for item in grown[: config.beam_size] if item[1][-1] == EOS]
        finished += [(total / penalty(length, config), tokens[:-1]) for total, tokens in ending]
        live = [item for item in grown if item[1][-1] != EOS][: config.beam_size]
        if config.beam_size == 1 and finished:
            break
    finished.sort(key=lambda item: -item[0])
    cut = [(tokens, total / penalty(limit, config), False) for total, tokens in live]
    return [(tokens, score, True) for score, tokens in finished] or cut


def next_log_probabilities(models: Models, source: Sequence[int], prefix: Sequence[int]) -> list[float]:
    """log p(. | prefix, source) by stepping one row along the prefix; ``source`` ends in EOS."""
    if not isinstance(models, TranslationModel):
        each = [next_log_probabilities(model, source, prefix) for model in models]
        return [sum(values) / len(models) for values in zip(*each, strict=True)]
    model = models
    memory = model.encode(torch.tensor([list(source)]), torch.tensor([len(source)]))
    state = model.init_state(memory)
    for token in (BOS, *prefix):
        features, state, _ = model.step(torch.tensor([token]), state, memory)
    return model.project(features)[0].double().log_softmax(dim=-1).tolist()


def greedy(model: TranslationModel, source: Sequence[int], limit: int) -> tuple[list[int], bool]:
    """The most probable next token, again and again: the tokens without EOS, and whether it came."""
    tokens: list[int] = []
    while len(tokens) < limit:
        values = next_log_probabilities(model, [*source, EOS], tokens)
        values[PAD] = values[BOS] = -math.inf
        token = max(range(len(values)), key=values.__getitem__)
        if token == EOS:
            return tokens, True
        tokens.append(token)
    return tokens, False


def drawn_from(log_probs: Sequence[float], sampling: Sampling) -> list[float]:
    """The probabilities with which tokens are drawn, from those of the next one."""
    weights = [math.exp(value / sampling.temperature) for value in log_probs]
    ranked = sorted(range(len(weights)), key=lambda token: -weights[token])
    if sampling.top_k:
        ranked = ranked[: sampling.top_k]
    total = sum(weights[token] for token in ranked)
    kept: list[int] = []
    for token in ranked:
        if sampling.top_p < 1 and sum(weights[other] for other in kept) >= sampling.top_p * total:
            break
        kept.append(token)
    total = sum(weights[token] for token in kept)
    return [weights[token] / total if token in kept else 0.0 for token in range(len(weights))]


def every_sequence(vocabulary: int, longest: int) -> list[tuple[int, ...]]:
    """All sequences without PAD, BOS and EOS of at most ``longest`` tokens."""
    tokens = [token for token in range(vocabulary) if token not in (PAD, BOS, EOS)]
    return [sequence for length in range(longest + 1) for sequence in itertools.product(tokens, repeat=length)]
