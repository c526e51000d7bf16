"""Translation memories: TMX 1.4 (LISA/OSCAR 2005) and its older versions, read as a stream in flat memory.

A unit ``<tu>`` holds variants ``<tuv xml:lang="en-GB"><seg>text</seg></tuv>``; the pair is the variant of the source
language with that of the target language. The rules:

- A variant is of a language if its code is the same, whatever the case (``en-GB``, ``en_gb``). If there is none, one
  with the same primary subtag will do (``en`` finds ``en-GB``), unless both sides share it (``pt-BR`` to ``pt-PT``).
  Of several the first one in the unit is taken.
- Native code is no text: what stands in ``bpt``, ``ept``, ``it``, ``ph`` and ``ut`` goes, ``sub`` inside them too. The
  text of ``hi``, or of any other element in a segment, stays.
- A line break in a segment, with the indentation around it, is one space, and nothing at either end.
- A unit without one of the two languages is no pair: it is left out and counted.

The XML parser is expat: it knows the encodings UTF-8, UTF-16 and those of one byte, stops what swells by nested
entities, and is given nothing to fetch a file or an address with.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from xml.parsers import expat

from nmt.data.corpus import DataError, TextPair, reading

_CODE = {"bpt", "ept", "it", "ph", "ut"}
_PIECE = 1 << 16  # bytes parsed at a time


def read_tmx(path: Path, source: str, target: str, left_out: Callable[[int], None]) -> Iterator[TextPair]:
    """Pairs of a TMX file in order; ``left_out`` is told at the end how many units have only one of the languages.

    Raises:
        DataError: it is no TMX, with line (and column where it is no XML); no unit has both languages.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    units = _Units(path, source, target, lambda: parser.CurrentLineNumber)
    parser.StartElementHandler = units.start
    parser.EndElementHandler = units.end
    parser.CharacterDataHandler = units.characters
    parser.ExternalEntityRefHandler = units.outside
    parser.SkippedEntityHandler = units.unknown
    with reading(path, lambda: parser.CurrentLineNumber - 1) as stream:
        last = False
        while not last:
            data = stream.read(_PIECE)
            last = not data
            try:
                parser.Parse(data, last)
            except expat.ExpatError as error:
                where = f"{path}: line {error.lineno}, column {error.offset + 1}"
                raise DataError(f"{where}: not XML: {expat.ErrorString(error.code)}") from None
            except DataError:
                raise
            except (ValueError, LookupError) as error:  # of an encoding, from Python's side of the parser
                where = f"{path}: line {parser.CurrentLineNumber}"
                raise DataError(f"{where}: its encoding cannot be read ({error}); convert it to UTF-8") from None
            yield from units.taken()
    units.check()
    left_out(units.incomplete)


class _Units:
    """What the parser reports, gathered into pairs."""

    def __init__(self, path: Path, source: str, target: str, line: Callable[[], int]) -> None:
        self._path = path
        self._source, self._target = _tag(source), _tag(target)
        self._by_primary = _primary(self._source) != _primary(self._target)
        self._line = line
        self._begun = False
        self._pairs: list[TextPair] = []
        self._unit: list[tuple[str, str]] | None = None  # language and text of the variants of an open <tu>
        self._language: str | None = None  # of an open <tuv>
        self._segment: str | None = None  # its text
        self._text: list[str] | None = None  # pieces of an open <seg>
        self._inside: list[bool] = []  # elements open in it: whether they are, or stand in, native code
        self._complete = 0
        self.incomplete = 0
        """Units without one of the languages."""
        self._languages: set[str] = set()

    def taken(self) -> list[TextPair]:
        """The pairs since the last call."""
        pairs, self._pairs = self._pairs, []
        return pairs

    def check(self) -> None:
        """Refuse a file in which no unit has both languages."""
        if self.incomplete and not self._complete:
            found = ", ".join(sorted(self._languages)[:20])
            raise DataError(
                f"{self._path}: none of its {self.incomplete:,} units has both {self._source!r} and {self._target!r}; "
                f"languages found: {found or 'none'}"
            )

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._begun:
            self._begun = True
            if name != "tmx":
                raise self._error(f"no TMX: its root is <{name}>, expected <tmx>")
        if self._text is not None:
            self._inside.append(name in _CODE or self._inside[-1:] == [True])
        elif name == "tu":
            if self._unit is not None:
                raise self._error("a <tu> in a <tu>")
            self._unit = []
        elif name == "tuv" and self._unit is not None:
            if self._language is not None:
                raise self._error("a <tuv> in a <tuv>")
            language = _tag(attributes.get("xml:lang") or attributes.get("lang") or "")
            if not language:
                raise self._error("a <tuv> without xml:lang")
            self._language, self._segment = language, None
        elif name == "seg" and self._language is not None:
            if self._segment is not None:
                raise self._error("a second <seg> in a <tuv>")
            self._text, self._inside = [], []

    def end(self, name: str) -> None:
        if self._text is not None:
            if self._inside:
                self._inside.pop()
            else:
                self._segment, self._text = _one_line("".join(self._text)), None
        elif name == "tuv" and self._unit is not None and self._language is not None:
            if self._segment is None:
                raise self._error("a <tuv> without <seg>")
            self._unit.append((self._language, self._segment))
            self._language = None
        elif name == "tu" and self._unit is not None:
            self._finish(self._unit)
            self._unit = None

    def characters(self, text: str) -> None:
        if self._text is not None and self._inside[-1:] != [True]:
            self._text.append(text)

    def outside(self, context: str, base: str | None, system: str | None, public: str | None) -> int:
        raise self._error(f"refers to what lies outside the file ({system or public}), which is never read")

    def unknown(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            raise self._error(f"&{name}; is not declared in this file; write the character itself")

    def _finish(self, unit: list[tuple[str, str]]) -> None:
        source, target = self._variant(unit, self._source), self._variant(unit, self._target)
        if source is None or target is None:
            self.incomplete += 1
            self._languages.update(language for language, _ in unit)
        else:
            self._complete += 1
            self._pairs.append(TextPair(source, target))

    def _variant(self, unit: list[tuple[str, str]], wanted: str) -> str | None:
        for language, text in unit:
            if language == wanted:
                return text
        if self._by_primary:
            for language, text in unit:
                if _primary(language) == _primary(wanted):
                    return text
        return None

    def _error(self, message: str) -> DataError:
        return DataError(f"{self._path}: line {self._line()}: {message}")


def _tag(language: str) -> str:
    return language.strip().lower().replace("_", "-")


def _primary(tag: str) -> str:
    return tag.partition("-")[0]


def _one_line(text: str) -> str:
    first, *rest = text.replace("\r", "\n").split("\n")
    if not rest:
        return text
    parts = [first.rstrip(" \t"), *(part.strip(" \t") for part in rest[:-1]), rest[-1].lstrip(" \t")]
    return " ".join(filter(None, parts))
