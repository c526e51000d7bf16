"""Negative log-likelihood of the true targets: what perplexity is made of. No label smoothing here."""

import math
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import torch
from torch.nn import functional

from nmt.data.batch import Batch
from nmt.device import Precision, autocast
from nmt.models.base import TranslationModel

PROJECTED_ROWS = 2048
"""Target positions whose logits exist at once, so that memory does not grow with batch x vocabulary."""


class Batches(Protocol):
    """What can be scored: a ``Loader``, or anything else that yields batches."""

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Every pair once."""


class Likelihood(NamedTuple):
    """Teacher-forced score of a whole split."""

    nll: float  # summed over tokens, natural logarithm
    tokens: int  # real target tokens, EOS included

    @property
    def perplexity(self) -> float:
        """exp(mean NLL per target token); infinite rather than an error when it does not fit in a float."""
        try:
            return math.exp(self.nll / self.tokens)
        except OverflowError:
            return math.inf


def evaluate_likelihood(
    model: TranslationModel, loader: Batches, device: torch.device, precision: Precision
) -> Likelihood:
    """-log p(target | source) summed over every real target token the loader yields, EOS included.

    The model computes in ``precision`` and in eval mode (its mode is put back afterwards); only real positions are
    projected, and the log-softmax is in float32, so the result does not depend on how the sentences are batched.

    Raises:
        ValueError: there is nothing to score.
    """
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            total, tokens = torch.zeros((), dtype=torch.float64), 0
            for batch in loader.batches(0):
                batch = batch.to(device)
                with autocast(device, precision):
                    features = model(batch.source, batch.source_lengths, batch.target_in)  # [batch, tgt_len, dim]
                mask = batch.target_mask
                real, wanted = features[mask], batch.target_out[mask]  # [positions, dim], [positions]
                for start in range(0, len(real), PROJECTED_ROWS):
                    part = slice(start, start + PROJECTED_ROWS)
                    with autocast(device, precision):
                        logits = model.project(real[part])  # [positions, vocabulary]
                    losses = functional.cross_entropy(logits.float(), wanted[part], reduction="none")
                    total += losses.double().sum().cpu()
                tokens += len(wanted)
    finally:
        model.train(training)
    if tokens == 0:
        raise ValueError("no target tokens to score: there are no sentences")
    return Likelihood(nll=total.item(), tokens=tokens)
