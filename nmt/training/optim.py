"""Optimizers and learning-rate schedules.

A schedule is a pure function of the update's number, the position in epochs and the number of cuts made so far, so a
resumed run has the learning rate of an uninterrupted one by construction.
"""

import math

import torch
from torch import nn
from torch.optim import SGD, Adadelta, Adam, AdamW, Optimizer

from nmt.config import (
    AdadeltaConfig,
    AdamConfig,
    ConfigError,
    ConstantSchedule,
    HalvingSchedule,
    InverseSqrtSchedule,
    LinearSchedule,
    OptimConfig,
    PlateauSchedule,
    SGDConfig,
)


def check_optim(config: OptimConfig) -> None:
    """Refuse values that no optimizer or schedule can mean.

    Raises:
        ConfigError: naming the key.
    """
    optimizer, schedule = config.optimizer, config.schedule
    _require(
        math.isfinite(optimizer.learning_rate) and optimizer.learning_rate > 0,
        "optimizer.learning_rate",
        "a number above 0",
        optimizer.learning_rate,
    )
    if isinstance(optimizer, AdamConfig):
        _require(0 <= optimizer.beta1 < 1, "optimizer.beta1", "0 <= beta1 < 1", optimizer.beta1)
        _require(0 <= optimizer.beta2 < 1, "optimizer.beta2", "0 <= beta2 < 1", optimizer.beta2)
        _require(optimizer.epsilon > 0, "optimizer.epsilon", "a number above 0", optimizer.epsilon)
        _require(optimizer.weight_decay >= 0, "optimizer.weight_decay", "0 or more", optimizer.weight_decay)
    elif isinstance(optimizer, SGDConfig):
        _require(0 <= optimizer.momentum < 1, "optimizer.momentum", "0 <= momentum < 1", optimizer.momentum)
    else:
        _require(0 < optimizer.rho < 1, "optimizer.rho", "0 < rho < 1", optimizer.rho)
        _require(optimizer.epsilon > 0, "optimizer.epsilon", "a number above 0", optimizer.epsilon)
    if isinstance(schedule, HalvingSchedule):
        _require(schedule.start_epoch >= 0, "schedule.start_epoch", "0 or more", schedule.start_epoch)
        _require(schedule.every_epochs > 0, "schedule.every_epochs", "a number above 0", schedule.every_epochs)
    else:
        _require(schedule.warmup_steps >= 0, "schedule.warmup_steps", "0 or more", schedule.warmup_steps)
    if isinstance(schedule, LinearSchedule):
        above = f"above schedule.warmup_steps ({schedule.warmup_steps})"
        _require(schedule.total_steps > schedule.warmup_steps, "schedule.total_steps", above, schedule.total_steps)
    if isinstance(schedule, PlateauSchedule):
        _require(0 < schedule.factor < 1, "schedule.factor", "0 < factor < 1", schedule.factor)
        _require(schedule.patience >= 1, "schedule.patience", "1 or more", schedule.patience)
        _require(
            0 <= schedule.min_learning_rate <= optimizer.learning_rate,
            "schedule.min_learning_rate",
            f"between 0 and optimizer.learning_rate ({optimizer.learning_rate})",
            schedule.min_learning_rate,
        )
    _require(config.clip_norm is None or config.clip_norm > 0, "clip_norm", "null or above 0", config.clip_norm)
    _require(0 <= config.label_smoothing < 1, "label_smoothing", "0 <= label_smoothing < 1", config.label_smoothing)


def _require(holds: bool, key: str, expected: str, found: object) -> None:
    if not holds:
        raise ConfigError(f"optim.{key}: expected {expected}, found {found}")


def build_optimizer(model: nn.Module, config: OptimConfig) -> Optimizer:
    """The optimizer over the trainable parameters, each once however it is tied.

    AdamW decays matrices only: biases and the gains of normalisation (1-d parameters) are left alone.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = config.optimizer
    fused = all(parameter.device.type in ("cpu", "cuda") for parameter in parameters)
    if isinstance(optimizer, AdadeltaConfig):
        return Adadelta(parameters, optimizer.learning_rate, rho=optimizer.rho, eps=optimizer.epsilon)
    if isinstance(optimizer, SGDConfig):
        return SGD(parameters, optimizer.learning_rate, momentum=optimizer.momentum, fused=fused)
    betas = (optimizer.beta1, optimizer.beta2)
    if optimizer.name == "adam":
        return Adam(
            parameters,
            optimizer.learning_rate,
            betas=betas,
            eps=optimizer.epsilon,
            weight_decay=optimizer.weight_decay,
            fused=fused,
        )
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": optimizer.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return AdamW(groups, optimizer.learning_rate, betas=betas, eps=optimizer.epsilon, fused=fused)


def learning_rate(config: OptimConfig, step: int, epoch: float, cuts: int) -> float:
    """Learning rate of one update.

    Args:
        config: the recipe; ``optimizer.learning_rate`` is the peak.
        step: number of the update since the schedule began, 1 for the first. Skipped updates do not count.
        epoch: passes over the training data made since then, before this update (2.5: in the middle of the third).
        cuts: cuts made so far on a plateau of the validation metric.
    """
    peak = config.optimizer.learning_rate
    schedule = config.schedule
    if isinstance(schedule, ConstantSchedule):
        return peak * _warmup(step, schedule.warmup_steps)
    if isinstance(schedule, InverseSqrtSchedule):
        # Vaswani et al., equation 3, d^-0.5 min(step^-0.5, step warmup^-1.5), with the peak d^-0.5 warmup^-0.5 named.
        return peak * min(_warmup(step, schedule.warmup_steps), math.sqrt(max(schedule.warmup_steps, 1) / step))
    if isinstance(schedule, LinearSchedule):
        left = (schedule.total_steps + 1 - step) / (schedule.total_steps + 1 - schedule.warmup_steps)
        return peak * max(0.0, min(_warmup(step, schedule.warmup_steps), left))
    if isinstance(schedule, PlateauSchedule):
        return _warmup(step, schedule.warmup_steps) * max(peak * schedule.factor**cuts, schedule.min_learning_rate)
    if epoch < schedule.start_epoch:
        return peak
    # A ten-thousand-millionth of an epoch against rounding: (5.3 - 5) / 0.1 is three periods, not 2.999...
    return peak * 0.5 ** (1 + math.floor((epoch - schedule.start_epoch) / schedule.every_epochs + 1e-10))


def _warmup(step: int, warmup_steps: int) -> float:
    return min(1.0, step / warmup_steps) if warmup_steps else 1.0


def clip_gradient(model: nn.Module, clip_norm: float | None) -> float:
    """Scale the gradient down to ``clip_norm`` and return its true norm, from before (inf or NaN if it is broken)."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    if clip_norm is not None:
        parameters = [parameter for parameter in model.parameters() if parameter.grad is not None]
        torch.nn.utils.clip_grads_with_norm_(parameters, clip_norm, norm)
    return float(norm)
