"""One update: forward, backward and a step of the optimizer over a group of batches, as if they were one batch."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch.optim import Optimizer

from nmt.config import OptimConfig
from nmt.data.batch import Batch
from nmt.device import Precision, autocast
from nmt.models.base import TranslationModel
from nmt.training.loss import LossSums, backward, real_positions
from nmt.training.optim import clip_gradient


class Update(NamedTuple):
    """What happened."""

    made: bool  # False: skipped, the gradient was infinite or NaN
    gradient_norm: float  # before clipping
    smoothed: float  # summed over `tokens`, as is `nll`; NaN or infinite perhaps, if skipped
    nll: float
    tokens: int  # real target tokens
    slots: int  # rows x longest row, source and target
    filled: int  # real tokens, source and target


class Updater:
    """The model, its optimizer and where they compute."""

    def __init__(
        self,
        model: TranslationModel,
        optimizer: Optimizer,
        config: OptimConfig,
        device: torch.device,
        precision: Precision,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.config = config
        self.device = device
        self.precision = precision

    def update(self, group: Sequence[Batch], rate: float) -> Update:
        """Make one update with learning rate ``rate``, or none if the gradient is not finite.

        The gradient is that of the loss summed over the whole group, divided by its target tokens (or sentences, as
        ``optim.normalize`` says): however the pairs are cut into batches, the update is the same.
        """
        tokens = sum(int(batch.target_lengths.sum()) for batch in group)
        scale = 1.0 / (tokens if self.config.normalize == "tokens" else sum(len(batch.indices) for batch in group))
        sums = [self._backward(batch, scale) for batch in group]
        norm = clip_gradient(self.model, self.config.clip_norm)
        made = norm < float("inf")  # NaN is not
        if made:
            for parameters in self.optimizer.param_groups:
                parameters["lr"] = rate
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return Update(
            made=made,
            gradient_norm=norm,
            smoothed=sum(float(loss.smoothed) for loss in sums),
            nll=sum(float(loss.nll) for loss in sums),
            tokens=tokens,
            slots=sum(batch.source.numel() + batch.target_out.numel() for batch in group),
            filled=tokens + sum(int(batch.source_lengths.sum()) for batch in group),
        )

    def _backward(self, batch: Batch, scale: float) -> LossSums:
        positions = real_positions(batch).to(self.device)  # found before the move: a GPU would have to be waited for
        batch = batch.to(self.device)
        with autocast(self.device, self.precision):
            features = self.model(batch.source, batch.source_lengths, batch.target_in)  # [batch, tgt_len, dim]
            return backward(self.model, features, batch, positions, self.config.label_smoothing, scale)
