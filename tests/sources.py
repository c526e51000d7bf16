"""The same pairs written in every form that text is read from, and the configurations that read them."""

import gzip
import json
import lzma
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard

from nmt.config import DataConfig, HubData
from nmt.data import hub
from nmt.data.corpus import Corpus, Part, TextPair
from nmt.data.dataset import PreparedData, _open_corpus, prepare
from nmt.data.hub_worker import Source
from nmt.data.tokenizer import TokenizerPair
from tests.data_configs import data_config

Pairs = Sequence[tuple[str, str]]

SPLITS = ("train", "validation", "test")
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}


class Kind(NamedTuple):
    """A form: how the pairs of a split are written, and what a data configuration says to read them."""

    encode: Callable[[Pairs, str], dict[str, bytes]]  # files of a split by name
    keys: Callable[[Path], dict[str, Any]]  # of the configuration, for a folder
    group: str = "files"

    def write(self, folder: Path, **splits: Pairs) -> None:
        """Write splits into a folder."""
        folder.mkdir(exist_ok=True)
        for split, pairs in splits.items():
            for name, data in self.encode(pairs, split).items():
                (folder / name).write_bytes(data)

    def config(self, folder: Path, cache: Path, **changes: Any) -> DataConfig:
        """English to German from a folder."""
        keys = {"source": "en", "target": "de"} | self.keys(folder)
        return data_config(self.group, cache, **(keys | changes))


def _lines(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _two_files(pairs: Pairs, split: str, ending: str = "") -> dict[str, bytes]:
    sides = {"en": [source for source, _ in pairs], "de": [target for _, target in pairs]}
    return {f"{split}.{language}{ending}": COMPRESS[ending](_lines(lines)) for language, lines in sides.items()}


def _tsv(pairs: Pairs, split: str, ending: str = "") -> dict[str, bytes]:
    return {f"{split}.tsv{ending}": COMPRESS[ending](_lines([f"{source}\t{target}" for source, target in pairs]))}


def _jsonl(pairs: Pairs, split: str, nested: bool = False, ending: str = "") -> dict[str, bytes]:
    records: list[dict[str, Any]] = [{"en": source, "de": target} for source, target in pairs]
    if nested:
        records = [{"id": str(number), "translation": record} for number, record in enumerate(records)]
    text = _lines([json.dumps(record, ensure_ascii=False) for record in records])
    return {f"{split}.jsonl{ending}": COMPRESS[ending](text)}


def tmx(pairs: Pairs, encoding: str = "UTF-8") -> bytes:
    """A translation memory; carriage returns and line breaks as references, so that XML leaves them as they are."""
    spell = {"\r": "&#13;", "\n": "&#10;"}
    units = "".join(
        f'<tu><tuv xml:lang="en-GB"><seg>{escape(source, spell)}</seg></tuv>'
        f'<tuv xml:lang="de"><seg>{escape(target, spell)}</seg></tuv></tu>\n'
        for source, target in pairs
    )
    head = f'<?xml version="1.0" encoding="{encoding}"?>\n<tmx version="1.4"><header srclang="en"/><body>\n'
    return f"{head}{units}</body></tmx>\n".encode(encoding)


def _tmx(pairs: Pairs, split: str, encoding: str = "UTF-8", ending: str = "") -> dict[str, bytes]:
    return {f"{split}.tmx{ending}": COMPRESS[ending](tmx(pairs, encoding))}


def _parquet(pairs: Pairs, split: str) -> dict[str, bytes]:
    table = pa.table({"en": [source for source, _ in pairs], "de": [target for _, target in pairs]})
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return {f"{split}-00000-of-00001.parquet": sink.getvalue().to_pybytes()}


def _named(ending: str, folder: Path) -> dict[str, Any]:
    return {split: str(folder / f"{split}{ending}") for split in SPLITS}


def _pairs_of_files(folder: Path) -> dict[str, Any]:
    return {split: {"source": str(folder / f"{split}.en"), "target": str(folder / f"{split}.de")} for split in SPLITS}


def _hub(folder: Path) -> dict[str, Any]:
    return {"dataset": str(folder), "splits": {split: split for split in SPLITS}}


def _copy(folder: Path) -> dict[str, Any]:
    return {"folder": str(folder), "folder_splits": {split: split for split in SPLITS}}


KINDS = {
    "prefix": Kind(_two_files, partial(_named, "")),
    "prefix.gz": Kind(partial(_two_files, ending=".gz"), partial(_named, "")),
    "prefix.xz": Kind(partial(_two_files, ending=".xz"), partial(_named, "")),
    "prefix.zst": Kind(partial(_two_files, ending=".zst"), partial(_named, "")),
    "pair": Kind(_two_files, _pairs_of_files),
    "tsv": Kind(_tsv, partial(_named, ".tsv")),
    "tsv.gz": Kind(partial(_tsv, ending=".gz"), partial(_named, ".tsv.gz")),
    "jsonl": Kind(_jsonl, partial(_named, ".jsonl")),
    "jsonl nested": Kind(partial(_jsonl, nested=True, ending=".zst"), partial(_named, ".jsonl.zst")),
    "tmx": Kind(_tmx, partial(_named, ".tmx")),
    "tmx UTF-16": Kind(partial(_tmx, encoding="UTF-16", ending=".xz"), partial(_named, ".tmx.xz")),
    "folder": Kind(partial(_two_files, ending=".gz"), _copy, "multi30k"),
    "hub parquet": Kind(_parquet, _hub, "multi30k"),
    "hub json": Kind(_jsonl, _hub, "multi30k"),
}
LINES = {"prefix", "prefix.gz", "prefix.xz", "prefix.zst", "pair", "folder"}
"""Kinds of two files, line by line."""
TSV, TMX, HUB = {"tsv", "tsv.gz"}, {"tmx", "tmx UTF-16"}, {"hub parquet", "hub json"}
RECORDS = {"jsonl", "jsonl nested"} | TMX | HUB
"""Kinds in which a text may hold a line break."""


# --- what there is to write -------------------------------------------------------------------------------------------

COMMON = [
    ("a\u2028dog\u2029runs .", "ein\u0085Hund läuft ."),
    ("two\u00a0men\u202fread", " ein  Buch "),
    ("½ ﬁx ²", "\u3000½\ufeffﬁx²"),
    ("\ufeffa dog", "x\ufeff"),
    ("</s> <pad> dog", "<unk> <s> <0x0A>"),
    ('"a" , b', "'x' <b> & \\n \\u0041"),
    ("", "eine Katze"),
    ("a dog", ""),
    (" \u00a0", "sie"),
    ("\u0085", "singt"),
    ("g" * 3000, "ein Hund"),
    ("\U0001f600 e\u0301 日本", "Ж"),
]
"""Text that every form holds."""

RARE = [
    ("a\tdog", "ein\tHund\t"),
    ("a\x00b\x07", "\x1b[2Jein"),
    ("a\x0bdog\x0cruns\x1c.", "\x1dein\x1eHund"),
    ("a\rdog", "ein\r\rHund"),
    ("a\ndog", "ein\r\nHund\n"),
    ("\r\n", "Hund"),
]
CANNOT_HOLD = [
    (LINES | TSV, r"\n", "ends the line"),
    (LINES | TSV, r"\r$", "goes with the end of the line"),
    (TSV, r"\t", "parts the two sides"),
    (TMX, r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "no character of XML"),
]
"""Forms, a pattern of what they cannot hold, and what becomes of it there."""


def held(kind: str) -> list[tuple[str, str]]:
    """Of all pairs those that a form can hold."""
    patterns = [pattern for forms, pattern, _ in CANNOT_HOLD if kind in forms]
    barred = re.compile("|".join(patterns) or "(?!)")
    return COMMON + [pair for pair in RARE if not any(map(barred.search, pair))]


def as_read(kind: str, text: str) -> str:
    return re.sub("[\r\n]+", " ", text.strip("\r\n")) if kind in RECORDS else text


# --- changes to what was written --------------------------------------------------------------------------------------


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change what is in a file, beneath its compression."""
    unpack: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.decompress,
        ".xz": lzma.decompress,
        ".zst": zstandard.decompress,
    }
    ending = path.suffix if path.suffix in unpack else ""
    data = path.read_bytes()
    path.write_bytes(COMPRESS[ending](change(unpack[ending](data) if ending else data)))


def rewrite_text(path: Path, change: Callable[[str], str]) -> None:
    """Change the text of a file, beneath its compression and encoding."""
    encoding = "utf-16" if ".tmx.xz" in path.name else "utf-8"
    rewrite(path, lambda data: change(data.decode(encoding)).encode(encoding))


# --- reading ----------------------------------------------------------------------------------------------------------


@contextmanager
def hub_in_process() -> Iterator[None]:
    """Public data sets are read without a process of their own, which takes seconds to start."""

    def read(source: Source, split: str) -> Iterator[TextPair]:
        return (TextPair(left, right) for left, right, _ in source.pairs(split))

    def open_hub(config: HubData, log: Callable[[str], None]) -> Corpus:
        source = Source(config, lambda message: None)
        return Corpus(
            {split: (Part(split, partial(read, source, split)),) for split in SPLITS}, {"hub": config.dataset}
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "open_hub", open_hub)
        yield


def read_split(config: DataConfig, split: str = "train") -> list[tuple[str, str]]:
    """Pairs of a split as they are read."""
    with hub_in_process():
        corpus = _open_corpus(config, lambda line: None)
        return [(pair.source, pair.target) for part in corpus.splits[split] for pair in part.read()]


def prepared(config: DataConfig, tokenizers: TokenizerPair | None = None) -> PreparedData:
    """The whole preparation."""
    with hub_in_process():
        return prepare(config, lambda line: None, tokenizers)
