"""The training text as every side reads it: subwords of our tokenizer, cut once."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .environments import PeerError

REPOSITORY = Path(__file__).resolve().parent.parent.parent
VOCABULARY_SIZE = 8000
RESERVED = 4  # pad, unk, bos, eos: every toolkit adds its own
PREPARE_SECONDS = 1800


@dataclass(frozen=True)
class Corpus:
    """The prepared data, and the same as text for the peers.

    ``folder`` holds ``train.<language>`` and ``val.<language>``, a sentence a line, pieces apart by single spaces, and
    ``vocabulary.txt``, a piece a line in the order of our ids, the reserved ones left out.
    """

    overrides: tuple[str, ...]  # how nmt.train finds the data
    folder: Path
    source: str
    target: str
    pairs: int


def prepare(data: Path, source: str, target: str, work: Path) -> Corpus:
    """Prepare the text of ``data`` with ``nmt.prepare``, and write it out for the peers; both are kept and reused.

    Args:
        data: holds ``train.<language>`` and ``val.<language>``, plain or compressed.
        source: language translated from.
        target: language translated into.
        work: where to write.

    Raises:
        PeerError: the data could not be prepared.
    """
    overrides = (
        "data=files",
        "data.name=peers",
        f"data.source={source}",
        f"data.target={target}",
        f"data.train={data}/train",
        f"data.validation={data}/val",
        "data.max_length=100",
        f"data.cache={work}/cache",
        f"data.tokenizer.vocabulary_size={VOCABULARY_SIZE}",
    )
    done = subprocess.run(
        [sys.executable, "-m", "nmt.prepare", *overrides],
        cwd=REPOSITORY,
        env=our_environment(),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        timeout=PREPARE_SECONDS,
    )
    if done.returncode != 0:
        raise PeerError(f"nmt.prepare {' '.join(overrides)} failed with status {done.returncode}; its message is above")
    prepared = Path(done.stdout.strip())
    folder = work / f"text-{prepared.name}"
    pairs = _write(prepared, folder, source, target)
    return Corpus(overrides, folder, source, target, pairs)


def our_environment() -> dict[str, str]:
    """Environment of our own commands: this checkout, whatever is installed."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def _write(prepared: Path, folder: Path, source: str, target: str) -> int:
    """Write the text unless it is there; returns the number of training pairs."""
    import numpy as np

    from nmt.data.dataset import open_prepared

    data = open_prepared(prepared)
    if folder.exists():
        return len(data.train)
    temporary = folder.with_suffix(".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    pieces = data.tokenizers.target.pieces(range(data.tokenizers.target.vocabulary_size))
    _write_lines(temporary / "vocabulary.txt", vocabulary(pieces))
    for name, split in (("train", data.train), ("val", data.validation)):
        full = np.flatnonzero((split.source_lengths > 1) & (split.target_lengths > 1)).tolist()  # more than EOS
        for language, rows in ((source, split.source), (target, split.target)):
            _write_lines(temporary / f"{name}.{language}", (text(rows[i].tolist(), pieces) for i in full))
    temporary.rename(folder)
    return len(data.train)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def vocabulary(pieces: list[str]) -> list[str]:
    """The pieces that are words of a peer's vocabulary.

    Raises:
        PeerError: a piece holds what a toolkit takes for white space, or one is there twice.
    """
    words = pieces[RESERVED:]
    bad = [piece for piece in words if piece.split() != [piece]]
    if bad or len(set(words)) != len(words):
        raise PeerError(f"these subwords cannot stand in a text apart by spaces: {bad or 'some are there twice'}")
    return words


def text(row: list[int], pieces: list[str]) -> str:
    """A prepared row, which ends in EOS, as the peers read it: without EOS, they add their own."""
    return " ".join(pieces[token] for token in row[:-1])
