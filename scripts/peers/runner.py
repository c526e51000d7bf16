"""Run one toolkit's own training with a clock on it; started by ``compare_peers.py`` inside that toolkit's environment.

    python runner.py joeynmt|opennmt|nmt LOG THREADS ARGUMENTS...

ARGUMENTS go to the toolkit's training command. Every update of the optimizer becomes a line of JSON in LOG.RANK: when
it ended, how many real target tokens (EOS counted, BOS and padding not) it was made of, in how many places of the
padded target table, and how many of them were unknown words (none, if all sides read the same subwords). All toolkits
are counted by the same few lines; nothing of theirs is changed, but what is said in the functions below.
"""

import json
import os
import runpy
import sys
import time
import types
from typing import Any

sys.path[0] = os.getcwd()  # not this folder: its modules are not meant for the toolkit

import torch  # noqa: E402
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook  # noqa: E402


class Clock:
    """Counts the batches of an update, and writes the update down when the optimizer has made it."""

    def __init__(self, path: str, threads: int) -> None:
        self._file = open(path, "w", encoding="utf-8", buffering=1)  # noqa: SIM115 (as long as the process)
        self._known_parameters = False
        self._counts = {"tokens": 0, "slots": 0, "unknown": 0}
        torch.set_num_threads(threads)
        niceness = os.nice(0) if hasattr(os, "nice") else 0
        self._write({"pid": os.getpid(), "threads": torch.get_num_threads(), "niceness": niceness})
        register_optimizer_step_post_hook(self._made)

    def count(self, target: torch.Tensor, pad: int, unknown: int) -> None:
        """One batch: ``target`` [batch, tgt_len] is what the model is to predict, padded."""
        self._counts["tokens"] += int(target.ne(pad).sum())
        self._counts["slots"] += target.numel()
        self._counts["unknown"] += int(target.eq(unknown).sum())

    def _made(self, optimizer: Optimizer, *_: Any) -> None:
        now = time.monotonic()  # one clock for all processes of a machine
        if not self._known_parameters:
            unique = {id(p): p.numel() for group in optimizer.param_groups for p in group["params"]}
            self._write({"parameters": sum(unique.values())})
            self._known_parameters = True
        self._write({"time": now, **self._counts})
        self._counts = dict.fromkeys(self._counts, 0)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")


def run_joeynmt(clock: Clock, arguments: list[str]) -> None:
    """JoeyNMT. It drops attention weights as it drops all else, without a switch of its own; the others are run without
    that (it is slow on a CPU), so here it is taken away."""
    import joeynmt.training  # type: ignore[import-not-found]
    import joeynmt.transformer_layers  # type: ignore[import-not-found]

    step, attention = joeynmt.training.TrainManager._train_step, joeynmt.transformer_layers.MultiHeadedAttention
    build = attention.__init__

    def counted(manager: Any, batch: Any) -> Any:
        clock.count(batch.trg, manager.model.pad_index, manager.model.unk_index)
        return step(manager, batch)

    def without_dropout(layer: Any, *args: Any, **kwargs: Any) -> None:
        build(layer, *args, **kwargs)
        layer.dropout.p = 0.0

    joeynmt.training.TrainManager._train_step = counted
    attention.__init__ = without_dropout
    sys.argv = ["joeynmt", "train", *arguments]
    runpy.run_module("joeynmt", run_name="__main__")


def run_opennmt(clock: Clock, arguments: list[str]) -> None:
    """OpenNMT-py. It imports all of its text transforms; what three of them need, none of them used here, is replaced
    by empty modules."""
    for name in ("fasttext", "ahocorasick", "spacy"):
        sys.modules.setdefault(name, types.ModuleType(name))
    import onmt.bin.train  # type: ignore[import-not-found]
    from onmt.trainer import Trainer  # type: ignore[import-not-found]

    accumulate = Trainer._gradient_accumulation

    def counted(trainer: Any, batches: Any, *args: Any) -> Any:
        for batch in batches:
            clock.count(batch["tgt"][:, 1:, 0], trainer.train_loss.padding_idx, 0)  # its vocabulary begins with <unk>
        return accumulate(trainer, batches, *args)

    Trainer._gradient_accumulation = counted
    sys.argv = ["onmt_train", *arguments]
    onmt.bin.train.main()


def run_nmt(clock: Clock, arguments: list[str]) -> None:
    """This project."""
    from nmt.tokens import PAD, UNK
    from nmt.training.update import Updater

    backward = Updater._backward

    def counted(updater: Any, batch: Any, *args: Any) -> Any:
        clock.count(batch.target_out, PAD, UNK)
        return backward(updater, batch, *args)

    Updater._backward = counted  # type: ignore[method-assign, assignment]
    sys.argv = ["nmt.train", *arguments]
    runpy.run_module("nmt.train", run_name="__main__", alter_sys=True)


RUN = {"joeynmt": run_joeynmt, "opennmt": run_opennmt, "nmt": run_nmt}


if __name__ == "__main__":
    toolkit, log, threads, *rest = sys.argv[1:]
    RUN[toolkit](Clock(f"{log}.{os.environ.get('RANK', '0')}", int(threads)), rest)
