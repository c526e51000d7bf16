"""Negative log-likelihood of the true targets: what perplexity is made of. No label smoothing here."""

import math
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import torch

from nmt.data.batch import Batch
from nmt.device import SearchPrecision, autocast
from nmt.forced import force
from nmt.models.base import TranslationModel


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
    model: TranslationModel, loader: Batches, device: torch.device, precision: SearchPrecision
) -> Likelihood:
    """-log p(target | source) summed over every real target token the loader yields, EOS included.

    The model computes in ``precision`` and in eval mode (its mode is put back afterwards); by :func:`nmt.forced.force`,
    so that the result does not depend on how the sentences are batched.

    Raises:
        ValueError: there is nothing to score.
    """
    total, tokens = torch.zeros((), dtype=torch.float64), 0
    for batch in loader.batches(0):
        with autocast(device, precision):
            values = force([model], batch.to(device)).log_probabilities  # [batch, tgt_len], 0 where there is no token
        assert values is not None
        total -= values.double().sum().cpu()
        tokens += int(batch.target_lengths.sum())
    if tokens == 0:
        raise ValueError("no target tokens to score: there are no sentences")
    return Likelihood(nll=total.item(), tokens=tokens)
