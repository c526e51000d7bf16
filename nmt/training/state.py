"""What a run remembers between updates, and the rules for what is better and when to stop."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from nmt.config import PlateauSchedule, TrainConfig
from nmt.evaluation.likelihood import Likelihood
from nmt.training.update import Update

HIGHER_IS_BETTER = {"bleu": True, "chrf": True, "perplexity": False, "loss": False}
"""The metrics that ``training.metric`` can name."""


def is_better(metric: str, value: float, than: float | None) -> bool:
    """Whether a validation improves on the best before it. A tie does not, and neither does NaN."""
    if math.isnan(value):
        return False
    if than is None:
        return True
    return value > than if HIGHER_IS_BETTER[metric] else value < than


@dataclass
class Interval:
    """Sums since the last log line."""

    updates: int = 0
    skipped: int = 0  # updates with an infinite or NaN gradient
    smoothed: float = 0.0  # summed over target tokens, as is `nll`
    nll: float = 0.0
    tokens: int = 0  # real target tokens
    slots: int = 0  # rows x longest row, source and target: padding is what is not `filled`
    filled: int = 0
    gradient_norm: float = 0.0  # summed over updates
    seconds: float = 0.0

    def values(self) -> dict[str, float]:
        """Means, for ``metrics.jsonl`` and TensorBoard."""
        return {
            "loss": self.smoothed / self.tokens,
            "perplexity": Likelihood(self.nll, self.tokens).perplexity,
            "gradient_norm": self.gradient_norm / self.updates,
            "padding": 1.0 - self.filled / self.slots,
            "skipped": self.skipped,
        }

    def line(self, rate: float) -> str:
        """For people; ``rate`` is the learning rate of the last update."""
        values = self.values()
        return (
            f"loss {values['loss']:.3f} | ppl {values['perplexity']:.2f} | lr {rate:.2e} | "
            f"gradient {values['gradient_norm']:.2f}"
        )


@dataclass
class TrainState:
    """Everything beside parameters, optimizer and random generators; saved with every checkpoint."""

    step: int = 0  # updates made, skipped ones not counted
    epoch: int = 0  # passes over the training data completed
    batch: int = 0  # batches of the current pass consumed
    bad_steps: int = 0  # skipped updates in a row
    tokens: int = 0  # real target tokens trained on
    train_seconds: float = 0.0  # in updates only
    elapsed_seconds: float = 0.0  # in the loop, validation included, over all resumes
    validated: int = 0  # step of the last validation made on schedule
    scored: int = 0  # step of the last validation of any kind
    best: float | None = None  # best value of the metric on schedule: what patience and plateau go by
    bad_validations: int = 0  # on schedule, in a row, without improvement
    plateau_bad: int = 0  # the same since the last cut of the learning rate
    plateau_cuts: int = 0
    optimizer_reset: int | None = None  # step after which the optimizer's moments were forgotten last
    schedule_start: int = 0  # step and
    schedule_epoch: float = 0.0  # passes over the training data after which the schedule began
    best_checkpoint: str | None = None  # what the link `best` points to; may come from a validation off schedule
    best_value: float | None = None
    best_scores: dict[str, Any] = field(default_factory=dict)  # all results of that validation
    interval: Interval = field(default_factory=Interval)

    def count(self, update: Update, seconds: float) -> None:
        """Add an update to the counters. A skipped one leaves only its time and the count of bad ones in a row."""
        interval = self.interval
        self.train_seconds += seconds
        interval.seconds += seconds
        if not update.made:
            self.bad_steps += 1
            interval.skipped += 1
            return
        self.step += 1
        self.bad_steps = 0
        self.tokens += update.tokens
        interval.updates += 1
        interval.smoothed += update.smoothed
        interval.nll += update.nll
        interval.tokens += update.tokens
        interval.slots += update.slots
        interval.filled += update.filled
        interval.gradient_norm += update.gradient_norm

    def observe(self, config: TrainConfig, value: float) -> None:
        """Take note of a validation on schedule: best value, patience, cuts of the learning rate."""
        self.validated = self.step
        if is_better(config.training.metric, value, self.best):
            self.best, self.bad_validations, self.plateau_bad = value, 0, 0
            return
        self.bad_validations += 1
        self.plateau_bad += 1
        schedule = config.optim.schedule
        if isinstance(schedule, PlateauSchedule) and self.plateau_bad >= schedule.patience:
            self.plateau_cuts += 1
            self.plateau_bad = 0

    def improve(self, config: TrainConfig, value: float, checkpoint: str, scores: dict[str, Any]) -> bool:
        """Make a validated checkpoint the best one, if it is; whether it was."""
        if not is_better(config.training.metric, value, self.best_value):
            return False
        self.best_checkpoint, self.best_value, self.best_scores = checkpoint, value, dict(scores)
        return True

    def restart_schedule(self, epochs: float) -> None:
        """Begin warm-up and decay anew after ``epochs`` passes over the training data; patience is given again."""
        self.schedule_start, self.schedule_epoch = self.step, epochs
        self.plateau_cuts = self.plateau_bad = self.bad_validations = 0

    def stop_reason(self, config: TrainConfig, epochs: float, seconds: float) -> str | None:
        """Why the run ends here, naming the key, or None.

        Args:
            config: holds the limits.
            epochs: passes over the training data, with the part of the current one.
            seconds: time in the loop so far.
        """
        limits = config.training
        if limits.max_steps is not None and self.step >= limits.max_steps:
            return f"training.max_steps={limits.max_steps}"
        if limits.max_epochs is not None and epochs >= limits.max_epochs:
            return f"training.max_epochs={limits.max_epochs}"
        if limits.max_minutes is not None and seconds >= 60 * limits.max_minutes:
            return f"training.max_minutes={limits.max_minutes}"
        if limits.patience is not None and self.bad_validations >= limits.patience:
            return f"training.patience={limits.patience} (validations without a better {limits.metric})"
        return None

    def tree(self) -> dict[str, Any]:
        """Plain values, for ``training.pt``."""
        return dataclasses.asdict(self)

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> "TrainState":
        """The inverse of :meth:`tree`."""
        return cls(**{**tree, "interval": Interval(**tree["interval"])})
