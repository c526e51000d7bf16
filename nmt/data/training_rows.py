"""The training text from its scratch folder to rows of ids, encoded in parallel; what is too long goes."""

from collections import Counter, deque
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.data.cleaning import Passage
from nmt.data.corpus import Part
from nmt.data.encoding import Encoded, Encoder
from nmt.data.held_out import Overlap
from nmt.data.parallel import Parallel
from nmt.data.progress import progress
from nmt.data.quarantine import Quarantine, Record, sides, unpack
from nmt.data.store import SIDES, LineWriter, RowRange, RowWriter
from nmt.data.training_text import NOT_DRAWN, REPEATS, Candidates, TrainingText, candidates


class Wants(NamedTuple):
    """What is written beside the ids."""

    quarantine: bool  # what was dropped
    text: bool  # of the rows: subword regularisation cuts it anew


@dataclass
class TrainingRows:
    """What was written."""

    kept: int = 0
    repeats: int = 0  # rows whose pair occurs earlier in the training text (none unless duplicates are kept)
    dropped: Counter[str] = field(default_factory=Counter)  # by reason
    tokens: dict[str, int] = field(default_factory=dict)  # of each side, EOS included
    unknown: dict[str, int] = field(default_factory=dict)
    parts: list[RowRange] = field(default_factory=list)


def write_rows(
    folder: Path, text: TrainingText, parts: tuple[Part, ...], encoder: Encoder, overlap: Overlap, wants: Wants
) -> TrainingRows:
    """Encode the candidates that are used, and write the rows of those that are short enough.

    Args:
        folder: the prepared folder that is being built.
        text: the training text.
        parts: of which it was read.
        encoder: drops what is too long.
        overlap: is shown what it should see of the rows.
        wants: what else is written.
    """
    with ExitStack() as stack:
        pool = stack.enter_context(Parallel[Passage, Encoded](encoder))
        advance = stack.enter_context(progress("encode", text.candidates))
        writing = _Writing(folder, text, parts, encoder, overlap, wants)
        flight: deque[tuple[Candidates, np.ndarray]] = deque()
        for chunk in candidates(text):
            while pool.full:
                writing.write(*flight.popleft(), pool.get())
            used = text.is_used(chunk.fates)
            pool.put(Passage(*(b"".join(compress(side, used)) for side in (chunk.source, chunk.target))))
            flight.append((chunk, used))
            advance(len(used))
        while flight:
            writing.write(*flight.popleft(), pool.get())
        return writing.finish()


class _Writing:
    """Writes chunks in order."""

    def __init__(
        self,
        folder: Path,
        text: TrainingText,
        parts: tuple[Part, ...],
        encoder: Encoder,
        overlap: Overlap,
        wants: Wants,
    ) -> None:
        self._folder = folder
        self._text = text
        self._parts = parts
        self._overlap = overlap
        self._rows = TrainingRows(unknown=dict.fromkeys(SIDES, 0))
        self._rows_of_part = np.zeros(len(parts), np.int64)
        self._writers = [
            RowWriter(folder, "train", side, tokenizer.vocabulary_size)
            for side, tokenizer in zip(SIDES, encoder.tokenizers, strict=True)
        ]
        self._lines = [LineWriter(folder, "train", side) for side in SIDES] if wants.text else []
        self._quarantine: Quarantine | None = None
        if wants.quarantine:
            earlier = unpack(text.scratch / "dropped")
            self._quarantine = Quarantine(folder, [part.name for part in parts], text.ends, earlier)

    def write(self, chunk: Candidates, used: np.ndarray, encoded: Encoded) -> None:
        """Write the rows of a chunk, and what became of the rest of it."""
        rows = self._rows
        places = np.flatnonzero(used)
        kept = used.copy()
        for place, _ in encoded.dropped:
            kept[places[place]] = False
        reasons = {int(places[place]): reason for place, reason in encoded.dropped}
        rows.dropped.update(reasons.values())
        rows.kept += int(kept.sum())
        rows.repeats += int((chunk.fates[kept] == REPEATS).sum())
        for writer, ids in zip(self._writers, (encoded.source, encoded.target), strict=True):
            writer.append(ids)
        for side, count in zip(SIDES, encoded.unknown, strict=True):
            rows.unknown[side] += count
        for lines, text in zip(self._lines, (chunk.source, chunk.target), strict=False):  # none, where none is wanted
            lines.write(list(compress(text, kept)))
        if chunk.alignments:
            with (self._folder / "train.alignment").open("ab") as stream:
                stream.write(b"".join(compress(chunk.alignments, kept)))
        parts = np.searchsorted(self._text.ends, chunk.numbers[kept], side="right")
        self._rows_of_part += np.bincount(parts, minlength=len(self._parts))
        if (occurring := np.flatnonzero(kept & (chunk.occurs > 0))).size:
            self._overlap.see([_text(chunk, int(place)) for place in occurring])
        if self._quarantine is not None:
            gone = ~used & (chunk.fates != NOT_DRAWN)
            reasons |= {int(place): "duplicate" for place in np.flatnonzero(gone)}
            for place, reason in sorted(reasons.items()):
                record = Record(int(chunk.numbers[place]), reason, sides(*_text(chunk, place)))
                self._quarantine.write(record)

    def finish(self) -> TrainingRows:
        """Close all files."""
        for writer in self._writers:
            writer.close()
        for lines in self._lines:
            lines.close()
        if self._quarantine is not None:
            self._quarantine.close()
        self._rows.tokens = {side: writer.tokens for side, writer in zip(SIDES, self._writers, strict=True)}
        ends = np.cumsum(self._rows_of_part).tolist()
        for part, first, end in zip(self._parts, [0, *ends[:-1]], ends, strict=True):
            self._rows.parts.append(RowRange(part.name, part.weight, first, end))
        return self._rows


def _text(chunk: Candidates, place: int) -> tuple[str, str]:
    return chunk.source[place][:-1].decode("utf-8"), chunk.target[place][:-1].decode("utf-8")
