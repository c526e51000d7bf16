"""From a corpus to a prepared folder: read -> clean -> filter -> subwords -> memory-mapped rows.

The held-out sets come first and are kept as they are. The training text is read once into a scratch folder, cleaned and
filtered on the way (``training_text``); the subwords are trained on what is left; then that is encoded, and loses what
is too long. Memory holds the subword trainer's sample and a few chunks, never the corpus; what is done with a chunk is
done in other processes, and the result does not depend on how many there are.
"""

import shutil
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from nmt.config import DataConfig, DemoData, FilterConfig
from nmt.data.cleaning import Cleaner, Comparable, HeldOut
from nmt.data.corpus import Corpus, DataError, Part
from nmt.data.encoding import Encoder
from nmt.data.filters import Filters, describe
from nmt.data.held_out import HeldOutSplit, Overlap, spool
from nmt.data.progress import Clock, Log
from nmt.data.tokenizer import TokenizerPair, train_tokenizers
from nmt.data.training_rows import TrainingRows, Wants, write_rows
from nmt.data.training_text import TrainingText, gather

SAMPLE_SEED = 1
"""Of the sample that subwords are trained on: part of the data, so it does not follow the run's seed."""


def build(
    config: DataConfig, corpus: Corpus, folder: Path, log: Log, given: TokenizerPair | None = None
) -> dict[str, Any]:
    """Fill ``folder`` and return the report: counts in, out and dropped by reason, overlap, hashes, vocabulary sizes.

    Subwords are trained on the training text as ``config.tokenizer`` says, unless some are ``given``.

    Raises:
        DataError: unreadable text, unequal sides, a split without pairs, an impossible vocabulary.
        OSError: no room on the disk, or one of the processes was killed.
    """
    clock = Clock(log)
    scratch = folder / "scratch"
    scratch.mkdir()
    plan = _Plan(config)
    comparable = Comparable(config.tokenizer.normalization, given)
    held_out = {
        name: spool(folder, name, parts, comparable) for name, parts in corpus.splits.items() if name != "train"
    }
    for name, split in held_out.items():
        clock(f"read {name}: {split.pairs:,} pairs")
    text = _gather(plan, scratch, corpus.splits["train"], comparable, held_out)
    clock(f"read train: {text.read:,} pairs, of which {text.used:,} are used")
    if not text.used:
        raise plan.nothing_left(text.read, text.dropped | Counter(duplicate=text.repeats))
    tokenizers = given or train_tokenizers(
        config.tokenizer, text.lines("source"), text.lines("target"), text.used, SAMPLE_SEED
    )
    tokenizers.save(folder)
    sizes = (tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size)
    clock(
        f"{'given' if given else 'trained'} subwords: {config.tokenizer.kind}, {sizes[0]:,}"
        + (" joint" if tokenizers.joint else f" + {sizes[1]:,} pieces")
    )
    overlap = Overlap(comparable)
    rows = write_rows(folder, text, corpus.splits["train"], Encoder(tokenizers, config.max_length), overlap, plan.wants)
    shutil.rmtree(scratch)
    for part in rows.parts:
        if part.first == part.end:
            log(f"WARNING: {part.name}: none of its pairs is trained on{plan.first_pairs}")
    encoder = Encoder(tokenizers, None)
    others = {name: split.encode(encoder) for name, split in held_out.items()}
    clock("encoded all splits")
    stages = _stages(text, rows)
    dropped = dict.fromkeys(plan.words, 0)
    for stage in stages:
        for reason, count in stage["dropped"].items():
            dropped[reason] = dropped.get(reason, 0) + count
    if not rows.kept:
        raise plan.nothing_left(text.read, dropped)
    training = {
        "read": text.read,
        "kept": rows.kept,
        "dropped": dropped,
        "held_out": dict(text.held_out),
        "duplicates": rows.repeats,
        "blank": text.blank,
        "control_characters": text.control,
        "tokens": rows.tokens,
        "unknown": rows.unknown,
        "sha256": text.sha256,
    }
    return {
        "source": config.source,
        "target": config.target,
        "max_length": config.max_length,
        "origin": corpus.origin,
        "splits": {"train": training} | others,
        "stages": stages,
        "reasons": plan.words,
        "parts": [{"name": part.name, "weight": part.weight, "rows": [part.first, part.end]} for part in rows.parts],
        "overlap": {name: overlap.counts(split.keys) for name, split in held_out.items()},
        "vocabulary": {"source": sizes[0], "target": sizes[1], "joint": tokenizers.joint, "sha256": tokenizers.digest},
    }


def _stages(text: TrainingText, rows: TrainingRows) -> list[dict[str, Any]]:
    """What went into each stage of training, what came out of it, and why not the rest."""
    filtered = {reason: count for reason, count in text.dropped.items() if reason != "held_out"}
    steps: list[tuple[str, Mapping[str, int]]] = [
        ("filters", filtered),
        ("held-out text", {"held_out": text.dropped["held_out"]}),
        ("duplicates", {"duplicate": text.repeats if text.duplicates != "keep" else 0}),
        ("sample", {"not_drawn": text.not_drawn}),
        ("length", rows.dropped),
    ]
    stages = []
    left = text.read
    for name, dropped in steps:
        before = left
        left -= sum(dropped.values())
        found = {reason: count for reason, count in sorted(dropped.items()) if count}
        stages.append({"stage": name, "in": before, "out": left, "dropped": found})
    assert left == rows.kept
    return stages


NO_FILTERS = FilterConfig(
    max_words=None,
    max_ratio=None,
    max_word_length=None,
    identical=False,
    duplicates="keep",
    held_out="keep",
    foreign_letters=None,
    numbers=False,
    language=False,
    quarantine=False,
)
"""Of data that has no such key: the demo, which makes what it is asked for."""


class _Plan:
    """What the configuration asks for, the same for every kind of data; why pairs may be dropped, in words."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        if isinstance(config, DemoData):
            self.filters, self.max_pairs, self.sample_seed = NO_FILTERS, None, None
        else:
            self.filters, self.max_pairs, self.sample_seed = config.filters, config.max_pairs, config.sample_seed
        self.wants = Wants(self.filters.quarantine, config.tokenizer.subword_regularization is not None)
        self.first_pairs = ""  # what to say of text that training gets nothing of
        if self.max_pairs is not None and self.sample_seed is None:
            self.first_pairs = "; data.max_pairs takes the first ones, data.sample_seed=1 draws them from all over"
        by = {"pair": "pair", "source": "source", "target": "target", "either": "source or target"}
        self.words = describe(self.filters)
        if self.filters.held_out != "keep":
            self.words["held_out"] = f"{by[self.filters.held_out]} in validation or test"
        if self.filters.duplicates != "keep":
            self.words["duplicate"] = f"{by[self.filters.duplicates]} of an earlier one"
        if self.max_pairs is not None and self.sample_seed is not None:
            self.words["not_drawn"] = f"not among the {self.max_pairs:,} drawn"
        self.words["too_long"] = f"over {config.max_length} subwords"

    def nothing_left(self, read: int, dropped: Mapping[str, int]) -> DataError:
        """The error when the filters, or the limit of the length, leave nothing to train on."""
        reasons = ", ".join(
            f"{self.words.get(reason, reason)}: {count:,}" for reason, count in dropped.items() if count
        )
        return DataError(
            f"none of {read:,} training pairs is left; {reasons} (data.filters and data.max_length decide)"
        )


def _gather(
    plan: _Plan, scratch: Path, parts: tuple[Part, ...], comparable: Comparable, held_out: dict[str, HeldOutSplit]
) -> TrainingText:
    filters = plan.filters
    cleaner = Cleaner(
        Filters(filters, plan.config.source, plan.config.target),
        comparable,
        HeldOut(chain.from_iterable(split.keys for split in held_out.values())),
        filters.held_out,
        filters.duplicates,
        filters.quarantine,
    )
    text = gather(scratch, parts, cleaner, filters.duplicates, filters.quarantine, plan.max_pairs, plan.sample_seed)
    if not text.read:
        raise DataError("train: holds no pairs")
    if text.blank == text.read:
        raise DataError(f"train: every one of its {text.read:,} pairs has an empty side")
    return text
