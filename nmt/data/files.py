"""The user's own text: line-aligned files, TSV, JSON Lines and TMX, plain or compressed.

A split is a list of entries read one after the other. An entry is

- a pair ``{source: FILE, target: FILE}``,
- ``NAME.tsv``: source, one tab, target in every line; quotation marks are text,
- ``NAME.jsonl``: an object per line with the two language codes as keys, or with such an object under ``translation``
  (blank lines are no records),
- ``NAME.tmx``: a translation memory (see ``tmx``),
- anything else is a prefix: ``corpus/train`` means ``corpus/train.<language>``.

Each plain or with .gz, .xz or .zst behind it; of a prefix the first that exists in this order is read. A prefix or a
name with ``*``, ``?`` or ``[...]`` in it that names no file itself is a pattern: all that match, sorted by name, each
with its weight where it is a part of a mixture. The report lists the files.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from glob import glob, has_magic
from os.path import expanduser
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config import ConfigError, FilePair, FilesData, HubData
from nmt.data.compressed import COMPRESSIONS
from nmt.data.corpus import Corpus, DataError, Part, Reader, TextPair, in_step, read_lines, record_text
from nmt.data.tmx import read_tmx

Entry = str | FilePair

_KINDS = "a prefix, a .tsv, a .jsonl, a .tmx or {source: FILE, target: FILE}"


def open_files(config: FilesData) -> Corpus:
    """The splits of ``data=files``.

    Raises:
        ConfigError: both ``train`` and ``corpora`` are given, or neither, or a weight is no number above 0.
        DataError: a file is missing or of no kind that is read; the message lists every name tried.
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
    folder = Path(expanduser(config.folder))
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
    origin: dict[str, Any] = {"files": {}, "forms": {}, "units left out": {}}
    for split, items in entries.items():
        opened = [(_open(entry, source, target, origin["units left out"]), weight) for entry, weight in items]
        flat = [(found, weight) for several, weight in opened for found in several]
        splits[split] = tuple(Part(found.name, found.read, weight, to_the_end=True) for found, weight in flat)
        origin["files"][split] = [str(path) for found, _ in flat for path in found.paths]
        origin["forms"][split] = [found.form for found, _ in flat]
    return Corpus(splits, origin)


# --- what an entry means ----------------------------------------------------------------------------------------------


class _Found(NamedTuple):
    name: str
    form: str
    paths: list[Path]
    read: Reader


def _open(entry: Entry, source: str, target: str, left_out: dict[str, int]) -> list[_Found]:
    """What an entry stands for: one part, or several if it is a pattern."""
    if isinstance(entry, FilePair):
        return [_pair_of_files(entry.source, _named(entry.source), _named(entry.target), source, target)]
    entry = str(Path(expanduser(entry)))
    form = _form(entry)
    if form is None:
        return [_prefix(prefix, source, target) for prefix in _prefixes(entry, source, target)]
    readers: dict[str, Callable[[Path], Reader]] = {
        ".tsv": lambda path: partial(_tsv_rows, path, source, target),
        ".jsonl": lambda path: partial(_jsonl_rows, path, source, target),
        ".tmx": lambda path: partial(read_tmx, path, source, target, partial(left_out.__setitem__, str(path))),
    }
    return [_Found(str(path), form, [path], readers[form](path)) for path in _matching(entry)]


def _form(name: str) -> str | None:
    """The ending that says how a file is read, without that of its compression; None: a prefix."""
    ending = _plain(Path(name)).suffix.lower()
    return ending if ending in (".tsv", ".jsonl", ".tmx") else None


def _plain(path: Path) -> Path:
    """A name without the ending of its compression."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def _matching(entry: str) -> list[Path]:
    if not has_magic(entry) or Path(entry).is_file():
        return [_named(entry)]
    found = [path for path in map(Path, sorted(glob(entry))) if not path.is_dir()]
    if not found:
        raise DataError(f"{entry}: no file matches")
    return found


def _prefixes(entry: str, source: str, target: str) -> list[str]:
    if not has_magic(entry) or _first(_names(entry, source)) or _first(_names(entry, target)):
        return [entry]
    sides = [
        {
            found.removesuffix(ending.removeprefix(entry))
            for ending in _names(entry, language)
            for found in glob(ending)
            if not Path(found).is_dir()
        }
        for language in (source, target)
    ]
    if alone := sorted(sides[0] ^ sides[1]):
        lacks = target if alone[0] in sides[0] else source
        raise DataError(f"{entry}: one side only of {alone[0]}: no such file: {_listed(_names(alone[0], lacks))}")
    if not sides[0]:
        raise DataError(f"{entry}: no file matches: {_listed(_names(entry, source))}")
    return sorted(sides[0])


def _prefix(entry: str, source: str, target: str) -> _Found:
    left, right = (_first(_names(entry, language)) for language in (source, target))
    if left is None or right is None:
        raise _missing(entry, source if left is None else target, source, target)
    return _pair_of_files(entry, left, right, source, target)


def _pair_of_files(name: str, left: Path, right: Path, source: str, target: str) -> _Found:
    if [_plain(path).suffix for path in (left, right)] == [f".{target}", f".{source}"]:
        raise DataError(
            f"source: {left}, target: {right}: their endings say the opposite of data.source={source} "
            f"data.target={target}; swap the files or the languages"
        )
    return _Found(name, "pair", [left, right], partial(_pair_rows, left, right))


def _names(prefix: str, language: str) -> list[str]:
    return [f"{prefix}.{language}{ending}" for ending in ("", *COMPRESSIONS)]


def _first(names: Iterable[str]) -> Path | None:
    return next((path for path in map(Path, names) if path.exists() and not path.is_dir()), None)


def _named(name: str) -> Path:
    path = Path(expanduser(name))
    if path.is_dir():
        raise DataError(f"{path}: is a folder, expected a file")
    if not path.exists():
        raise DataError(f"no such file: {path} ({_KINDS} is expected)")
    return path


def _missing(entry: str, language: str, source: str, target: str) -> DataError:
    """Why there is nothing to read for a prefix, and what was meant perhaps."""
    path = Path(entry)
    if path.is_dir():
        return DataError(
            f"{path}: is a folder; name a prefix in it ({path}/train for {path}/train.{source} and "
            f"{path}/train.{target}), a file, or a pattern ({path}/*.tsv)"
        )
    if path.exists():
        plain = _plain(path)
        if plain.suffix in (f".{source}", f".{target}"):
            return DataError(f"{path}: is one side's file; give the prefix of both: {plain.with_suffix('')}")
        advice = ": convert it, one tab between source and target" if plain.suffix.lower() == ".csv" else ""
        return DataError(f"{path}: no file of this ending is read{advice} ({_KINDS} is expected)")
    beside = sorted(other.name for other in path.parent.glob("*") if other.name.startswith(f"{path.name}."))
    there = f"; there is {_listed(beside[:8])}" if beside else ""
    return DataError(f"no such file: {_listed(_names(entry, language))}{there} ({_KINDS} is expected)")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


# --- what is in a file ------------------------------------------------------------------------------------------------


def _pair_rows(left: Path, right: Path) -> Iterator[TextPair]:
    for source, target in in_step(read_lines(left), read_lines(right), str(left), str(right)):
        yield TextPair(source, target)


def _tsv_rows(path: Path, source: str, target: str) -> Iterator[TextPair]:
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split("\t") if line else ["", ""]
        if len(fields) != 2:
            advice = "; keep two columns (cut -f 1,2)" if len(fields) > 2 else ""
            if len(fields) == 1 and ("," in line or ";" in line):
                advice = "; a CSV file must be converted, one tab between source and target"
            raise DataError(
                f"{path}: line {number}: expected {source}<TAB>{target}, found {len(fields)} fields{advice}"
            )
        yield TextPair(*fields)


def _jsonl_rows(path: Path, source: str, target: str) -> Iterator[TextPair]:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        record = _record(line, where)
        inner = record.get("translation")
        if isinstance(inner, dict) and not (source in record and target in record):
            record = inner
        for key in (source, target):
            if key not in record:
                found = ", ".join(map(_key, list(record)[:20]))
                raise DataError(f"{where}: no key {key!r}; found {found or 'none'}")
        yield TextPair(*(record_text(record[key], f"{where}: {key!r}") for key in (source, target)))


def _record(line: str, where: str) -> dict[str, Any]:
    whole = "; one object a line is expected (from a JSON array: jq -c '.[]')"
    advice = whole if line.strip() in ("[", "{") or line.startswith("[") else ""
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{where}: not JSON: {error.msg} at character {error.pos + 1}{advice}") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise DataError(f"{where}: not JSON that can be read: {error}") from None
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected an object, found {line[:60]!r}{advice}")
    return record


def _key(name: str) -> str:
    return name if name.isprintable() and len(name) < 60 else f"{name!r:.60}"
