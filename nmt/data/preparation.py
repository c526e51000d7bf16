"""From a corpus to a prepared folder: read -> clean -> filter -> subwords -> memory-mapped rows.

Two passes. The first reads every split once from its origin into text files of the folder being built (counting lines,
blank sides and control characters, and hashing); the second trains the subwords on that text, encodes it in chunks and
drops from training what is empty or too long. Memory holds the subword trainer's sample and a chunk, never the corpus.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmt.config import DataConfig
from nmt.data.corpus import Corpus, DataError, Part, TextPair, clean_line, is_blank
from nmt.data.store import SIDES, RowWriter, count_repeats, iter_text, read_text, write_lines
from nmt.data.tokenizer import TokenizerPair, train_tokenizers
from nmt.tokens import UNK

Log = Callable[[str], None]

SAMPLE_SEED = 1
"""Of the sample that subwords are trained on: part of the data, so it does not follow the run's seed."""

_CHUNK = 4096  # pairs


def build(
    config: DataConfig, corpus: Corpus, folder: Path, log: Log, given: TokenizerPair | None = None
) -> dict[str, Any]:
    """Fill ``folder`` and return the report: counts in, out and dropped by reason, overlap, hashes, vocabulary sizes.

    Subwords are trained on the training text as ``config.tokenizer`` says, unless some are ``given``.

    Raises:
        DataError: unreadable text, unequal sides, a split without pairs, an impossible vocabulary.
    """
    clock = _Clock(log)
    splits: dict[str, dict[str, Any]] = {}
    for name, parts in corpus.splits.items():
        splits[name] = _spool(folder, name, parts, getattr(config, "max_pairs", None) if name == "train" else None)
        clock(f"read {name}: {splits[name]['read']:,} pairs")
    sides = [iter_text(folder / f"train.{side}.txt") for side in SIDES]
    tokenizers = given or train_tokenizers(config.tokenizer, sides[0], sides[1], splits["train"]["read"], SAMPLE_SEED)
    tokenizers.save(folder)
    sizes = (tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size)
    clock(
        f"{'given' if given else 'trained'} subwords: {config.tokenizer.kind}, {sizes[0]:,}"
        + (" joint" if tokenizers.joint else f" + {sizes[1]:,} pieces")
    )
    overlap = _Overlap(folder, [name for name in splits if name != "train"])
    for name, counts in splits.items():
        counts.update(_encode(folder, name, tokenizers, config.max_length, overlap))
    for side in SIDES:
        (folder / f"train.{side}.txt").unlink()
    clock("encoded all splits")
    if not splits["train"]["kept"]:
        counts = splits["train"]
        raise DataError(
            f"none of {counts['read']:,} training pairs is left: {counts['dropped']['empty']:,} with an empty side, "
            f"{counts['dropped']['too_long']:,} over data.max_length={config.max_length} subwords"
        )
    return {
        "source": config.source,
        "target": config.target,
        "max_length": config.max_length,
        "origin": corpus.origin,
        "splits": splits,
        "overlap": overlap.counts(),
        "vocabulary": {"source": sizes[0], "target": sizes[1], "joint": tokenizers.joint, "sha256": tokenizers.digest},
    }


class _Clock:
    """Logs a message with the seconds since the one before."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._last = time.monotonic()

    def __call__(self, message: str) -> None:
        now = time.monotonic()
        self._log(f"{message} ({now - self._last:.1f} s)")
        self._last = now


# --- first pass -------------------------------------------------------------------------------------------------------


def _spool(folder: Path, name: str, parts: tuple[Part, ...], most: int | None) -> dict[str, Any]:
    """Write a split's text as read, a line a sentence; returns what was seen."""
    hashes = {side: hashlib.sha256() for side in SIDES}
    pairs, control, blank = 0, 0, 0
    with (
        (folder / f"{name}.source.txt").open("wb") as source_file,
        (folder / f"{name}.target.txt").open("wb") as target_file,
    ):
        for chunk in _chunks(_first(parts, most)):
            hashes["source"].update(write_lines(source_file, (pair.source for pair in chunk)))
            hashes["target"].update(write_lines(target_file, (pair.target for pair in chunk)))
            _write_alignments(folder / f"{name}.alignment", chunk)
            pairs += len(chunk)
            cleaned = [(clean_line(pair.source), clean_line(pair.target)) for pair in chunk]
            control += sum(source[1] + target[1] for source, target in cleaned)
            blank += sum(is_blank(source[0]) or is_blank(target[0]) for source, target in cleaned)
    if not pairs:
        raise DataError(f"{name}: holds no pairs")
    if blank == pairs:
        raise DataError(f"{name}: every one of its {pairs:,} pairs has an empty side")
    return {
        "read": pairs,
        "blank": blank,
        "control_characters": control,
        "sha256": {side: digest.hexdigest() for side, digest in hashes.items()},
    }


def _first(parts: tuple[Part, ...], most: int | None) -> Iterator[TextPair]:
    left = most
    for part in parts:
        pairs = part.read()
        for pair in pairs if left is None or left > 0 or part.to_the_end else ():
            if left is None or left > 0:
                yield pair
                left = left - 1 if left is not None else None
            if left == 0 and not part.to_the_end:
                break
        if isinstance(pairs, Generator):
            pairs.close()


def _chunks(pairs: Iterator[TextPair]) -> Iterator[list[TextPair]]:
    while chunk := list(islice(pairs, _CHUNK)):
        yield chunk


def _write_alignments(path: Path, chunk: list[TextPair]) -> None:
    alignments = [pair.alignment for pair in chunk if pair.alignment is not None]
    assert len(alignments) in (0, len(chunk)), "gold alignments come with all pairs or none"
    if alignments:
        with path.open("ab") as stream:
            write_lines(stream, alignments)


# --- second pass ------------------------------------------------------------------------------------------------------


class _Pairs(NamedTuple):
    """A chunk on its way to the store; equal lengths."""

    texts: list[tuple[str, str]]
    sources: list[list[int]]
    targets: list[list[int]]
    alignments: list[str]  # or none at all

    def keep(self, wanted: list[bool]) -> "_Pairs":
        return _Pairs(
            list(compress(self.texts, wanted)),
            list(compress(self.sources, wanted)),
            list(compress(self.targets, wanted)),
            list(compress(self.alignments, wanted)),
        )


def _encode(folder: Path, name: str, tokenizers: TokenizerPair, max_length: int, overlap: "_Overlap") -> dict[str, Any]:
    """Encode a split's text into rows; only training loses pairs. Returns what was kept and dropped, by reason."""
    training = name == "train"
    dropped: Counter[str] = Counter({"empty": 0, "too_long": 0} if training else {})
    unknown: Counter[str] = Counter(dict.fromkeys(SIDES, 0))
    writers = (
        RowWriter(folder, name, "source", tokenizers.source.vocabulary_size),
        RowWriter(folder, name, "target", tokenizers.target.vocabulary_size),
    )
    alignment_file, keys_file = folder / f"{name}.alignment", folder / f"{name}.keys"
    kept_alignments = folder / f"{name}.alignment.kept"
    kept = 0
    for pairs in _encoded_chunks(folder, name, tokenizers):
        if training:
            pairs = pairs.keep(_training_filter(pairs, max_length, dropped))
            overlap.see(pairs.texts)
        kept += len(pairs.texts)
        for writer, rows, side in zip(writers, (pairs.sources, pairs.targets), SIDES, strict=True):
            writer.write(rows)
            unknown[side] += sum(row.count(UNK) for row in rows)
        with keys_file.open("ab") as stream:
            stream.write(np.array([hash(text) for text in pairs.texts], np.int64).tobytes())
        if pairs.alignments:
            with kept_alignments.open("ab") as stream:
                write_lines(stream, pairs.alignments)
    for writer in writers:
        writer.close()
    if kept_alignments.exists():
        kept_alignments.replace(alignment_file)
    duplicates = count_repeats(keys_file)
    keys_file.unlink()
    return {
        "kept": kept,
        "dropped": dict(dropped),
        "duplicates": duplicates,
        "tokens": {side: writer.tokens for side, writer in zip(SIDES, writers, strict=True)},
        "unknown": dict(unknown),
    }


def _encoded_chunks(folder: Path, name: str, tokenizers: TokenizerPair) -> Iterator[_Pairs]:
    sources, targets = (iter_text(folder / f"{name}.{side}.txt") for side in SIDES)
    path = folder / f"{name}.alignment"
    alignments = iter_text(path) if path.exists() else iter(())
    while source := list(islice(sources, _CHUNK)):
        target = list(islice(targets, _CHUNK))
        yield _Pairs(
            [(clean_line(left)[0], clean_line(right)[0]) for left, right in zip(source, target, strict=True)],
            tokenizers.source.encode_batch(source),
            tokenizers.target.encode_batch(target),
            list(islice(alignments, _CHUNK)),
        )


def _training_filter(pairs: _Pairs, max_length: int, dropped: Counter[str]) -> list[bool]:
    """Which pairs of a chunk training keeps; counts the others by reason. Lengths include EOS (or BOS)."""
    wanted = []
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        empty = not source or not target
        long = max(len(source), len(target)) + 1 > max_length
        dropped["empty"] += empty
        dropped["too_long"] += long and not empty
        wanted.append(not empty and not long)
    return wanted


class _Overlap:
    """How many held-out pairs occur in training as well: same source, or same source and target."""

    def __init__(self, folder: Path, splits: list[str]) -> None:
        self._texts = {
            split: [
                (clean_line(source)[0], clean_line(target)[0])
                for source, target in zip(*(read_text(folder / f"{split}.{side}.txt") for side in SIDES), strict=True)
            ]
            for split in splits
        }
        every = list(chain.from_iterable(self._texts.values()))
        self._wanted: set[object] = {source for source, _ in every if not is_blank(source)}
        self._wanted.update(every)
        self._seen: set[object] = set()

    def see(self, texts: list[tuple[str, str]]) -> None:
        """Take note of training pairs."""
        for text in texts:
            if text[0] in self._wanted:
                self._seen.add(text[0])
                if text in self._wanted:
                    self._seen.add(text)

    def counts(self) -> dict[str, dict[str, int]]:
        """Per held-out split: ``source`` and ``pair``, in held-out pairs."""
        return {
            split: {
                "source": sum(source in self._seen for source, _ in texts),
                "pair": sum(text in self._seen for text in texts),
            }
            for split, texts in self._texts.items()
        }
