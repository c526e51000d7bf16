"""Which source words a prediction depends on, asked of the model and not of its attention.

Along a given target, of every target token t and source word k:

    occlusion         how much the next-token distribution changes when word k is left out: the total variation distance
                      TV(p, q) = 1/2 sum_y |p(y) - q(y)|, from 0 to 1 (leave-one-out, Jain and Wallace 2019)
    gradient x input  |sum over the pieces of word k of (d log p(y_t) / d e_j) . e_j|, where e_j is what the source
                      table gives for piece j (Denil et al. 2014); exact for each t, not a sum over the sentence

A word that is replaced or moved is a changed source as well: :func:`changes` takes any.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from nmt.data.batch import Batch, collate
from nmt.device import SearchPrecision, autocast
from nmt.models.base import TranslationModel
from nmt.models.ensemble import eval_mode
from nmt.tokens import EOS

NUMBERS = 1 << 24
"""Probabilities that exist at once: rows x target positions x vocabulary."""


def log_distributions(model: TranslationModel, batch: Batch) -> Tensor:
    """log p(. | y_<t, x) of all positions: [batch, tgt_len, vocabulary] float32."""
    features = model(batch.source, batch.source_lengths, batch.target_in)  # [batch, tgt_len, dim]
    return torch.log_softmax(model.project(features), dim=-1, dtype=torch.float32)


def total_variation(one: Tensor, other: Tensor) -> Tensor:
    """Distance of log distributions [..., vocabulary]: [...], from 0 to 1."""
    return 0.5 * (one.exp() - other.exp()).abs().sum(dim=-1)


def changes(
    model: TranslationModel,
    source: Sequence[int],
    others: Sequence[Sequence[int]],
    target: Sequence[int],
    vocabulary: int,
    device: torch.device,
    precision: SearchPrecision,
) -> np.ndarray:
    """Total variation between the distributions given a source and given each of others: [others, tgt_len].

    Args:
        model: in eval mode meanwhile.
        source: subwords without EOS.
        others: the same.
        target: subwords the model is led along, the last one included in what is predicted.
        vocabulary: of the target, which decides how many of ``others`` are read at once.
        device: of the model.
        precision: of its products.
    """
    found = []
    with torch.inference_mode(), eval_mode([model]), autocast(device, precision):
        base = log_distributions(model, _batch([source], target, device))  # [1, tgt_len, vocabulary]
        for part in _parts(len(others), len(target) * vocabulary):
            changed = log_distributions(model, _batch(others[part], target, device))
            found.append(total_variation(base, changed))
    return torch.cat(found).cpu().numpy() if found else np.zeros((0, len(target)), dtype=np.float32)


def gradient_x_input(
    model: TranslationModel, source: Sequence[int], target: Sequence[int], vocabulary: int, device: torch.device
) -> np.ndarray:
    """Gradient x input of every target token and source subword, EOS included, with its sign: [tgt_len, src_len].

    In float32. A row of the batch for each target token, so that one backward pass gives the gradients of them all. A
    column is a subword in the order of the sentence, whatever order the model reads it in.
    """
    embeddings, found = cast(Any, model).embeddings, []
    ids = torch.tensor([*source, EOS], device=device)
    # cuDNN has no backward pass of a recurrent layer in eval mode
    with eval_mode([model]), torch.backends.cudnn.flags(enabled=False), torch.enable_grad():
        for part in _parts(len(target), vocabulary + 1024 * (len(source) + len(target))):
            places = torch.arange(part.start, part.stop, device=device)
            rows = torch.arange(len(places), device=device)
            batch = _batch([source] * len(places), target, device)
            vectors = embeddings.source(ids).detach().repeat(len(places), 1, 1).requires_grad_()
            numbers = torch.arange(len(ids), device=device).repeat(len(places), 1)
            with reading_from(embeddings, source=vectors):
                features = model(numbers, batch.source_lengths, batch.target_in)
            own = model.project(features[rows, places])  # [rows, vocabulary]: row r speaks of its token only
            values = torch.log_softmax(own, dim=-1, dtype=torch.float32)[rows, batch.target_out[rows, places]]
            [gradient] = torch.autograd.grad(values.sum(), [vectors])  # [rows, src_len, dim]
            found.append((gradient * vectors.detach()).sum(dim=-1))
    return torch.cat(found).cpu().numpy()


@contextmanager
def reading_from(embeddings: Any, source: Tensor, target: Tensor | None = None) -> Iterator[None]:
    """Tables give vectors by the number of their place instead of by subword, so that a model that reads the sentence
    in another order still tells which vector came from where.

    Args:
        embeddings: of a model.
        source: vectors [rows, src_len, dim].
        target: vectors [rows, tgt_len, dim]; None: that table stays as it is.
    """
    tables = {"source": source} | ({} if target is None else {"target": target})
    for side, vectors in tables.items():
        setattr(embeddings, side, partial(_look_up, vectors))
    try:
        yield
    finally:
        for side in tables:
            delattr(embeddings, side)  # the method of its class is seen again


def _look_up(vectors: Tensor, places: Tensor) -> Tensor:
    rows = torch.arange(len(vectors), device=vectors.device)
    return vectors[rows[:, None] if places.dim() > 1 else rows, places]


def _batch(sources: Sequence[Sequence[int]], target: Sequence[int], device: torch.device) -> Batch:
    rows = range(len(sources))
    return collate([[*source, EOS] for source in sources], [list(target) for _ in rows], list(rows)).to(device)


def _parts(rows: int, numbers: int) -> Iterator[slice]:
    """Rows of so many numbers each, in parts of :data:`NUMBERS` at most, or of single rows."""
    size = max(1, NUMBERS // max(numbers, 1))
    for begin in range(0, rows, size):
        yield slice(begin, min(begin + size, rows))
