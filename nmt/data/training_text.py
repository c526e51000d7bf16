"""The training text from its parts to a scratch folder: read, cleaned and filtered in parallel, without duplicates, cut
to size. A pair that passes the filters is a candidate, and has in the scratch folder

    source.txt, target.txt  its cleaned text, a line
    numbers                 int64: which pair of the corpus it is
    occurs                  uint8: what of it occurs in held-out text (see ``cleaning``)
    alignment               its gold alignment (demo)
    fates                   uint8: FREE, or what has become of it

and of the others ``dropped`` (for the quarantine): 10 bytes a pair beside its text, and
what ``duplicates`` takes.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import compress, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from nmt.data.cleaning import Cleaned, Cleaner, Passage
from nmt.data.corpus import Part, TextPair
from nmt.data.duplicates import BLOCK, Duplicates, Repeats, columns
from nmt.data.parallel import Parallel
from nmt.data.progress import progress
from nmt.data.quarantine import Record, pack
from nmt.data.store import SIDES, Side, write_lines

CHUNK = 4096  # pairs

FREE, REPEATS, NOT_DRAWN = 0, 1, 2
"""Fates: is used; repeats an earlier one (and is used all the same where duplicates are kept); a sample without it."""


@dataclass
class TrainingText:
    """What was read, and what has become of it."""

    scratch: Path
    duplicates: Duplicates
    ends: list[int] = field(default_factory=list)  # of each part: pairs read up to there
    read: int = 0
    candidates: int = 0
    repeats: int = 0  # candidates that repeat an earlier one
    used: int = 0  # candidates that are neither dropped as duplicates nor left out of the sample
    dropped: Counter[str] = field(default_factory=Counter)  # by the filters, and as held-out text; by reason
    not_drawn: int = 0  # candidates that a sample leaves out
    held_out: Counter[str] = field(default_factory=Counter)  # pairs behind the filters that occur in held-out text
    control: int = 0
    blank: int = 0
    sha256: dict[str, str] = field(default_factory=dict)  # of the text read, a side

    def fates(self) -> Iterator[np.ndarray]:
        """Of all candidates, a block at a time."""
        with (self.scratch / "fates").open("rb") as stream:
            while block := stream.read(BLOCK):
                yield np.frombuffer(block, np.uint8)

    def is_used(self, fates: np.ndarray) -> np.ndarray:
        """Which of the candidates are encoded."""
        used: np.ndarray = fates == FREE if self.duplicates != "keep" else fates != NOT_DRAWN
        return used

    def lines(self, side: Side) -> Iterator[str]:
        """The cleaned text of the candidates that are used."""
        with (self.scratch / f"{side}.txt").open("rb") as stream:
            for fates in self.fates():
                for line in compress(islice(stream, len(fates)), self.is_used(fates).tolist()):
                    yield line[:-1].decode("utf-8")


def gather(
    scratch: Path,
    parts: tuple[Part, ...],
    cleaner: Cleaner,
    duplicates: Duplicates,
    quarantine: bool,
    max_pairs: int | None,
    sample_seed: int | None,
) -> TrainingText:
    """Read the parts until ``max_pairs`` are to be used: the first that pass, or a seeded sample of all that pass.

    No more is read than that takes, but from parts that have to be read to the end (nothing else is done with that).

    Raises:
        DataError: what the parts raise.
    """
    text = TrainingText(scratch, duplicates)
    sampled = max_pairs is not None and sample_seed is not None and not all(part.shuffled for part in parts)
    limit = None if sampled else max_pairs
    repeats = Repeats(scratch / "repeats", len(columns(duplicates)))
    with ExitStack() as stack:
        reading = stack.enter_context(_Reading(text, parts, cleaner, repeats, quarantine))
        wanted = limit
        while True:
            reading.run(wanted)
            if limit is None or reading.at_end or duplicates == "keep":
                break
            missing = limit - (text.candidates - sum(int(block.sum()) for block in repeats.blocks()))
            if not missing:
                break
            wanted = text.candidates + missing
        reading.finish()
    _decide(text, repeats, max_pairs if sampled else None, sample_seed)
    repeats.close()
    return text


class _Chunk(NamedTuple):
    part: int
    pairs: list[TextPair]

    def passage(self) -> Passage:
        return Passage(*("".join(f"{pair[side]}\n" for pair in self.pairs).encode("utf-8") for side in (0, 1)))


class _Reading:
    """Reads, and lets other processes clean, until so many pairs are candidates; then goes on where it was."""

    def __init__(
        self, text: TrainingText, parts: tuple[Part, ...], cleaner: Cleaner, repeats: Repeats, quarantine: bool
    ) -> None:
        self.at_end = False
        self._text = text
        self._parts = parts
        self._repeats = repeats
        self._hashes = {side: hashlib.sha256() for side in SIDES}
        self._flight: deque[tuple[_Chunk, Passage]] = deque()  # at work in other processes
        self._part = 0
        self._pairs: Iterator[TextPair] | None = None
        with ExitStack() as stack:
            names = ["source.txt", "target.txt", "numbers", "occurs"]
            self._files: dict[str, BinaryIO] = {
                name: stack.enter_context((text.scratch / name).open("wb"))
                for name in [*names, *(["dropped"] if quarantine else [])]
            }
            self._pool = stack.enter_context(Parallel[Passage, Cleaned](cleaner))
            self._advance = stack.enter_context(progress("read and filter"))
            self._stack = stack.pop_all()

    def __enter__(self) -> "_Reading":
        return self

    def __exit__(self, *unused: object) -> None:
        self._stack.close()

    def run(self, wanted: int | None) -> None:
        """Read until there are so many candidates, never a pair more; None: to the end."""
        while True:
            while not self._pool.full and (most := self._room(wanted)) and (chunk := self._take(most)) is not None:
                passage = chunk.passage()
                self._flight.append((chunk, passage))
                self._pool.put(passage)
            if not self._pool.pending:
                return
            self._keep(*self._flight.popleft(), self._pool.get())

    def finish(self) -> None:
        """Read to the end what has to be, and close the rest."""
        for number in range(self._part, len(self._parts)):
            part = self._parts[number]
            pairs = self._pairs if number == self._part else None
            if part.to_the_end and not self.at_end:
                deque(part.read() if pairs is None else pairs, maxlen=0)
            elif pairs is not None and hasattr(pairs, "close"):
                pairs.close()
        self._text.ends += [self._text.read] * (len(self._parts) - len(self._text.ends))
        self._text.sha256 = {side: digest.hexdigest() for side, digest in self._hashes.items()}

    def _room(self, wanted: int | None) -> int:
        """How many pairs may be read before it is known how many of those that were read pass."""
        if wanted is None:
            return CHUNK
        return min(CHUNK, wanted - self._text.candidates - sum(len(chunk.pairs) for chunk, _ in self._flight))

    def _take(self, most: int) -> _Chunk | None:
        """The next pairs, all of one part; None at the end of the last one."""
        while not self.at_end:
            if self._pairs is None:
                self._pairs = self._parts[self._part].read()
            if pairs := list(islice(self._pairs, most)):
                return _Chunk(self._part, pairs)
            self._pairs = None
            self._part += 1
            self.at_end = self._part == len(self._parts)
        return None

    def _keep(self, chunk: _Chunk, passage: Passage, cleaned: Cleaned) -> None:
        """Write a chunk down."""
        text, files = self._text, self._files
        for side, data in zip(SIDES, passage, strict=True):
            self._hashes[side].update(data)
        while len(text.ends) < chunk.part:
            text.ends.append(text.read)
        for name, data in zip(("source.txt", "target.txt"), cleaned.text, strict=True):
            files[name].write(data)
        files["numbers"].write((np.flatnonzero(cleaned.passed) + text.read).astype("<i8").tobytes())
        files["occurs"].write(cleaned.occurs)
        self._repeats.add(cleaned.keys)
        alignments = [pair.alignment for pair in compress(chunk.pairs, cleaned.passed) if pair.alignment is not None]
        assert len(alignments) in (0, len(cleaned.occurs)), "gold alignments come with all pairs or none"
        if alignments:
            with (text.scratch / "alignment").open("ab") as stream:
                write_lines(stream, alignments)
        for place, reason, escaped in cleaned.dropped:
            text.dropped[reason] += 1
            if "dropped" in files:
                files["dropped"].write(pack(Record(text.read + place, reason, escaped)))
        text.held_out.update(dict(zip(("source", "target", "pair"), cleaned.held_out, strict=True)))
        text.candidates += len(cleaned.occurs)
        text.control += cleaned.control
        text.blank += cleaned.blank
        text.read += len(chunk.pairs)
        self._advance(len(chunk.pairs))


def _decide(text: TrainingText, repeats: Repeats, drawn: int | None, seed: int | None) -> None:
    """Write down the fate of every candidate. Of those that are used ``drawn`` are left, any so many equally likely."""
    path = text.scratch / "fates"
    with progress("find duplicates", text.candidates) as advance, path.open("wb") as stream:
        for block in repeats.blocks():
            text.repeats += int(block.sum())
            stream.write((block * np.uint8(REPEATS)).tobytes())
            advance(len(block))
    text.used = text.candidates if text.duplicates == "keep" else text.candidates - text.repeats
    if drawn is None or drawn >= text.used:
        return
    text.not_drawn = text.used - drawn
    generator = np.random.Generator(np.random.PCG64(seed))
    left, wanted = text.used, drawn
    with path.open("r+b") as stream:
        while data := stream.read(BLOCK):
            fates = np.frombuffer(data, np.uint8).copy()
            used = np.flatnonzero(text.is_used(fates))
            count = int(generator.hypergeometric(len(used), left - len(used), wanted))
            out = np.ones(len(used), np.bool_)
            out[generator.choice(len(used), count, replace=False, shuffle=False)] = False
            fates[used[out]] = NOT_DRAWN
            left, wanted = left - len(used), wanted - count
            stream.seek(-len(data), 1)
            stream.write(fates.tobytes())
    text.used = drawn


def candidates(text: TrainingText) -> Iterator["Candidates"]:
    """All candidates in order, a chunk at a time."""
    with ExitStack() as stack:
        names = ["source.txt", "target.txt", "numbers", "occurs", "fates"]
        names += ["alignment"] if (text.scratch / "alignment").exists() else []
        files: dict[str, Any] = {name: stack.enter_context((text.scratch / name).open("rb")) for name in names}
        while fates := files["fates"].read(CHUNK):
            yield Candidates(
                list(islice(files["source.txt"], len(fates))),
                list(islice(files["target.txt"], len(fates))),
                np.frombuffer(files["numbers"].read(8 * len(fates)), "<i8"),
                np.frombuffer(files["occurs"].read(len(fates)), np.uint8),
                np.frombuffer(fates, np.uint8),
                list(islice(files["alignment"], len(fates))) if "alignment" in files else [],
            )


class Candidates(NamedTuple):
    """Some that follow each other."""

    source: list[bytes]  # lines with their ends
    target: list[bytes]
    numbers: np.ndarray
    occurs: np.ndarray
    fates: np.ndarray
    alignments: list[bytes]  # lines with their ends, or none at all
