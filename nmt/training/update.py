"""One update: forward, backward and a step of the optimizer over a group of batches, as if they were one batch."""

from typing import NamedTuple

import torch
from torch.optim import Optimizer

from nmt.config import OptimConfig
from nmt.data.batch import Batch, Group
from nmt.device import Precision, autocast, move, tf32
from nmt.models.base import TranslationModel
from nmt.training.distributed import ALONE, Processes
from nmt.training.loss import LossSums, backward, real_positions
from nmt.training.optim import clip_gradient


class Update(NamedTuple):
    """What happened, in all processes together."""

    made: bool  # False: skipped, the gradient was infinite or NaN
    gradient_norm: float  # before clipping
    smoothed: float  # summed over `tokens`, as is `nll`; NaN or infinite perhaps, if skipped
    nll: float
    tokens: int  # real target tokens
    slots: int  # rows x longest row, source and target
    filled: int  # real tokens, source and target


class Updater:
    """The model, its optimizer and where they compute.

    Args:
        model: what is trained.
        optimizer: over its parameters.
        config: the recipe.
        device: where the model is.
        precision: number format of matrix products.
        processes: that make every update together.
        use_tf32: let a GPU round the factors of float32 matrix products.
        compiled: let ``torch.compile`` translate the model's pass over a batch, for batches of any shape.
    """

    def __init__(
        self,
        model: TranslationModel,
        optimizer: Optimizer,
        config: OptimConfig,
        device: torch.device,
        precision: Precision,
        processes: Processes = ALONE,
        use_tf32: bool = False,
        compiled: bool = False,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.config = config
        self.device = device
        self.precision = precision
        self.processes = processes
        self.use_tf32 = use_tf32
        # Of the method, not of the module: names of parameters and everything but updates stay as they are.
        self._forward = torch.compile(model.forward, dynamic=True) if compiled else model

    def update(self, group: Group, rate: float) -> Update:
        """Make one update with learning rate ``rate``, or none if the gradient is not finite.

        The gradient is that of the loss summed over the whole group, divided by its target tokens (or sentences, as
        ``optim.normalize`` says): however the pairs are cut into batches, and whatever process has them, the update
        is the same.

        Raises:
            ProcessLostError: another process ended or stopped answering.
        """
        scale = 1.0 / (group.tokens if self.config.normalize == "tokens" else group.sentences)
        sums = torch.zeros(2, device=self.device)  # smoothed, nll
        with tf32(self.device, self.use_tf32):
            for batch in group.batches:
                sums += torch.stack(self._backward(batch, scale))
        sums = self.processes.sum_gradients(self.model, sums)
        norm = clip_gradient(self.model, self.config.clip_norm)
        made = norm < float("inf")  # NaN is not
        if made:
            for parameters in self.optimizer.param_groups:
                parameters["lr"] = rate
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        smoothed, nll = sums.tolist()
        return Update(made, norm, smoothed, nll, tokens=group.tokens, slots=group.slots, filled=group.filled)

    def _backward(self, batch: Batch, scale: float) -> LossSums:
        positions = move(real_positions(batch), self.device)  # found before the move: a GPU would have to be waited for
        batch = batch.to(self.device)
        with autocast(self.device, self.precision):
            features = self._forward(batch.source, batch.source_lengths, batch.target_in)  # [batch, tgt_len, dim]
            return backward(self.model, features, batch, positions, self.config.label_smoothing, scale)
