"""The checkpoints of one run: which are written, kept, linked to, averaged and gone on from."""

import io
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from nmt import checkpoint
from nmt.checkpoint import CheckpointError
from nmt.config import ConfigError, TrainConfig
from nmt.data.dataset import PreparedData
from nmt.models.base import TranslationModel
from nmt.training.distributed import Processes, stream_seed
from nmt.training.logging import RunLog
from nmt.training.resume import Resets, check_same, due_resets
from nmt.training.state import TrainState


class Keeper:
    """Keeps what is trained in ``checkpoints/`` of the run's folder.

    ``saved`` is the step of the newest checkpoint, or None; ``resets`` is what :meth:`resume` found asked for, of which
    it has left out the optimizer's moments already. Only rank 0 of several processes looks at the folder, but all of
    them save and resume together.
    """

    def __init__(
        self,
        config: TrainConfig,
        prepared: PreparedData,
        model: TranslationModel,
        optimizer: Optimizer,
        log: RunLog,
        processes: Processes,
    ) -> None:
        self.config = config
        self.prepared = prepared
        self.model = model
        self.optimizer = optimizer
        self.log = log
        self.processes = processes
        self.folder = config.run_dir / "checkpoints"
        self.saved: int | None = None
        self.resets = Resets(optimizer=False, schedule=False)
        self._generators: list[dict[str, torch.Tensor]] = []  # of the checkpoint gone on from, by rank
        if processes.is_main:
            checkpoint.clean_up(self.folder)
            self._check_links()

    def _check_links(self) -> None:
        for name in ("last", "best"):
            if (self.folder / name).is_dir() and not (self.folder / name).is_symlink():
                raise CheckpointError(
                    f"{self.folder / name}: a folder where a link should be (copied by a tool that follows links?); "
                    "delete it, or move it away, and run the same command again"
                )

    def save(self, state: TrainState) -> None:
        """Write the checkpoint of this update, move the links, and only then remove what is old.

        No process goes on before all of that is done.

        Raises:
            OSError: it could not be written; the ones before are intact.
        """
        generators = self.processes.gather(_generators(self.model), "saving a checkpoint")
        if self.processes.is_main:
            self._write(state, generators)
        self.saved = state.step
        self.processes.meet("waiting for the checkpoint to be written")

    def _write(self, state: TrainState, generators: list[dict[str, torch.Tensor]]) -> None:
        folder = checkpoint.step_folder(self.folder, state.step)
        training = {
            "state": state.tree(),
            "optimizer": self.optimizer.state_dict(),
            "generators": generators,
            "contents": self.prepared.contents,
        }
        tokenizers = self.prepared.tokenizers
        checkpoint.save(folder, self.model.state_dict(), tokenizers, self.config, state.step, training=training)
        checkpoint.link(self.folder, "last", folder)
        self.link_best(state)
        self._prune(state)

    def link_best(self, state: TrainState) -> None:
        """Point ``best`` to where the state says it is."""
        if state.best_checkpoint is not None and (self.folder / state.best_checkpoint).is_dir():
            checkpoint.link(self.folder, "best", self.folder / state.best_checkpoint)

    def save_average(self, model: TranslationModel, state: TrainState) -> None:
        """Write averaged weights as ``checkpoints/average``."""
        if not self.processes.is_main:
            return
        folder = self.folder / checkpoint.AVERAGE
        checkpoint.save(folder, model.state_dict(), self.prepared.tokenizers, self.config, state.step)

    def newest(self, number: int, state: TrainState) -> list[Path]:
        """The newest readable checkpoints on schedule and the last one, ``number`` in all, oldest first."""
        last = checkpoint.step_folder(self.folder, state.step)
        folders = [*(folder for folder in self._on_schedule(state) if folder != last), last]
        return [folder for folder in folders if _is_readable(folder)][-number:]

    def _on_schedule(self, state: TrainState) -> list[Path]:
        """Checkpoints at multiples of ``validate_every`` up to now, oldest first; the others were made by a stop."""
        every = self.config.training.validate_every
        steps = [(checkpoint.step_of(folder), folder) for folder in checkpoint.step_folders(self.folder)]
        return [folder for step, folder in steps if step % every == 0 and step <= state.step]

    def _prune(self, state: TrainState) -> None:
        """Keep the newest ``keep_last`` on schedule, the last one, and the best one."""
        keep = {folder.name for folder in self._on_schedule(state)[-self.config.training.keep_last :]}
        keep |= {checkpoint.step_folder(self.folder, state.step).name, str(state.best_checkpoint)}
        for folder in checkpoint.step_folders(self.folder):
            if checkpoint.step_of(folder) <= state.step and folder.name not in keep:
                checkpoint.remove(folder)

    def resume(self) -> TrainState:
        """Load the newest checkpoint that can be read, aloud if others had to be passed over; a new state without any.

        All processes begin with what rank 0 has found, parameters included.

        Raises:
            ConfigError: it is of other data, of another tokenizer, or was written with another configuration.
            CheckpointError: there are checkpoints, but none can be read.
        """
        return self._share(self._newest_state() if self.processes.is_main else TrainState())

    def _share(self, state: TrainState) -> TrainState:
        """Give every process the state, parameters, optimizer and random generators that rank 0 has."""
        if self.processes.size > 1:
            what = "handing out the parameters to begin with"
            data = self.processes.broadcast(self._packed(state) if self.processes.is_main else b"", what)
            if not self.processes.is_main:
                state = self._unpack(data)
        self._restore_generators(state.step)
        return state

    def _packed(self, state: TrainState) -> bytes:
        buffer = io.BytesIO()
        tree = {
            "state": state.tree(),
            "saved": self.saved,
            "resets": tuple(self.resets),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generators": self._generators,
        }
        torch.save(tree, buffer)
        return buffer.getvalue()

    def _unpack(self, data: bytes) -> TrainState:
        tree: dict[str, Any] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        self.model.load_state_dict(tree["model"])
        self.optimizer.load_state_dict(tree["optimizer"])
        self.saved, self._generators = tree["saved"], tree["generators"]
        self.resets = Resets(*tree["resets"])
        return TrainState.from_tree(tree["state"])

    def _restore_generators(self, step: int) -> None:
        """Go on with this process's stream of random numbers; one that was not there before begins a new one."""
        stored, size = self._generators, self.processes.size
        if not stored:
            return
        if len(stored) != size:
            self.log.say(
                f"warning: {_processes(len(stored))} wrote this checkpoint and {_processes(size)} will go on from it: "
                "updates stay what they are, but dropout draws other numbers, so that from here on the run is not bit "
                "for bit the one it would have been"
            )
        if self.processes.rank >= len(stored):
            torch.manual_seed(stream_seed(self.config.seed, self.processes.rank, step))
            return
        states = stored[self.processes.rank]
        torch.set_rng_state(states["cpu"])
        device = next(self.model.parameters()).device
        if device.type == "cuda" and "cuda" in states:
            torch.cuda.set_rng_state(states["cuda"], device)

    def _newest_state(self) -> TrainState:
        folders = checkpoint.step_folders(self.folder)
        for folder in reversed(folders):
            try:
                state, changed = self._restore(folder)
            except CheckpointError as error:
                self.log.say(f"warning: {error}; falling back to the checkpoint before it")
                continue
            self.saved = state.step
            checkpoint.link(self.folder, "last", folder)
            self.link_best(state)
            self.log.say(f"resuming {self.folder.parent} after update {state.step}")
            for line in changed:
                self.log.say(line)
            return state
        if folders:
            raise CheckpointError(
                f"{self.folder}: none of its {len(folders)} checkpoints can be read; delete the folder to start over"
            )
        return TrainState()

    def _restore(self, folder: Path) -> tuple[TrainState, list[str]]:
        """The state of a checkpoint, put into place, and a line for every key that has another value now."""
        stored = checkpoint.load_config(folder)
        weights, facts = checkpoint.load_weights(folder)
        training = checkpoint.load_training(folder)
        try:
            contents, moments, generators = training["contents"], training["optimizer"], training["generators"]
            state = TrainState.from_tree(training["state"])
            if not isinstance(generators, list):
                raise TypeError("generators: expected one state per process")
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{folder / checkpoint.TRAINING_FILE}: not of this program ({error})") from error
        checkpoint.load_tokenizers(folder, facts)
        if changed := _changed_text(contents, self.prepared):
            raise ConfigError(
                f"{self.folder.parent}: the data have changed since this run began: {'; '.join(changed)}. "
                "Put the old text back, or set another tag"
            )
        if facts["tokenizers"] != self.prepared.tokenizers.digest:
            raise ConfigError(
                f"{self.folder.parent}: the tokenizer has changed since this run began; give it another tag"
            )
        changed = check_same(stored, self.config, self.folder.parent)
        self.resets = due_resets(stored, self.config)
        checkpoint.load_into(self.model, weights, folder)
        if not self.resets.optimizer:
            self.optimizer.load_state_dict(moments)
        self._generators = generators
        return state, changed


def _processes(number: int) -> str:
    return f"{number} process" if number == 1 else f"{number} processes"


def _is_readable(folder: Path) -> bool:
    """False for a checkpoint that resuming has passed over as damaged."""
    try:
        checkpoint.load_weights(folder)
    except CheckpointError:
        return False
    return True


def _changed_text(before: dict[str, dict[str, str]], prepared: PreparedData) -> list[str]:
    """The split and side of every text that is another one now, with the files it was read from."""
    origin = prepared.report["origin"].get("files", {})
    return [
        f"{split} {side} ({', '.join(origin.get(split, [])) or 'not from files'})"
        for split, sides in prepared.contents.items()
        for side, digest in sides.items()
        if before[split][side] != digest
    ]


def _generators(model: TranslationModel) -> dict[str, torch.Tensor]:
    """States of the random generators that dropout draws from."""
    device = next(model.parameters()).device
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states
