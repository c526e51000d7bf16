"""Several models as one: every next token has the mean of their log probabilities. One model is an ensemble of one.

The geometric mean of the probabilities, then, which a token that one model rules out does not survive. It is not
normalised again, so that the log probability of a translation is the mean of those that the models give it, and that of
a model with itself the model's own; what the models disagree about loses.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from nmt.models.base import TranslationModel


def log_probabilities(models: Sequence[TranslationModel], features: Sequence[Tensor]) -> Tensor:
    """The models' mean log probability of the next token, [rows, vocabulary] float32.

    Args:
        models: over one target vocabulary.
        features: of each model, [rows, dim].

    Raises:
        ValueError: vocabularies of different sizes.
    """
    parts = [
        torch.log_softmax(model.project(own), dim=-1, dtype=torch.float32)
        for model, own in zip(models, features, strict=True)
    ]
    sizes = [part.size(-1) for part in parts]
    if len(set(sizes)) > 1:
        raise ValueError(f"an ensemble needs one target vocabulary; its models have vocabularies of {sizes} entries")
    mean = parts[0]
    if len(parts) > 1:
        for part in parts[1:]:
            mean += part
        mean /= len(parts)
    return mean


@contextmanager
def eval_mode(models: Sequence[TranslationModel]) -> Iterator[None]:
    """Dropout off, and every module back in its own mode afterwards."""
    modes = [(module, module.training) for model in models for module in model.modules()]
    for model in models:
        model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
