"""What happens if a model looks elsewhere: its weights are shuffled over the source, or made uniform, at one step.

After Jain and Wallace (2019) and the answer of Wiegreffe and Pinter (2019): where shuffled weights change nothing, the
weights explain nothing. Shuffling the weights over the positions of a sentence is the same as shuffling the values that
they weigh, sum_j alpha_pi(j) v_j = sum_j alpha_j v_pi^-1(j), and the mean value at every position makes them uniform:
the memory is changed, and the model is not. Every step starts from the state of the undisturbed steps before it: what
is measured is this one reading.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from nmt.analysis.relevance import total_variation
from nmt.data.batch import Batch
from nmt.device import SearchPrecision, autocast
from nmt.models.base import TranslationModel
from nmt.models.ensemble import eval_mode
from nmt.models.memory import Memory, MemoryTable

Kind = Literal["shuffled", "uniform"]


class Elsewhere(NamedTuple):
    """How the model is made to look elsewhere."""

    kind: Kind
    layer: int | None = None  # counted from 1; None: in all of them

    def __str__(self) -> str:
        return self.kind if self.layer is None else f"{self.kind}, layer {self.layer} alone"


class Effect(NamedTuple):
    """Of each sentence, means over its target tokens: [batch] float64 each."""

    change: np.ndarray  # total variation between the next-token distributions, 0 to 1
    nll: np.ndarray  # -log p of the given tokens, undisturbed
    nll_elsewhere: np.ndarray


def look_elsewhere(
    model: TranslationModel,
    batch: Batch,
    how: Sequence[Elsewhere],
    device: torch.device,
    precision: SearchPrecision,
    seed: int,
) -> list[Effect]:
    """Lead a model along the targets of a batch, and at each step also from the same state with changed weights.

    Args:
        model: one that attends.
        batch: on the model's device.
        how: each is done apart from the others.
        device: of the model.
        precision: of its products.
        seed: of the shuffles; another order for each sentence and each step.
    """
    generator = torch.Generator().manual_seed(seed)
    lengths, mask = batch.source_lengths, batch.target_mask
    change = torch.zeros(len(how), *mask.shape)
    nll = torch.zeros(1 + len(how), *mask.shape)
    with torch.inference_mode(), eval_mode([model]), autocast(device, precision):
        memory = model.encode(batch.source, lengths)
        state = model.init_state(memory)
        for t in range(batch.target_in.size(1)):
            order = shuffled_places(lengths.cpu(), batch.source.size(1), generator).to(device)
            previous, token = batch.target_in[:, t], batch.target_out[:, t, None]
            step = model.step(previous, state, memory)
            clean = _log_softmax(model, step.features)
            nll[0, :, t] = -clean.gather(1, token)[:, 0].cpu()
            for number, each in enumerate(how):
                features = model.step(previous, state, _changed(memory, each, order)).features
                other = _log_softmax(model, features)
                change[number, :, t] = total_variation(clean, other).cpu()
                nll[1 + number, :, t] = -other.gather(1, token)[:, 0].cpu()
            state = step.state
    real = mask.cpu()
    change, nll = (
        (each.double() * real).sum(dim=-1) / real.sum(dim=-1).clamp(min=1) for each in (change, nll)
    )  # [how, batch]
    return [Effect(change[i].numpy(), nll[0].numpy(), nll[1 + i].numpy()) for i in range(len(how))]


def shuffled_places(lengths: Tensor, src_len: int, generator: torch.Generator) -> Tensor:
    """A random order of the real positions of each row; padding stays where it is. [batch, src_len] int64."""
    keys = torch.rand(len(lengths), src_len, generator=generator)
    positions = torch.arange(src_len)
    return torch.where(positions < lengths[:, None], keys, 1.0 + positions).argsort(dim=1)


def _log_softmax(model: TranslationModel, features: Tensor) -> Tensor:
    return torch.log_softmax(model.project(features), dim=-1, dtype=torch.float32)


def _changed(memory: Memory, how: Elsewhere, order: Tensor) -> Memory:
    if isinstance(memory, MemoryTable):
        return _changed_table(memory, how.kind, order)
    tables = cast(tuple[MemoryTable, ...], memory)
    return tuple(
        _changed_table(table, how.kind, order) if how.layer in (None, number) else table
        for number, table in enumerate(tables, 1)
    )


def _changed_table(table: MemoryTable, kind: Kind, order: Tensor) -> MemoryTable:
    """Values [batch, src_len, dim] or [batch, heads, src_len, head_dim], in another order or all their mean."""
    by_head = table.values.dim() == 4
    places, mask = (each[:, None, :, None] if by_head else each[..., None] for each in (order, table.mask))
    if kind == "shuffled":
        values = table.values.gather(-2, places.expand_as(table.values))
    else:
        total = table.values.masked_fill(~mask, 0.0).sum(dim=-2, keepdim=True)
        values = (total / mask.sum(dim=-2, keepdim=True).clamp(min=1)).expand_as(table.values)
    return table._replace(values=values)
