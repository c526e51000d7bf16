"""How preparing data grows with the corpus: time, memory, disk, and what the loader then makes of it.

    python scripts/prepare_scale.py --source train.en --target train.fr --languages en fr --folder scale

Makes corpora of so many pairs out of the given ones: when they have all been used they come again with the longest word
of either side replaced by one that says how often (as many words, other pairs). Each is prepared by ``nmt.prepare``
with data=files, the filters ``clean`` and all else as it is shipped, in a process of its own, with nothing cached, then
once more (which finds the first). Nothing else should run on the machine. Progress goes to stderr, the table to stdout.

Memory is the largest sum, over samples five times a second, of the proportional set sizes (PSS) of the process and all
that it has started: a page that several of them share is counted once, and mapped files count while they are resident.
CPU seconds are those of all processes. Disk is what the prepared folder holds, and at most held while it was made.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmt.analysis.fresh_process import in_fresh_process
from nmt.analysis.report import markdown_table
from nmt.data.corpus import in_step, read_lines
from nmt.machine import peak_resident

PAIRS = (200_000, 500_000, 1_000_000, 2_000_000)
HELD_OUT = 1000
"""Pairs at the end of the given text that validate."""

FAR = 40_000_000
"""Pairs that the growth is extrapolated to."""

SATURATED = 500_000
"""Pairs from which on the sample that subwords are trained on grows no more: growth is that of larger corpora."""

FLAT = 0.02
"""Growth by less than this share of the largest figure, or shrinking, is none."""

_LETTERS = "bdfgklmnprst", "aeiou"
_INTERVAL = 0.2  # seconds
_LOADING = 60.0  # seconds of batches at most


def main() -> None:
    """Measure every size, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--source", type=Path, required=True, metavar="FILE", help="text, plain or .gz, .xz, .zst")
    add("--target", type=Path, required=True, metavar="FILE", help="its translation, line by line")
    add("--languages", nargs=2, default=["en", "fr"], metavar=("FROM", "TO"), help="codes of both (default: en fr)")
    add("--pairs", type=int, nargs="+", default=PAIRS, metavar="N", help=f"(default: {' '.join(map(str, PAIRS))})")
    add("--folder", type=Path, required=True, metavar="DIR", help="for text and prepared data; must not exist yet")
    add("--json", type=Path, metavar="FILE", help="also write all figures here")
    arguments = parser.parse_args()
    if arguments.folder.exists():
        parser.error(f"--folder {arguments.folder}: is there already; name one that is not")
    figures = [measure(arguments, pairs) for pairs in sorted(arguments.pairs)]
    shutil.rmtree(arguments.folder)
    print(report(figures))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


# --- text -------------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    source: str
    target: str


def distinct(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Pairs that stay distinct when a word of each is replaced: of those that would not, the first."""
    seen: set[bytes] = set()
    for pair in pairs:
        key = hashlib.blake2b("\n".join(marked(pair, 1)).encode(), digest_size=16).digest()
        if key not in seen:
            seen.add(key)
            yield pair


def marked(pair: Pair, repetition: int) -> Pair:
    """A pair as it comes for the n-th time (from 0), with as many words as ever."""
    if not repetition:
        return pair
    word = spelled(repetition)
    return Pair(*(_replaced(text.split(" "), word) for text in pair))


def _replaced(words: list[str], word: str) -> str:
    words[max(range(len(words)), key=lambda place: len(words[place]))] = word
    return " ".join(words)


def spelled(number: int) -> str:
    """A number as a word that is none: q, then syllables."""
    syllables = []
    for _ in range(4):
        number, syllable = divmod(number, 60)
        syllables.append(_LETTERS[0][syllable // 5] + _LETTERS[1][syllable % 5])
    return "q" + "".join(reversed(syllables))


def repeated(pairs: list[Pair]) -> Iterator[Pair]:
    """The pairs over and over, never one twice."""
    for repetition in count():
        for pair in pairs:
            yield marked(pair, repetition)


def write_corpus(arguments: argparse.Namespace, folder: Path, pairs: int) -> float:
    """Write training and validation text; returns the mean number of words a side."""
    lines = in_step(
        read_lines(arguments.source), read_lines(arguments.target), str(arguments.source), str(arguments.target)
    )
    given = list(distinct(Pair(*line) for line in lines if all(map(str.strip, line))))
    if len(given) <= HELD_OUT:
        sys.exit(f"{arguments.source}: has {len(given):,} different pairs; more than {HELD_OUT:,} are needed")
    train, validation = given[:-HELD_OUT], given[-HELD_OUT:]
    words = 0
    folder.mkdir(parents=True)
    for name, text in (("train", islice(repeated(train), pairs)), ("validation", iter(validation))):
        with (
            (folder / f"{name}.{arguments.languages[0]}").open("w", encoding="utf-8", newline="\n") as source,
            (folder / f"{name}.{arguments.languages[1]}").open("w", encoding="utf-8", newline="\n") as target,
        ):
            for pair in text:
                source.write(f"{pair.source}\n")
                target.write(f"{pair.target}\n")
                words += (len(pair.source.split()) + len(pair.target.split())) * (name == "train")
    return words / pairs / 2


# --- measuring --------------------------------------------------------------------------------------------------------


class Watch(threading.Thread):
    """Looks at a process, all that it has started and a folder, until it is told to stop."""

    def __init__(self, process: int, folder: Path) -> None:
        super().__init__(daemon=True)
        self.together = 0  # bytes, the largest sum of PSS
        self.alone: dict[int, int] = {}  # bytes, the largest resident set of each process
        self.processes = 1  # most at once
        self.disk = 0  # bytes, the most in the folder
        self._process = process
        self._folder = folder
        self._over = threading.Event()

    def run(self) -> None:
        """Sample."""
        while not self._over.wait(_INTERVAL):
            tree = _tree(self._process)
            self.together = max(self.together, sum(_pss(process) for process in tree))
            self.processes = max(self.processes, len(tree))
            for process in tree:
                self.alone[process] = max(self.alone.get(process, 0), _field(process, "status", "VmHWM:"))
            self.disk = max(self.disk, disk_usage(self._folder))

    def stop(self) -> None:
        """Wait for the last sample."""
        self._over.set()
        self.join()


def _tree(root: int) -> list[int]:
    """A process and all that it has started, they too."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _pss(process: int) -> int:
    return _field(process, "smaps_rollup", "Pss:")


def _field(process: int, name: str, key: str) -> int:
    """Bytes from a file of /proc; 0 for a process that is gone."""
    try:
        lines = Path(f"/proc/{process}/{name}").read_text().split("\n")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), 0)


def disk_usage(folder: Path) -> int:
    """Bytes of all files below a folder, as far as they are still there."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(root) / name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def measure(arguments: argparse.Namespace, pairs: int) -> dict[str, Any]:
    """Everything about one size."""
    text, cache = arguments.folder / "text", arguments.folder / "cache"
    _say(f"{pairs:,} pairs: writing the text")
    words = write_corpus(arguments, text, pairs)
    source, target = arguments.languages
    command = [sys.executable, "-m", "nmt.prepare", "data=files", "data/filters=clean", f"data.cache={cache}"]
    command += [f"data.source={source}", f"data.target={target}"]
    command += [f"data.train={text / 'train'}", f"data.validation={text / 'validation'}"]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watch = Watch(process.pid, cache)
    watch.start()
    said = process.communicate()[0]
    seconds = time.monotonic() - start
    watch.stop()
    if process.returncode:
        sys.exit(f"{pairs:,} pairs: nmt.prepare ended with status {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    again = time.monotonic()
    subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    again = time.monotonic() - again
    folder = Path(said.removesuffix("\n"))
    train = json.loads((folder / "preparation.json").read_text(encoding="utf-8"))["splits"]["train"]
    peaks = sorted(watch.alone.values(), reverse=True)
    figures = {
        "pairs": pairs,
        "words": words,
        "kept": train["kept"],
        "dropped": train["dropped"],
        "seconds": seconds,
        "cpu_seconds": after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime,
        "peak_bytes": watch.together,
        "processes": watch.processes,
        "process_peak_bytes": peaks,
        "second_start_seconds": again,
        "text_bytes": disk_usage(text),
        "disk_bytes": disk_usage(folder),
        "disk_peak_bytes": watch.disk,
        "loader": in_fresh_process(load, str(folder), "loaded the prepared data"),
    }
    shutil.rmtree(text)
    shutil.rmtree(cache)
    _say(f"{pairs:,} pairs: {seconds:.0f} s, {watch.together / 1e6:,.0f} MB")
    return figures


def load(folder: str) -> dict[str, float]:
    """Make batches of a training epoch, for a minute at most."""
    from nmt.data.dataset import open_prepared
    from nmt.data.loader import Loader

    imported = peak_resident()
    begin = time.monotonic()
    batches = Loader(open_prepared(Path(folder)).train, 4096, None, 1, True).batches(0)
    tokens = int(next(batches).target_lengths.sum())
    first = time.monotonic()
    for batch in batches:
        tokens += int(batch.target_lengths.sum())
        if time.monotonic() - first > _LOADING:
            break
    return {
        "seconds_to_first": first - begin,
        "tokens_per_second": tokens / (time.monotonic() - first),
        "peak_bytes": peak_resident(),
        "imported_bytes": imported,
        "private_bytes": _field(os.getpid(), "smaps_rollup", "Anonymous:"),
    }


# --- what came out ----------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A least-squares fit: value = begin + slope * pairs."""

    begin: float
    slope: float
    off: float  # largest distance of a point from the line, as a share of the point

    def at(self, pairs: int) -> float:
        """Value for so many pairs."""
        return self.begin + self.slope * pairs


def fit(pairs: list[int], values: list[float]) -> Line:
    """A line through two points or more."""
    slope, begin = np.polyfit(np.array(pairs, float), np.array(values, float), 1)
    off = max(abs(begin + slope * x - y) / y for x, y in zip(pairs, values, strict=True) if y)
    return Line(float(begin), float(slope), float(off))


def report(figures: list[dict[str, Any]]) -> str:
    """The table, and the growth."""
    header = ["pairs", "kept", "words a side", "seconds", "CPU s", "peak MB", "main process MB", "largest other MB"]
    header += ["second start, s", "prepared MB", "at most MB", "loader tokens/s", "first batch, s", "loader MB"]
    rows = [
        [
            f"{each['pairs']:,}",
            f"{each['kept']:,}",
            f"{each['words']:.1f}",
            f"{each['seconds']:,.0f}",
            f"{each['cpu_seconds']:,.0f}",
            _mb(each["peak_bytes"]),
            *(_mb(peak) for peak in [*each["process_peak_bytes"], 0, 0][:2]),
            f"{each['second_start_seconds']:.1f}",
            _mb(each["disk_bytes"]),
            _mb(each["disk_peak_bytes"]),
            f"{each['loader']['tokens_per_second']:,.0f}",
            f"{each['loader']['seconds_to_first']:.1f}",
            _mb(each["loader"]["peak_bytes"]),
        ]
        for each in figures
    ]
    cores = len(os.sched_getaffinity(0))
    parts = [
        f"{cores} cores, at most {max(each['processes'] for each in figures)} processes. Peak: sum of PSS of all of "
        "them; of single processes, and of the loader, the resident set.",
        markdown_table(header, rows, left=[]),
    ]
    large = [each for each in figures if each["pairs"] >= SATURATED]
    if len(large) > 1:
        parts.append(growth(large))
    elif len(figures) > 1:
        parts += [f"Growth with the sample that subwords are trained on (up to {SATURATED:,} pairs):", growth(figures)]
    return "\n\n".join(parts)


def growth(figures: list[dict[str, Any]]) -> str:
    """Lines through the figures, and where they are at :data:`FAR` pairs."""
    pairs = [each["pairs"] for each in figures]
    rows = []
    for name, unit, values in (
        ("wall time", "s", [each["seconds"] for each in figures]),
        ("CPU time", "s", [each["cpu_seconds"] for each in figures]),
        ("peak memory", "MB", [each["peak_bytes"] / 1e6 for each in figures]),
        ("second start", "s", [each["second_start_seconds"] for each in figures]),
        ("prepared data", "MB", [each["disk_bytes"] / 1e6 for each in figures]),
        ("most on disk", "MB", [each["disk_peak_bytes"] / 1e6 for each in figures]),
        ("loader's resident set", "MB", [each["loader"]["peak_bytes"] / 1e6 for each in figures]),
    ):
        line = fit(pairs, values)
        grows = [f"{line.begin:,.1f} {unit}", f"{line.slope * 1e6:,.1f} {unit}", f"{line.off:.0%}"]
        if line.slope * max(pairs) < FLAT * max(values):  # a line through noise would lead anywhere, far out
            rows.append([name, *grows, f"no growth: {max(values):,.0f} {unit}"])
        else:
            rows.append([name, *grows, f"{line.at(FAR):,.0f} {unit}"])
    return markdown_table(
        ["growth", "at 0 pairs", "a million pairs", "off the line", f"at {FAR:,} pairs"], rows, left=[0]
    )


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
