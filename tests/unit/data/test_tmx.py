"""Translation memories: what is text in them, which variant is taken, what is wrong, in flat memory."""

import gzip
import tracemalloc
from pathlib import Path

import pytest

from nmt.data.corpus import DataError, TextPair
from nmt.data.tmx import read_tmx

HEAD = '<?xml version="1.0"?>\n<tmx version="1.4"><header srclang="en"><note>no text</note></header><body>\n'
TAIL = "</body></tmx>\n"


def unit(*variants: tuple[str, str], attribute: str = "xml:lang") -> str:
    inner = "".join(f'<tuv {attribute}="{language}"><seg>{text}</seg></tuv>' for language, text in variants)
    return f"<tu><note>a note</note><prop type='x'>1</prop>{inner}</tu>\n"


def read(path: Path, data: str | bytes, source: str = "en", target: str = "de") -> list[tuple[str, str]]:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return [(pair.source, pair.target) for pair in read_tmx(path, source, target, lambda count: None)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.tmx"


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a &amp; b &lt;c&gt; &#228;&#x20AC;", "a & b <c> ä€"),
        ("<![CDATA[a <b> & c]]>d", "a <b> & cd"),
        ("a<!-- no text -->b<?pi no text?>c", "abc"),
        ('<bpt i="1">&lt;b></bpt>bold<ept i="1">&lt;/b></ept> text', "bold text"),
        ('a<ph x="1">{0}</ph>b<it pos="begin">[</it>c<ut>{\\f1}</ut>d', "abcd"),
        ("a <hi>high <hi>er</hi></hi> b", "a high er b"),
        ('a<ph>&lt;img alt="<sub>a <hi>dog</hi></sub>"></ph>b', "ab"),
        ("a <hi>x<ph>code</ph>y</hi> b", "a xy b"),
        ("a <b>bold</b> word", "a bold word"),
        ("<seg>inner</seg> outer", "inner outer"),
        ("\n      indented\n      text\n   ", "indented text"),
        ("a\r\n\r\nb&#13;c&#10;", "a b c"),
        (" kept \u00a0\t", " kept \u00a0\t"),
        ("a\u2028b\u0085c\u2029", "a\u2028b\u0085c\u2029"),
    ],
)
def test_what_is_text_in_a_segment(path: Path, segment: str, text: str) -> None:
    assert read(path, HEAD + unit(("en", segment), ("de", "x")) + TAIL) == [(text, "x")]


def test_declared_entities_are_spelled_out(path: Path) -> None:
    head = '<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd" [<!ENTITY nmt "<hi>our</hi> name">]><tmx><body>'
    assert read(path, head + unit(("en", "&nmt;!"), ("de", "x")) + TAIL) == [("our name!", "x")]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "ISO-8859-1", "windows-1252"])
@pytest.mark.parametrize("mark", [True, False])
def test_encodings_that_are_declared(path: Path, encoding: str, mark: bool) -> None:
    text = HEAD.replace("?>", f' encoding="{encoding}"?>', 1) + unit(("en", "café"), ("de", "Tür")) + TAIL
    data = text.encode(encoding if mark or encoding != "UTF-16" else "utf-16-be")
    if mark and encoding == "UTF-8":
        data = b"\xef\xbb\xbf" + data
    assert read(path, data) == [("café", "Tür")]


# --- languages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "languages", "taken"),
    [
        ("en", "de", ["en-GB", "de-DE"], (0, 1)),
        ("en", "de", ["DE", "EN"], (1, 0)),
        ("en", "de", ["en_US", "de", "en"], (2, 1)),  # the same code goes before the same language
        ("en-GB", "de", ["en-US", "de-AT", "de-CH", "en-gb"], (3, 1)),
        ("en-GB", "de", ["fr", "en-US", "en", "de"], (1, 3)),  # the first of several
        ("pt-BR", "pt-PT", ["pt-PT", "pt-BR"], (1, 0)),
        ("pt-BR", "pt-PT", ["pt-PT", "pt"], None),  # one text is not both sides
        ("en", "de", ["en", "fr"], None),
        ("en", "de", ["eng", "de"], None),
    ],
)
def test_the_variant_of_a_language(
    path: Path, source: str, target: str, languages: list[str], taken: tuple[int, int] | None
) -> None:
    given = unit(*((language, str(number)) for number, language in enumerate(languages)))
    whole = unit((source, "x"), (target, "y"))
    expected = [] if taken is None else [(str(taken[0]), str(taken[1]))]
    assert read(path, HEAD + given + whole + TAIL, source, target) == [*expected, ("x", "y")]


def test_older_versions_say_lang(path: Path) -> None:
    assert read(path, HEAD + unit(("EN", "a"), ("DE", "b"), attribute="lang") + TAIL) == [("a", "b")]


def test_a_unit_without_one_of_the_languages_is_no_pair_and_counted(path: Path) -> None:
    path.write_text(HEAD + unit(("en", "a"), ("fr", "b")) + unit(("en", "c"), ("de", "d")) + unit() + TAIL)
    counts: list[int] = []
    assert list(read_tmx(path, "en", "de", counts.append)) == [TextPair("c", "d")]
    assert counts == [2]


def test_no_unit_with_both_languages_is_an_error_that_says_which_there_are(path: Path) -> None:
    with pytest.raises(DataError, match="none of its 2 units has both 'en' and 'de'; languages found: en, fr-ca"):
        read(path, HEAD + unit(("en", "a"), ("fr-CA", "b")) * 2 + TAIL)


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "line 1, column 1: not XML: no element found"),
        ("plain text\n", "line 1, column 1: not XML: syntax error"),
        ("<html><body/></html>", "line 1: no TMX: its root is <html>"),
        (HEAD, "line 3, column 1: not XML: no element found"),
        (HEAD + "<tu><tuv xml:lang='en'><seg>a & b</seg></tuv></tu>" + TAIL, "line 3, column 32: not XML: not well"),
        (HEAD + unit(("en", "a"), ("de", "b</seg>")) + TAIL, "line 3, column .*: not XML: mismatched tag"),
        (HEAD + unit(("en", "a\x01"), ("de", "b")) + TAIL, "line 3, column .*: not XML: not well"),
        (HEAD + unit(("en", "&#1;"), ("de", "b")) + TAIL, "invalid character number"),
        (HEAD + unit(("en", "a"), ("de", "&nbsp;")) + TAIL, "line 3, column .*: not XML: undefined entity"),
        ('<!DOCTYPE tmx SYSTEM "tmx14.dtd">' + HEAD[22:] + unit(("en", "&nbsp;")) + TAIL, "line 2: &nbsp; is not decl"),
        (HEAD + "<tu>\n<tuv><seg>a</seg></tuv></tu>" + TAIL, "line 4: a <tuv> without xml:lang"),
        (HEAD + '<tu><tuv xml:lang=""><seg>a</seg></tuv></tu>' + TAIL, "line 3: a <tuv> without xml:lang"),
        (HEAD + '<tu><tuv xml:lang="en"></tuv></tu>' + TAIL, "line 3: a <tuv> without <seg>"),
        (HEAD + '<tu><tuv xml:lang="en"><seg/><seg/></tuv></tu>' + TAIL, "line 3: a second <seg>"),
        (HEAD + "<tu><tu></tu></tu>" + TAIL, "line 3: a <tu> in a <tu>"),
        (HEAD + '<tu><tuv xml:lang="en"><tuv/></tuv></tu>' + TAIL, "line 3: a <tuv> in a <tuv>"),
        (HEAD.replace("?>", ' encoding="Shift_JIS"?>', 1) + TAIL, "line 1: its encoding cannot be read .multi-byte"),
        (HEAD.replace("?>", ' encoding="none"?>', 1) + TAIL, "line 1: its encoding cannot be read .unknown encoding"),
    ],
)
def test_what_is_no_tmx_is_named_by_line(path: Path, text: str, found: str) -> None:
    with pytest.raises(DataError, match=f"memory.tmx: {found}" if found.startswith("line") else found):
        read(path, text)


def test_a_byte_that_is_no_utf8_is_named_by_line_and_column(path: Path) -> None:
    data = (HEAD + unit(("en", "caf\u00e9"), ("de", "x")) + TAIL).encode("latin-1")
    with pytest.raises(DataError, match=r"memory\.tmx: line 3, column \d+: not XML: not well-formed"):
        read(path, data)


def test_a_packed_file_that_is_cut_short(tmp_path: Path) -> None:
    data = gzip.compress((HEAD + unit(("en", "a"), ("de", "b")) * 3 + TAIL).encode())
    with pytest.raises(DataError, match=r"memory\.tmx\.gz: damaged or cut short after line"):
        read(tmp_path / "memory.tmx.gz", data[:-4])


def test_entities_that_swell_are_stopped(path: Path) -> None:
    """A billion laughs: 10 levels of ten, from a few hundred bytes."""
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 11))
    head = f'<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY l0 "lol">{entities}]><tmx><body>'
    with pytest.raises(DataError, match=r"memory\.tmx: line 1, column \d+: not XML: limit on input amplification"):
        read(path, head + unit(("en", "&l10;"), ("de", "x")) + TAIL)
    quadratic = f'<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY l "{"lol" * 30_000}">]><tmx><body>'
    with pytest.raises(DataError, match="limit on input amplification"):
        read(path, quadratic + unit(("en", "&l;" * 30_000), ("de", "x")) + TAIL)


@pytest.mark.parametrize("where", ['SYSTEM "{}"', 'PUBLIC "x" "{}"'])
def test_nothing_outside_the_file_is_read(tmp_path: Path, path: Path, where: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secret.dtd").write_text('<!ENTITY e "secret">')
    address = where.format(tmp_path / "secret")
    head = f'<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY e {address}>]><tmx><body>'
    with pytest.raises(DataError, match=r"memory\.tmx: line 2: refers to what lies outside the file .*never read"):
        read(path, head + "\n" + unit(("en", "&e;"), ("de", "x")) + TAIL)
    for subset in (f"tmx {address.replace('secret', 'secret.dtd')}", f"tmx [<!ENTITY % d {address}> %d;]"):
        head = f'<?xml version="1.0"?><!DOCTYPE {subset}><tmx><body>'
        assert read(path, head + unit(("en", "a"), ("de", "x")) + TAIL) == [("a", "x")]
        with pytest.raises(DataError, match=r"&e; is not declared|undefined entity"):
            read(path, head + unit(("en", "&e;"), ("de", "x")) + TAIL)


# --- size -------------------------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_file(path: Path) -> None:
    path.write_text(HEAD + unit(("en", "a dog"), ("de", "ein Hund")) * 20_000 + TAIL)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_tmx(path, "en", "de", lambda count: None)) == 20_000
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 2
    finally:
        tracemalloc.stop()
