"""Lines, bytes and control characters, on real files."""

import bz2
import gzip
import lzma
import unicodedata
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.corpus import DataError, clean_line, decode_lines, read_lines, record_text

COMPRESS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


def lines_of(path: Path, data: bytes) -> list[str]:
    path.write_bytes(data)
    return list(read_lines(path))


# --- what ends a line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("inside", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r", "\t"])
def test_only_a_newline_ends_a_line(tmp_path: Path, ending: str, inside: str) -> None:
    data = COMPRESS[ending](f"a\nb1{inside}b2\nc\n".encode())
    assert lines_of(tmp_path / f"text{ending}", data) == ["a", f"b1{inside}b2", "c"]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\r\n", ["a\r"]),
        (b"a\rb\r\n", ["a\rb"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b"\xef\xbb\xbf\r\na\r\n", ["", "a"]),
        (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),  # only at the start of a file is it a mark
        (b"\xef\xbb\xbf\xef\xbb\xbfa\n", ["\ufeffa"]),
    ],
)
def test_line_ends_and_byte_order_marks(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    assert lines_of(tmp_path / "text", data) == lines


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])), max_size=20), st.booleans())
def test_any_text_comes_back(lines: list[str], final_newline: bool) -> None:
    expected = [line.removesuffix("\r") for line in lines]
    if expected and expected[0].startswith("\ufeff"):
        expected[0] = expected[0][1:]
    data = "".join(f"{line}\n" for line in lines)
    if not final_newline and lines and lines[-1]:
        data = data[:-1]
    if data == "\ufeff":
        expected = []
    raw = [part + b"\n" for part in data.encode().split(b"\n")]
    raw[-1] = raw[-1][:-1]  # what stands behind the last newline, if anything
    assert list(decode_lines([part for part in raw if part], "text")) == expected


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])), max_size=20))
def test_compressed_files_hold_the_same_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    folder = tmp_path_factory.mktemp("text")
    data = "".join(f"{line}\n" for line in lines).encode()
    plain, *others = (lines_of(folder / f"text{ending}", pack(data)) for ending, pack in COMPRESS.items())
    assert all(other == plain for other in others)


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_files_glued_together_are_read_to_the_end(tmp_path: Path, ending: str) -> None:
    pack = COMPRESS[ending]
    padding = b"" if ending == ".zst" else b"\0" * 8
    between = [b"", padding, pack(b"")]
    for gap in between:
        data = pack(b"a\nb") + gap + pack(b"c\nd\n") + padding
        assert lines_of(tmp_path / f"text{ending}", data) == ["a", "bc", "d"]


def test_frames_that_are_to_be_skipped(tmp_path: Path) -> None:
    skipped = (0x184D2A50).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"notes"
    data = skipped + zstandard.compress(b"a\nb") + skipped + zstandard.compress(b"c\n") + skipped
    assert lines_of(tmp_path / "text.zst", data) == ["a", "bc"]


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_a_damaged_second_stream_is_not_passed_over(tmp_path: Path, ending: str) -> None:
    pack = COMPRESS[ending]
    second = pack(b"c\nd\n")
    for broken in (b"\x01" + second[1:], second[:3], second[:-1], b"rubbish"):
        with pytest.raises(DataError, match="damaged or cut short after line"):
            lines_of(tmp_path / f"text{ending}", pack(b"a\nb\n") + broken)


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_text_that_shrinks_a_thousandfold_streams(tmp_path: Path, ending: str) -> None:
    line = "the same line " * 100
    data = COMPRESS[ending](f"{line}\n".encode() * 5000)  # 7 MB
    assert sum(text == line for text in lines_of(tmp_path / f"text{ending}", data)) == 5000


# --- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize(
    ("bad", "value"),
    [(b"caf\xe9 x", "0xe9"), (b"abc\xc3", "0xc3"), (b"abc\xed\xa0\x80", "0xed"), (b"abc\xc0\xaf", "0xc0")],
    ids=["latin1", "cut short", "surrogate", "overlong"],
)
def test_a_bad_byte_is_named_by_file_line_and_offset(tmp_path: Path, ending: str, bad: bytes, value: str) -> None:
    before = "\ufeffgood\r\nälso\n".encode()
    path = tmp_path / f"text{ending}"
    with pytest.raises(DataError) as caught:
        lines_of(path, COMPRESS[ending](before + bad + b"\nrest\n"))
    message = str(caught.value)
    assert str(path) in message
    assert "line 3" in message
    assert f"byte 4 of the line ({value})" in message
    assert f"offset {len(before) + 3} " in message


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("hello\n".encode("utf-16"), "UTF-16"),
        ("hello\n".encode("utf-16-be"), None),  # nothing says so: ASCII between NULs, which are removed
        (gzip.compress(b"hello", mtime=0), r"gzip: .*\.gz"),
        (lzma.compress(b"hello"), r"xz: .*\.xz"),
        (zstandard.compress(b"hello"), r"Zstandard: .*\.zst"),
        (bz2.compress(b"hello"), "bunzip2"),
        (b"PK\x03\x04\n\xff", "ZIP archive or an Office document"),
        (b"BZh\n\xff", "iconv"),
    ],
)
def test_what_is_no_text_is_recognised(tmp_path: Path, data: bytes, found: str | None) -> None:
    if found is None:
        assert len(lines_of(tmp_path / "text", data)) == 1
        return
    with pytest.raises(DataError, match=f"text: line [12]: not UTF-8: byte .*{found}"):
        lines_of(tmp_path / "text", data)


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("keep", [0.999, 0.5, 0.02])
def test_a_truncated_file_is_an_error(tmp_path: Path, ending: str, keep: float) -> None:
    data = COMPRESS[ending]("".join(f"{i * i} line\n" for i in range(20_000)).encode())
    with pytest.raises(DataError, match="damaged or cut short"):
        lines_of(tmp_path / f"text{ending}", data[: int(len(data) * keep)])


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_what_only_claims_to_be_compressed_is_an_error(tmp_path: Path, ending: str) -> None:
    for data in (b"", b"\0" * 8, b"plain text\n", bz2.compress(b"other\n")):
        with pytest.raises(DataError, match="damaged or cut short"):
            lines_of(tmp_path / f"text{ending}", data)


def test_a_flipped_bit_is_an_error(tmp_path: Path) -> None:
    data = bytearray(gzip.compress("".join(f"{i * i}\n" for i in range(5000)).encode()))
    data[len(data) // 2] ^= 0x10
    with pytest.raises(DataError, match=r"damaged or cut short|not UTF-8"):
        lines_of(tmp_path / "text.gz", bytes(data))


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(read_lines(tmp_path / "nothing"))
    with pytest.raises(DataError, match="is a folder"):
        list(read_lines(tmp_path))


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cleaned", "removed"),
    [
        ("plain", "plain", 0),
        ("a\x00b", "ab", 1),
        ("\x07a\x1bb\x7f\x90", "ab", 4),
        ("a\rb", "a b", 0),
        ("a\nb", "a b", 0),
        ("a\x0bb\x0cc\x1cd\x85e", "a b c d e", 4),
        ("a\tb", "a\tb", 0),
        ("a\u00a0b\u202fc\u2028d\ufeff", "a\u00a0b\u202fc\u2028d\ufeff", 0),
    ],
)
def test_cleaning(text: str, cleaned: str, removed: int) -> None:
    assert clean_line(text) == (cleaned, removed)


@settings(deadline=None)
@given(st.text())
def test_cleaning_leaves_no_control_character_and_nothing_else_changed(text: str) -> None:
    cleaned, removed = clean_line(text)
    assert all(char == "\t" or unicodedata.category(char) != "Cc" for char in cleaned)
    assert clean_line(cleaned) == (cleaned, 0)
    keep = [char for char in text if unicodedata.category(char) != "Cc"]
    assert [char for char in cleaned if char not in " \t"] == [char for char in keep if char != " "]
    assert removed == sum(unicodedata.category(char) == "Cc" and char not in "\t\r\n" for char in text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", "a b"),
        ("a\r\n\r\nb\n", "a b"),
        ("a\u2028b", "a\u2028b"),
        (None, ""),
        ("", ""),
        ("\n", ""),
        (" a ", " a "),
    ],
)
def test_line_breaks_of_a_record_are_white_space(value: str | None, text: str) -> None:
    assert record_text(value, "record 1") == text


@pytest.mark.parametrize("value", [3, ["a"], {"de": "a"}, "half \ud83d", True])
def test_a_record_without_text_is_named(value: object) -> None:
    with pytest.raises(DataError, match="record 7"):
        record_text(value, "record 7")
