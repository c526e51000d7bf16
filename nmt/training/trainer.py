"""The one training loop: updates, validations, checkpoints, and an exact resume."""

import copy
import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt import checkpoint
from nmt.averaging import average
from nmt.config import ConfigError, TrainConfig
from nmt.data.batch import Group
from nmt.data.dataset import PreparedData
from nmt.device import give_back_freed_memory, keep_freed_memory, resolve_precision
from nmt.models import build, parameter_count
from nmt.models.base import TranslationModel
from nmt.training.checks import check_beginning, check_config
from nmt.training.distributed import Processes, connect, stream_seed
from nmt.training.keeper import Keeper
from nmt.training.loading import training_loader, validation_loader
from nmt.training.logging import RunLog, SilentLog
from nmt.training.optim import build_optimizer, learning_rate
from nmt.training.resume import apply_resets, lock, reset_lines
from nmt.training.signals import Interrupted, Signals
from nmt.training.start import write_start
from nmt.training.state import Interval
from nmt.training.summary import SUMMARY_FILE, introduction, write_summary
from nmt.training.together import common_precision, prepare_together, start_together
from nmt.training.update import Update, Updater
from nmt.training.validation import Share, Validation, attention_figure, combine, validate


class TrainingError(ValueError):
    """Training cannot go on; the message says why and what to do."""


def train(config: TrainConfig) -> None:
    """Prepare the data and train: a new run, or the rest of one that began in the same folder.

    Started by torchrun, this is one of several processes that do so together.

    Raises:
        ConfigError: a value is out of range, or differs from what the run in this folder began with, or the model is
            not that of ``init_from``.
        ValueError: something about the data is wrong.
        ProcessLostError: another process ended or stopped answering.
        TrainingError, Interrupted, OSError: see :meth:`Trainer.run`.
    """
    check_beginning(config)
    folder = config.run_dir
    with connect(config.training.device, config.training.timeout) as processes:
        main = processes.is_main
        with lock(folder) if main else nullcontext(), RunLog(folder) if main else SilentLog() as log:
            # Rank 0 may begin: only now is it worth while for the others to prepare, or to wait for who prepares.
            start = start_together(config, processes)
            check_config(start.config)
            for line in start.lines:
                log.say(line)
            prepared = prepare_together(start.config.data, start.tokenizers, processes, log.say)
            trainer = Trainer(start.config, prepared, log, processes, start.initial)
            if main:  # after the checks of what is resumed: a refused resume leaves the folder as it was
                write_start(folder, start.config, prepared)
            trainer.run()


class Trainer:
    """One run: from nothing or from its newest good checkpoint to its end.

    Args:
        config: checked already (:func:`nmt.training.checks.check_config`).
        prepared: the data and the tokenizers.
        log: where to write things down.
        processes: that train together.
        initial: what a new run's parameters are taken from (of rank 0 alone); None: they are drawn.

    Raises:
        ConfigError: the checkpoints in the folder are of other data.
        CheckpointError: there are checkpoints, and all of them are damaged.
    """

    def __init__(
        self,
        config: TrainConfig,
        prepared: PreparedData,
        log: RunLog,
        processes: Processes,
        initial: checkpoint.Checkpoint | None = None,
    ) -> None:
        self.config = config
        self.prepared = prepared
        self.log = log
        self.processes = processes
        training = config.training
        self.device = processes.device(training.device)
        self.precision = common_precision(resolve_precision(training.precision, self.device), processes)
        if self.device.type == "cpu":
            keep_freed_memory()
        source, target = prepared.tokenizers
        torch.manual_seed(stream_seed(config.seed, processes.rank, step=0))  # of the generators that dropout draws from
        self.model = build(config.model, source.vocabulary_size, target.vocabulary_size, config.seed).to(self.device)
        optimizer = build_optimizer(self.model, config.optim)
        self.updater = Updater(
            self.model,
            optimizer,
            config.optim,
            self.device,
            self.precision,
            processes,
            use_tf32=training.tf32,
            compiled=training.compile,
        )
        self.loader = training_loader(config, prepared)
        self._batch_counts: dict[int, int] = {}
        self.keeper = Keeper(config, prepared, self.model, optimizer, log, processes)
        if initial is not None:
            checkpoint.load_into(self.model, initial.model.state_dict(), initial.path)
        self.state = self.keeper.resume()
        if config.init_from is not None and self.keeper.saved is None:
            self.state.validated = self.state.scored = -1  # validate before the first update: the figures to beat
        apply_resets(self.keeper.resets, self.state, self._epochs())
        self.signals = Signals()
        self.started = time.perf_counter() - self.state.elapsed_seconds

    # --- the run ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Train until a limit says stop, then validate, average and sum up.

        Raises:
            Interrupted: Ctrl-C or SIGTERM came; the state is saved and the same command goes on from it.
            TrainingError: too many updates in a row had no finite gradient.
            OSError: a checkpoint could not be written; the ones before it are intact.
            ProcessLostError: another process ended or stopped answering.
        """
        self._introduce()
        summary = self.config.run_dir / SUMMARY_FILE
        _, reason = self._agree()
        if self.processes.broadcast(reason is not None and summary.exists(), "looking whether the run is finished"):
            self.log.say(f"finished already at update {self.state.step} ({reason}); nothing to do")
            return
        if self.processes.is_main:
            summary.unlink(missing_ok=True)
        for line in reset_lines(self.config, self.keeper.resets, self.state):
            self.log.say(line)
        again = {"validation"} if self.state.scored != self.state.step else set()
        self.log.rewind(self.state.step, again | ({"average"} if reason is not None else set()))
        with self.signals:
            try:
                reason = self._train()
                self.log.say(f"stop at update {self.state.step}: {reason}")
                self._finish(reason)
            except Interrupted as interrupted:
                self.log.stop_bar()
                if self.keeper.saved != self.state.step and self.state.step > 0:
                    self._save()
                saved = (
                    "nothing to save yet" if self.keeper.saved is None else "saved: the same command resumes this run"
                )
                self.log.say(f"{interrupted} at update {self.state.step}, {saved}")
                raise

    def _train(self) -> str:
        """Updates, and validations on schedule, until there is a reason to stop."""
        self.model.train()
        self.log.start_bar(self.state.step, self._planned_updates())
        for group in self._groups():
            due = self.state.step % self.config.training.validate_every == 0
            if due and self.state.validated != self.state.step:
                self._validate(on_schedule=True)
            signal, reason = self._agree()
            if reason is not None:
                self.log.stop_bar()
                return reason
            if signal:
                raise Interrupted(signal)
            self._update(group)
        raise AssertionError("the groups never end")

    def _agree(self) -> tuple[int, str | None]:
        """What all processes go by: a signal that reached any of them (0: none), and a reason to stop (None: none).

        Time is that of rank 0; all else that the reason is made of is the same in every process.
        """
        elapsed = self._elapsed() if self.processes.is_main else 0.0
        signal, seconds = self.processes.highest(self.signals.received, elapsed)
        return int(signal), self.state.stop_reason(self.config, self._epochs(), seconds)

    def _groups(self) -> Iterator[Group]:
        """What one update after the other is made from, without end."""
        start, accumulate = self.state.batch, self.config.training.accumulate
        for epoch in count(self.state.epoch):
            if self._batches(epoch) == 0:
                raise ConfigError("data.max_length, training.batch_tokens: no training pair is left to train on")
            yield from self.loader.groups(epoch, start, accumulate, self.processes.rank, self.processes.size)
            start = 0

    def _update(self, group: Group) -> None:
        started = time.perf_counter()
        state = self.state
        step, epochs = state.step + 1 - state.schedule_start, self._epochs() - state.schedule_epoch
        rate = learning_rate(self.config.optim, step, epochs, state.plateau_cuts)
        update = self.updater.update(group, rate)
        state.batch += group.number
        if state.batch >= self._batches(state.epoch):
            state.epoch, state.batch = state.epoch + 1, 0
        seconds = time.perf_counter() - started
        state.count(update, seconds)
        if not update.made:
            self._skipped(update)
            return
        self.log.advance_bar(self._minutes_left())
        if state.step % self.config.training.log_every == 0:
            self._log_interval(rate)

    def _skipped(self, update: Update) -> None:
        state, limit = self.state, self.config.training.max_bad_steps
        self.log.say(
            f"update {state.step + 1} skipped: gradient norm {update.gradient_norm} ({state.bad_steps} in a row)"
        )
        if state.bad_steps >= limit:
            last = checkpoint.follow(self.keeper.folder, "last")
            raise TrainingError(
                f"training.max_bad_steps={limit}: so many updates in a row, after update {state.step}, had an infinite "
                f"or NaN gradient. The last good checkpoint is {last or 'none yet'}. Begin a new run with a lower "
                "optim.optimizer.learning_rate, a longer warm-up, or training.precision=fp32"
            )

    def _epochs(self) -> float:
        """Passes over the training data so far, with the part of the current one."""
        return self.state.epoch + self.state.batch / max(1, self._batches(self.state.epoch))

    def _batches(self, epoch: int) -> int:
        """Batches of an epoch; counting them means sorting the whole split, so it is done once."""
        if epoch not in self._batch_counts:
            self._batch_counts = {epoch: self.loader.batches_in_epoch(epoch)}
        return self._batch_counts[epoch]

    def _planned_updates(self) -> int | None:
        """Updates until ``max_steps`` or ``max_epochs``, whichever is first: what a time left is reckoned from."""
        training = self.config.training
        limits = [training.max_steps] if training.max_steps is not None else []
        if training.max_epochs is not None:
            limits.append(math.ceil(training.max_epochs * math.ceil(self._batches(0) / training.accumulate)))
        return min(limits, default=None)

    def _minutes_left(self) -> str:
        """Beside the time left that a progress bar reckons from updates: the time that ``max_minutes`` still allows."""
        limit = self.config.training.max_minutes
        return "" if limit is None else f"at most {max(0.0, limit - self._elapsed() / 60):.0f} min left"

    def _elapsed(self) -> float:
        return time.perf_counter() - self.started

    # --- validation and checkpoints -----------------------------------------------------------------------------------

    def _validate(self, on_schedule: bool) -> None:
        """Validate, save, and point ``best`` here if this is better.

        A validation off schedule (the last one of a run that stops between two) leaves patience and plateau alone, so
        that a run that goes on from here is the same as one that never stopped.
        """
        result = self._score("validation", self.model)
        value = result.metric(self.config.training.metric)
        self.state.scored = self.state.step
        if on_schedule:
            self.state.observe(self.config, value)
        name = checkpoint.step_folder(self.keeper.folder, self.state.step).name
        self.state.improve(self.config, value, name, result.values())
        self._save()

    def _score(self, event: str, model: TranslationModel) -> Validation:
        """Validate and write the result down. A signal breaks it off, in every process if it reaches one."""
        step = self.state.step
        result = self._validated_together(model)
        times = {"seconds": result.seconds, "minutes": self._elapsed() / 60}
        self.log.record(event, step, {"epoch": self._epochs(), **result.values()}, times)
        sample = result.samples[0]
        self.log.say(f"{event} {step} | {result.line()}")
        self.log.say(f"  source:      {sample.source}\n  reference:   {sample.reference}\n  translation: {sample.text}")
        self.log.text(f"{event}/samples", result.markdown(), step)
        if model.attends and self.processes.is_main:
            figure = attention_figure(model, self.prepared, sample, self.device)
            self.log.figure(f"{event}/attention", figure, step)
        return result

    def _validated_together(self, model: TranslationModel) -> Validation:
        """Every process makes its share; all go on with what rank 0 makes of the shares."""
        started = time.perf_counter()
        share: Share | None = None
        signal, _ = self._agree()
        if not signal:
            try:
                with self.signals.breaking_off():
                    share = validate(model, self.prepared, self.config, self.device, self.processes)
            except Interrupted:
                pass  # not before the others know
        shares = self.processes.gather(share, "validating")
        whole = [each for each in shares if each is not None]
        if len(whole) < len(shares):
            signal, _ = self._agree()
            raise Interrupted(signal)
        result: Validation | None = None
        if self.processes.is_main:
            result = combine(whole, self.prepared, self.config, time.perf_counter() - started)
        result = self.processes.broadcast(result, "scoring the validation")
        assert result is not None
        return result

    def _save(self) -> None:
        self.state.elapsed_seconds = self._elapsed()
        self.keeper.save(self.state)

    def _finish(self, reason: str) -> None:
        """The last validation, the average, the summary."""
        if self.state.scored != self.state.step:
            self._validate(on_schedule=False)
        self._average()
        self._summarise(reason)

    def _average(self) -> None:
        """Average the newest checkpoints, validate, keep; ``best`` points there if that is better than all before."""
        training, state = self.config.training, self.state
        weights, folders = self.processes.broadcast(self._averaged(), "averaging checkpoints")
        if len(folders) < 2:
            return
        model = copy.deepcopy(self.model)
        checkpoint.load_into(model, weights, folders[-1])
        self.log.say(f"average of {len(folders)} checkpoints: {', '.join(folder.name for folder in folders)}")
        result = self._score("average", model)
        earlier_is_best = state.best_checkpoint == checkpoint.AVERAGE  # made when this run ended before and went on
        better = state.improve(self.config, result.metric(training.metric), checkpoint.AVERAGE, result.values())
        if better or not earlier_is_best:
            self.keeper.save_average(model, state)
        if better:
            self._save()  # once more, so that a run that goes on knows its best checkpoint

    def _averaged(self) -> tuple[dict[str, Tensor], list[Path]]:
        """The average of the newest checkpoints and what it is made of; rank 0 alone looks at the folder."""
        number = self.config.training.average_last
        folders = self.keeper.newest(number, self.state) if number and self.processes.is_main else []
        return (average(folders) if len(folders) > 1 else {}), folders

    # --- what is written down -----------------------------------------------------------------------------------------

    def _introduce(self) -> None:
        lines = introduction(self.config, self.prepared, self.model, self.device, self.precision, self.processes.size)
        for line in lines:
            self.log.say(line)
        for warning in self.loader.warnings + validation_loader(self.config, self.prepared).warnings:
            self.log.say(f"warning: {warning}")

    def _log_interval(self, rate: float) -> None:
        state, interval = self.state, self.state.interval
        values = {"epoch": self._epochs(), "learning_rate": rate, "tokens": state.tokens, **interval.values()}
        speed, minutes = interval.tokens / max(interval.seconds, 1e-9), self._elapsed() / 60
        self.log.record("train", state.step, values, {"tokens_per_second": speed, "minutes": minutes})
        self.log.say(
            f"update {state.step} | epoch {values['epoch']:.2f} | {interval.line(rate)} | "
            f"{speed:,.0f} tokens/s | padding {values['padding']:.1%} | {minutes:.1f} min"
        )
        state.interval = Interval()
        if self.device.type == "cpu":
            give_back_freed_memory()

    def _summarise(self, reason: str) -> None:
        if not self.processes.is_main:
            return
        state = self.state
        facts: dict[str, Any] = {
            "data": self.config.data.name,
            "model": self.config.model.name,
            "seed": self.config.seed,
            "parameters": parameter_count(self.model),
            "steps": state.step,
            "epochs": self._epochs(),
            "minutes": self._elapsed() / 60,
            "stopped_by": reason,
            "target_tokens": state.tokens,
            "target_tokens_per_second": state.tokens / max(state.train_seconds, 1e-9),  # of updates, nothing else
            "best": {"checkpoint": state.best_checkpoint, "metric": self.config.training.metric, **state.best_scores},
            "precision": self.precision,
            "device": str(self.device),
            "processes": self.processes.size,
            "fingerprint": self.prepared.fingerprint,
        }
        write_summary(self.config.run_dir, facts, self.device)
        best = f"{self.config.training.metric} {state.best_value}" if state.best_value is not None else "none"
        self.log.say(
            f"done: {state.step} updates, {facts['epochs']:.2f} epochs, {facts['minutes']:.1f} min, "
            f"{facts['target_tokens_per_second']:,.0f} target tokens/s; best {state.best_checkpoint} ({best})"
        )
