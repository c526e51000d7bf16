"""Forced decoding: what models make of given targets, and where they look while they are led along them.

The target is known, so nothing is searched: ``decode`` runs over all of its positions, and the log-softmax is read at
the tokens that follow. Likelihoods, the scores of pairs and the details of a translation that a search has found all
come from here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.data.batch import Batch, collate
from nmt.models.base import TranslationModel
from nmt.models.ensemble import eval_mode, log_probabilities
from nmt.search import Hypothesis
from nmt.tokens import EOS

PROJECTED_ROWS = 2048
"""Target positions whose logits exist at once, so that memory does not grow with batch x vocabulary."""


class Forced(NamedTuple):
    """What was asked for about every target token, EOS included where the target has one."""

    log_probabilities: Tensor | None  # [batch, tgt_len] float32 natural logarithms, 0 behind a row's last token
    attention: Tensor | None  # [batch, tgt_len, layers, heads, src_len] float32; row t predicted token t


def force(
    models: Sequence[TranslationModel], batch: Batch, with_log_probabilities: bool = True, with_attention: bool = False
) -> Forced:
    """Lead one model, or an ensemble, along the targets of a batch, without dropout.

    Only real positions are projected, and the log-softmax is in float32, so that a row's result does not depend on its
    neighbours. Call it inside the autocast context that the models are to compute in.

    Args:
        models: one, or an ensemble over one target vocabulary; they are put into eval mode meanwhile.
        batch: on the models' device. A target may lack its EOS: then nothing is said about ending.
        with_log_probabilities: of the tokens.
        with_attention: weights of every layer and head.

    Raises:
        ValueError: vocabularies of different sizes, attention of an ensemble or of a model that has none.
    """
    if with_attention:
        check_attention(models)
    with torch.inference_mode(), eval_mode(models):
        memories = [model.encode(batch.source, batch.source_lengths) for model in models]
        values = weights = None
        if with_log_probabilities:
            pairs = zip(models, memories, strict=True)
            features = [model.decode(batch.target_in, memory) for model, memory in pairs]  # [batch, tgt_len, dim] each
            values = _read_off(models, features, batch)
        if with_attention:
            weights = models[0].attention(batch.target_in, memories[0])  # [batch, layers, heads, tgt_len, src_len]
            weights = weights.permute(0, 3, 1, 2, 4)
    return Forced(values, weights)


def check_attention(models: Sequence[TranslationModel]) -> None:
    """Refuse to look for weights where there are none.

    Raises:
        ValueError: several models, or one that reads a fixed vector.
    """
    if len(models) > 1:
        raise ValueError(
            "alignment (--align): attention weights are those of one model; an ensemble has none of its own"
        )
    if not models[0].attends:
        name = type(models[0]).__name__
        raise ValueError(f"alignment (--align): {name} reads one fixed vector: it has no attention weights to look at")


def _read_off(models: Sequence[TranslationModel], features: list[Tensor], batch: Batch) -> Tensor:
    """Log probabilities of the target tokens, [batch, tgt_len], from each model's features [batch, tgt_len, dim]."""
    mask = batch.target_mask
    real = [own[mask] for own in features]  # [positions, dim] each
    tokens = batch.target_out[mask]  # [positions]
    values = torch.zeros(mask.shape, device=mask.device)
    outputs = [model.project for model in models]
    parts = []
    for start in range(0, len(tokens), PROJECTED_ROWS):
        part = slice(start, start + PROJECTED_ROWS)
        every = log_probabilities(outputs, [own[part] for own in real])  # [positions, vocabulary]
        parts.append(every.gather(1, tokens[part, None]).squeeze(1))
    if parts:
        values[mask] = torch.cat(parts)
    return values


def with_details(
    models: Sequence[TranslationModel],
    sources: Sequence[Sequence[int]],
    found: list[list[Hypothesis]],
    device: torch.device,
    with_log_probabilities: bool,
    with_attention: bool,
) -> list[list[Hypothesis]]:
    """Hypotheses with what the models make of each of their tokens.

    All best ones are forced at once, then all second ones, and so on: as many rows at a time as there are sentences.

    Args:
        models: those that found them.
        sources: subword ids of each sentence, without EOS.
        found: hypotheses of each sentence.
        device: of the models.
        with_log_probabilities: fill in ``token_log_probabilities``.
        with_attention: fill in ``attention``.

    Raises:
        ValueError: as :func:`force`.
    """
    detailed: list[list[Hypothesis]] = [[] for _ in found]
    for rank in range(max((len(hypotheses) for hypotheses in found), default=0)):
        rows = [row for row, hypotheses in enumerate(found) if len(hypotheses) > rank]
        chosen = [found[row][rank] for row in rows]
        targets = [[*hypothesis.tokens, *([EOS] if hypothesis.finished else [])] for hypothesis in chosen]
        batch = collate([[*sources[row], EOS] for row in rows], targets, rows).to(device)
        forced = force(models, batch, with_log_probabilities, with_attention)
        values = None if forced.log_probabilities is None else forced.log_probabilities.tolist()
        for place, (row, hypothesis) in enumerate(zip(rows, chosen, strict=True)):
            size = len(targets[place])
            if values is not None:
                hypothesis = hypothesis._replace(token_log_probabilities=values[place][:size])
            if forced.attention is not None:
                own = forced.attention[place, :size, ..., : len(sources[row]) + 1]
                hypothesis = hypothesis._replace(attention=own.cpu().clone())
            detailed[row].append(hypothesis)
    return detailed
