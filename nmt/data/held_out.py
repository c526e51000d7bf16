"""Validation and test: stored as they are read, encoded, never filtered; how much of them training has seen."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from nmt.data.cleaning import Comparable, Keys, Passage
from nmt.data.corpus import DataError, Part, TextPair, clean_line, is_blank
from nmt.data.duplicates import key
from nmt.data.encoding import Encoder
from nmt.data.store import SIDES, RowWriter, write_lines

_CHUNK = 4096  # pairs


@dataclass
class HeldOutSplit:
    """A split whose text lies in the folder, not yet encoded."""

    folder: Path
    name: str
    pairs: int
    keys: list[Keys]  # of all pairs
    counts: dict[str, Any]

    def encode(self, encoder: Encoder) -> dict[str, Any]:
        """Write the rows of all pairs; returns what the report says of the split."""
        writers = [
            RowWriter(self.folder, self.name, side, tokenizer.vocabulary_size)
            for side, tokenizer in zip(SIDES, encoder.tokenizers, strict=True)
        ]
        unknown = dict.fromkeys(SIDES, 0)
        with (
            (self.folder / f"{self.name}.source.txt").open("rb") as source,
            (self.folder / f"{self.name}.target.txt").open("rb") as target,
        ):
            while passage := _passage(source, target):
                encoded = encoder(passage)
                for writer, rows in zip(writers, (encoded.source, encoded.target), strict=True):
                    writer.append(rows)
                for side, count in zip(SIDES, encoded.unknown, strict=True):
                    unknown[side] += count
        for writer in writers:
            writer.close()
        tokens = {side: writer.tokens for side, writer in zip(SIDES, writers, strict=True)}
        return self.counts | {"tokens": tokens, "unknown": unknown}


def _passage(source: Iterator[bytes], target: Iterator[bytes]) -> Passage | None:
    left = b"".join(islice(source, _CHUNK))
    return Passage(left, b"".join(islice(target, _CHUNK))) if left else None


def spool(folder: Path, name: str, parts: tuple[Part, ...], comparable: Comparable) -> HeldOutSplit:
    """Write a split's text as read, a line a sentence.

    Raises:
        DataError: there are no pairs, or none without an empty side.
    """
    hashes = {side: hashlib.sha256() for side in SIDES}
    count, control, blank = 0, 0, 0
    keys: list[Keys] = []
    with (
        (folder / f"{name}.source.txt").open("wb") as source_file,
        (folder / f"{name}.target.txt").open("wb") as target_file,
    ):
        for chunk in _chunks(chain.from_iterable(part.read() for part in parts)):
            hashes["source"].update(write_lines(source_file, (pair.source for pair in chunk)))
            hashes["target"].update(write_lines(target_file, (pair.target for pair in chunk)))
            _write_alignments(folder / f"{name}.alignment", chunk)
            cleaned = [(clean_line(pair.source), clean_line(pair.target)) for pair in chunk]
            keys += comparable.keys([(source[0], target[0]) for source, target in cleaned])
            count += len(chunk)
            control += sum(source[1] + target[1] for source, target in cleaned)
            blank += sum(is_blank(source[0]) or is_blank(target[0]) for source, target in cleaned)
    if not count:
        raise DataError(f"{name}: holds no pairs")
    if blank == count:
        raise DataError(f"{name}: every one of its {count:,} pairs has an empty side")
    counts = {
        "read": count,
        "kept": count,
        "dropped": {},
        "duplicates": count - len({pair for _, _, pair in keys}),
        "blank": blank,
        "control_characters": control,
        "sha256": {side: digest.hexdigest() for side, digest in hashes.items()},
    }
    return HeldOutSplit(folder, name, count, keys, counts)


def _chunks(pairs: Iterable[TextPair]) -> Iterator[list[TextPair]]:
    left = iter(pairs)
    while chunk := list(islice(left, _CHUNK)):
        yield chunk


def _write_alignments(path: Path, chunk: list[TextPair]) -> None:
    alignments = [pair.alignment for pair in chunk if pair.alignment is not None]
    assert len(alignments) in (0, len(chunk)), "gold alignments come with all pairs or none"
    if alignments:
        with path.open("ab") as stream:
            write_lines(stream, alignments)


class Overlap:
    """How many held-out pairs occur in training as it is kept: the same source, the same target, or both."""

    def __init__(self, comparable: Comparable) -> None:
        self._comparable = comparable
        self._seen: tuple[set[bytes], set[bytes], set[bytes]] = (set(), set(), set())

    def see(self, texts: Sequence[tuple[str, str]]) -> None:
        """Take note of cleaned training pairs that occur in held-out text."""
        for keys in self._comparable.keys(texts):
            for seen, each in zip(self._seen, keys, strict=True):
                seen.add(each)

    def counts(self, pairs: list[Keys]) -> dict[str, int]:
        """Of a held-out split, in its pairs; a blank side is not looked for on its own."""
        blank = key("")
        return {
            name: sum(keys[column] in self._seen[column] and keys[column] != blank for keys in pairs)
            for column, name in enumerate(("source", "target", "pair"))
        }
