"""Several models as one: every next token has the mean of their log probabilities. One model is an ensemble of one.

The geometric mean of the probabilities, then, which a token that one model rules out does not survive. It is not
normalised again, so that the log probability of a translation is the mean of those that the models give it, and that of
a model with itself the model's own; what the models disagree about loses.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from nmt.models.base import TranslationModel


def log_probabilities(
    outputs: Sequence[Callable[[Tensor], Tensor]], features: Sequence[Tensor], barred: Tensor | None = None
) -> Tensor:
    """The models' mean log probability of the next token, [rows, vocabulary] float32.

    Args:
        outputs: the output layer of each model, all over one target vocabulary or one shortlist of it.
        features: of each model, [rows, dim].
        barred: [sentences, vocabulary], -inf for what the rows of a sentence may not use, else 0; rows are grouped by
            sentence. What is barred has no share in the normalisation.

    Raises:
        ValueError: vocabularies of different sizes.
    """
    parts = []
    for output, own in zip(outputs, features, strict=True):
        logits = output(own)
        if barred is not None:
            logits = (logits.view(barred.size(0), -1, logits.size(-1)) + barred[:, None]).flatten(end_dim=1)
        parts.append(torch.log_softmax(logits, dim=-1, dtype=torch.float32))
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
