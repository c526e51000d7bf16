"""Any bytes in the user's files either are the right pairs or a DataError that says where; never anything else.

What is right is told by a slow reader of a few lines for each form, which knows nothing of the one under test.
"""

import gzip
import json
import lzma
import re
import unicodedata
import zlib
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.data.corpus import DataError, is_blank
from nmt.data.tokenizer import TokenizerPair, train_tokenizers
from tests.data_configs import ENGLISH, GERMAN, data_config
from tests.sources import COMPRESS, KINDS, prepared, read_split, tmx

Oracle = list[tuple[str, str]] | None  # None: no text that can be read

ANY = settings(
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PIECES = [
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b"\xef\xbb\xbf",
    b"\0",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\x0c",
    b"\x1c",
    b"a",
    b"dog",
]
PIECES += [b"\xc3\xa4", b"\xc3", b"\xed\xa0\x80", b"\xff\xfe", b" ", b"</s>", b"\xf0\x9f\x98\x80", b"\xc2\xa0"]
TEXT = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=12).map(b"".join)
"""Bytes in which the ends of lines, bytes that are no UTF-8 and odd characters are common."""
WHOLE = [piece for piece in PIECES if b"\n" not in piece and b"\t" not in piece and piece.decode(errors="ignore")]
ROWS = st.lists(st.tuples(*[st.lists(st.sampled_from(WHOLE), max_size=4).map(b"".join)] * 2), max_size=5)
"""As many lines on each side."""


def check(folder: Path, kind: str, files: dict[str, bytes], expected: Oracle) -> None:
    """What is read from files is what it should be, or is refused with the name of a file, a place and a reason."""
    good = [("a dog", "ein Hund")]
    KINDS[kind].write(folder, train=good, validation=good, test=good)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    try:
        found = read_split(KINDS[kind].config(folder, folder))
    except DataError as error:
        found, message = None, str(error)
        assert any(str(folder / name) in message for name in files)
        assert re.search(r"line \d+|has \d+ lines|none of its \d+ units", message), message
        assert len(message) < 700 + 2 * len(str(folder))
        message.encode()  # no half characters
    assert found == expected


# --- slow readers -----------------------------------------------------------------------------------------------------


def lines(data: bytes) -> list[str] | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    text = text[1:] if text[:1] == "\ufeff" else text
    found = text.split("\n")
    found = found if found[-1] else found[:-1]
    return [line[:-1] if line[-1:] == "\r" else line for line in found]


def two_files(source: bytes, target: bytes) -> Oracle:
    left, right = lines(source), lines(target)
    return None if left is None or right is None or len(left) != len(right) else list(zip(left, right, strict=True))


def tsv(data: bytes) -> Oracle:
    rows = lines(data)
    if rows is None or any(row.count("\t") != 1 for row in rows if row):
        return None
    return [(row[: row.find("\t")], row[row.find("\t") + 1 :]) if row else ("", "") for row in rows]


def one_line(value: object) -> str | None:
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        return "" if value is None else None
    return " ".join(part for part in value.replace("\r", "\n").split("\n") if part)


def jsonl(data: bytes) -> Oracle:
    rows = lines(data)
    if rows is None:
        return None
    pairs = []
    for row in rows:
        if not row.strip():
            continue
        try:
            record = json.loads(row)
            pair = one_line(record["en"]), one_line(record["de"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if pair[0] is None or pair[1] is None:
            return None
        pairs.append((pair[0], pair[1]))
    return pairs


def memory(data: bytes) -> Oracle:
    """Of one whose segments hold no elements."""
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError):
        return None
    pairs: list[tuple[str, str]] = []
    for unit in (units := list(root.iter("tu"))):
        texts = {}
        for variant in unit.iter("tuv"):
            code = variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang") or ""
            segments = list(variant.iter("seg"))
            if not code.strip() or len(segments) != 1:
                return None
            text = re.sub(r"[ \t]*[\r\n][\r\n\t ]*", "\n", "".join(segments[0].itertext()))
            texts.setdefault(code.strip().lower().replace("_", "-").split("-")[0], text.strip("\n").replace("\n", " "))
        if "en" in texts and "de" in texts:
            pairs.append((texts["en"], texts["de"]))
    return pairs if root.tag == "tmx" and (pairs or not units) else None


# --- any bytes --------------------------------------------------------------------------------------------------------


@ANY
@given(st.tuples(TEXT, TEXT) | ROWS.map(lambda rows: tuple(b"".join(row[i] + b"\n" for row in rows) for i in (0, 1))))
def test_two_files(tmp_path: Path, sides: tuple[bytes, bytes]) -> None:
    source, target = sides
    check(tmp_path, "prefix", {"train.en": source, "train.de": target}, two_files(source, target))


@ANY
@given(TEXT | ROWS.map(lambda rows: b"\n".join(map(b"\t".join, rows))))
def test_tab_separated(tmp_path: Path, data: bytes) -> None:
    check(tmp_path, "tsv", {"train.tsv": data}, tsv(data))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["en", "x"]), inner, max_size=2),
    max_leaves=4,
)
RECORDS = st.dictionaries(st.sampled_from(["en", "de", "fr", "\ud800"]), st.text(max_size=8) | VALUES, max_size=3)
GOOD = st.fixed_dictionaries({"en": st.text(max_size=8), "de": st.text(max_size=8)})


@ANY
@given(
    st.lists(
        TEXT
        | st.sampled_from([b"[" * 100_000, b"1" * 5000])
        | st.builds(
            lambda value, ascii: json.dumps(value, ensure_ascii=ascii).encode(errors="surrogatepass"),
            GOOD | RECORDS | VALUES,
            st.booleans(),
        ),
        max_size=4,
    ).map(b"\n".join)
)
def test_lines_of_json(tmp_path: Path, data: bytes) -> None:
    check(tmp_path, "jsonl", {"train.jsonl": data}, jsonl(data))


def garbled(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    """Some bytes replaced, taken out or put in, each at a part of the length."""
    for place, removed, added in edits:
        begin = int(place * len(data))
        data = data[:begin] + added + data[begin + removed :]
    return data


EDITS = st.lists(
    st.tuples(
        st.floats(0, 1), st.integers(0, 4), TEXT | st.sampled_from([b"", b"&lt;", b"&x;", b"<", b"&#1;", b"\n  "])
    ),
    max_size=2,
)
XML_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=8)


@ANY
@given(
    st.lists(st.tuples(XML_TEXT, XML_TEXT), max_size=3),
    EDITS,
    st.sampled_from(["UTF-8", "UTF-16", "ISO-8859-15", "Shift_JIS", "idna", "none"]),
)
def test_translation_memories(
    tmp_path: Path, pairs: list[tuple[str, str]], edits: list[tuple[float, int, bytes]], encoding: str
) -> None:
    text = tmx(pairs, "UTF-8").decode().replace("UTF-8", encoding, 1)
    written = encoding if encoding in ("UTF-16", "ISO-8859-15") else "UTF-8"
    data = garbled(text.encode(written, "xmlcharrefreplace"), edits)
    check(tmp_path, "tmx", {"train.tmx": data}, memory(data))


# --- any bytes in place of compressed ones ----------------------------------------------------------------------------

UNPACK: dict[str, tuple[Callable[[bytes], bytes], tuple[type[Exception], ...]]] = {
    ".gz": (gzip.decompress, (EOFError, gzip.BadGzipFile, zlib.error)),
    ".xz": (lzma.decompress, (lzma.LZMAError, EOFError)),
    ".zst": (lambda data: zstandard.ZstdDecompressor().decompress(data, 1 << 20), (zstandard.ZstdError,)),
}


@pytest.mark.parametrize("ending", UNPACK)
@pytest.mark.parametrize("form", [".tsv", ".jsonl", ".tmx", ""])
@settings(ANY, max_examples=10)
@given(data=st.data())
def test_garbled_or_cut_short(tmp_path: Path, ending: str, form: str, data: st.DataObject) -> None:
    """What is read is what was packed, or what the library that packed it gets out; or it is refused."""
    kind = form[1:] or "prefix"
    pairs = list(zip(ENGLISH, GERMAN, strict=True))[: data.draw(st.integers(1, 20))]
    files = KINDS[kind].encode(pairs, "train")
    packed = {f"{name}{ending}": COMPRESS[ending](plain) for name, plain in files.items()}
    name = data.draw(st.sampled_from(sorted(packed)))
    packed[name] = garbled(packed[name], data.draw(EDITS))[: data.draw(st.none() | st.integers(0, len(packed[name])))]
    for other, content in packed.items():
        (tmp_path / other).write_bytes(content)
    entry = str(tmp_path / f"train{form}{ending if form else ''}")
    KINDS[kind].write(tmp_path, validation=pairs)
    try:
        found = read_split(KINDS[kind].config(tmp_path, tmp_path, train=entry, test=None))
    except DataError as error:
        assert str(tmp_path / name) in str(error)  # noqa: PT017
        assert re.search(r"line \d+|has \d+ lines", str(error))  # noqa: PT017
    else:
        unpack, errors = UNPACK[ending]
        plain = files[name.removesuffix(ending)]
        try:
            changed = unpack(packed[name]) != plain
        except errors:
            changed = False  # glued: several frames, padding
        assert changed or found == pairs


# --- the whole preparation --------------------------------------------------------------------------------------------


def visible(text: str) -> str:
    """A line as the model may see it: a control character is a space or nothing; one space for several, none around."""
    kept = (character if unicodedata.category(character) != "Cc" else " "[: character.isspace()] for character in text)
    return " ".join(filter(None, "".join(kept).split(" ")))


@pytest.fixture(scope="module")
def spelling() -> TokenizerPair:
    """Subwords that spell what they do not know in bytes, behind no normaliser."""
    changes = {"vocabulary_size": 330, "byte_fallback": True, "normalization": "identity"}
    config = data_config("files", Path("cache"), tokenizer=changes, source="en", target="de", train=[], validation=[])
    return train_tokenizers(config.tokenizer, ENGLISH, GERMAN, len(ENGLISH), seed=1)


BARRED = (
    "\ud800-\udfff\r\n\t\ufffe\uffff\u2581\x00-\x08\x0b\x0c\x0e-\x1f"  # in some form; U+2581 is SentencePiece's space
)
SIDE = (
    (st.text(max_size=8) | TEXT.map(lambda data: data.decode(errors="ignore")))
    .map(lambda text: re.sub(f"[{BARRED}]", "", text))
    .filter(lambda text: not is_blank(text) or not text.strip(" "))
)


@settings(ANY, max_examples=15)
@given(st.lists(st.tuples(SIDE, SIDE), max_size=6), st.sampled_from(["prefix", "tsv", "jsonl", "tmx"]))
def test_what_is_stored_spells_what_was_read(
    tmp_path_factory: pytest.TempPathFactory, spelling: TokenizerPair, pairs: list[tuple[str, str]], kind: str
) -> None:
    folder = tmp_path_factory.mktemp("data")
    pairs = [("a dog", "ein Hund"), *pairs, ("a\u0085cat", "eine\x7f Katze")]
    KINDS[kind].write(folder / "text", train=pairs, validation=pairs, test=pairs)
    data = prepared(KINDS[kind].config(folder / "text", folder / "cache"), spelling)
    assert list(zip(data.validation.sources(), data.validation.references(), strict=True)) == pairs
    expected = [(visible(source), visible(target)) for source, target in pairs]
    for split, wanted in ((data.validation, expected), (data.train, [pair for pair in expected if all(pair)])):
        rows = [split.pair(row) for row in range(len(split))]
        assert [(spelling.source.decode(source), spelling.target.decode(target)) for source, target in rows] == wanted
