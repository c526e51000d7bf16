"""The user's own text: line-aligned files, TSV and JSON Lines, plain or compressed.

A split is a list of entries read one after the other. An entry is

- a pair ``{source: FILE, target: FILE}``,
- ``NAME.tsv``: source, one tab, target in every line,
- ``NAME.jsonl``: an object per line with the two language codes as keys (blank lines are no records),
- anything else is a prefix: ``corpus/train`` means ``corpus/train.<language>``, plain or with .gz, .xz or .zst behind
  it. The first that exists in this order is read; the report lists the files.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nmt.config import ConfigError, FilePair, FilesData, HubData
from nmt.data.corpus import COMPRESSIONS, Corpus, DataError, Part, Reader, TextPair, in_step, read_lines, record_text

Entry = str | FilePair


def open_files(config: FilesData) -> Corpus:
    """The splits of ``data=files``.

    Raises:
        ConfigError: both ``train`` and ``corpora`` are given, or neither, or a weight is no number above 0.
        DataError: a file is missing; the message lists every name tried.
    """
    if (config.train is None) == (config.corpora is None):
        raise ConfigError("data.train: give either train or corpora (a mixture with weights)")
    train = [(entry, 1.0) for entry in config.train or ()] + [(part.path, part.weight) for part in config.corpora or ()]
    for _, weight in train:
        if not 0 < weight < math.inf:
            raise ConfigError(f"data.corpora: a weight is a number above 0, found {weight}")
    entries = {"train": train, "validation": [(entry, 1.0) for entry in config.validation]}
    if config.test is not None:
        entries["test"] = [(entry, 1.0) for entry in config.test]
    for split, items in entries.items():
        if not items:
            raise DataError(f"data.{split}: no files given")
    return _corpus(entries, config.source, config.target)


def open_folder(config: HubData) -> Corpus:
    """The local copy of a public data set: ``<data.folder>/<split>.<language>``, plain or compressed."""
    assert config.folder is not None
    folder = Path(config.folder).expanduser()
    if not folder.is_dir():
        raise DataError(f"data.folder: {folder}: no such folder")
    names = config.folder_splits
    if names.validation is None:
        raise ConfigError("data.folder_splits.validation: null; name the files that validation reads")
    entries: dict[str, list[tuple[Entry, float]]] = {
        split: [(str(folder / name), 1.0)]
        for split, name in (("train", names.train), ("validation", names.validation), ("test", names.test))
        if name is not None
    }
    return _corpus(entries, config.source, config.target)


def _corpus(entries: dict[str, list[tuple[Entry, float]]], source: str, target: str) -> Corpus:
    splits: dict[str, tuple[Part, ...]] = {}
    files: dict[str, list[str]] = {}
    for split, items in entries.items():
        parts, files[split] = [], []
        for entry, weight in items:
            paths, read = _resolve(entry, source, target)
            files[split] += map(str, paths)
            # Unequal counts may mean that the first lines do not match: found at the end only.
            parts.append(Part(str(paths[0]), read, weight, to_the_end=True))
        splits[split] = tuple(parts)
    return Corpus(splits, {"files": files})


def _resolve(entry: Entry, source: str, target: str) -> tuple[list[Path], Reader]:
    """The files of an entry, and what reads them."""
    if isinstance(entry, FilePair):
        return _pair_of_files(_existing([entry.source]), _existing([entry.target]))
    path = Path(entry).expanduser()
    plain = path.with_suffix("") if path.suffix in COMPRESSIONS else path
    for ending, rows in ((".tsv", _tsv_rows), (".jsonl", _jsonl_rows)):
        if plain.suffix == ending:
            return _one_file(_existing([str(path)]), rows, source, target)
    names = {
        language: [f"{path}.{language}{ending}" for ending in ("", *COMPRESSIONS)] for language in (source, target)
    }
    return _pair_of_files(_existing(names[source]), _existing(names[target]))


def _existing(names: Iterable[str]) -> Path:
    paths = [Path(name).expanduser() for name in names]
    for path in paths:
        if path.exists() and not path.is_dir():
            return path
    tried = ", ".join(str(path) for path in paths)
    raise DataError(f"no such file: {tried} (a prefix, a .tsv, a .jsonl or {{source: FILE, target: FILE}} is expected)")


def _pair_of_files(source: Path, target: Path) -> tuple[list[Path], Reader]:
    def read() -> Iterator[TextPair]:
        for left, right in in_step(read_lines(source), read_lines(target), str(source), str(target)):
            yield TextPair(left, right)

    return [source, target], read


def _one_file(
    path: Path, rows: Callable[[Path, str, str], Iterator[TextPair]], source: str, target: str
) -> tuple[list[Path], Reader]:
    return [path], lambda: rows(path, source, target)


def _tsv_rows(path: Path, source: str, target: str) -> Iterator[TextPair]:
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split("\t") if line else ["", ""]
        if len(fields) != 2:
            raise DataError(f"{path}: line {number}: expected {source}<TAB>{target}, found {len(fields)} fields")
        yield TextPair(*fields)


def _jsonl_rows(path: Path, source: str, target: str) -> Iterator[TextPair]:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: not JSON: {error.msg} at character {error.pos + 1}") from None
        if not isinstance(record, dict):
            raise DataError(f"{where}: expected an object, found {line[:60]!r}")
        for key in (source, target):
            if key not in record:
                raise DataError(f"{where}: no key {key!r}; found {', '.join(map(str, record)) or 'none'}")
        yield TextPair(*(record_text(record[key], f"{where}: {key!r}") for key in (source, target)))
