"""A report said once and shown twice: as a page of its own (:mod:`nmt.analysis.html`) and as Markdown.

A document is sections of blocks. The page holds its pictures; for the Markdown each is a file beside it.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from markupsafe import Markup

from nmt.analysis import html
from nmt.analysis.evaluated_runs import write_text
from nmt.analysis.report import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE_FILE = "report.html"
MARKDOWN_FILE = "report.md"

Mark = Literal["same", "own", "missing"]


class Piece(NamedTuple):
    """Some text under one mark: as it is, put in, or taken out."""

    text: str
    mark: Mark


Text = str | Sequence[Piece]


class Picture(NamedTuple):
    """A figure, and what it says to those who do not see it."""

    name: str  # of its file, without ending
    figure: "Figure"
    alternative: str


class Paragraph(NamedTuple):
    """Running text."""

    text: Text


class Table(NamedTuple):
    """Figures; the first column names the rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]  # a line break within a cell is kept where there is room for it
    left: Sequence[int] = (0,)  # columns of words
    caption: str = ""


class Notes(NamedTuple):
    """Small print."""

    lines: Sequence[str]


class Entries(NamedTuple):
    """Labels with a text each."""

    entries: Sequence[tuple[str, Text]]


class Shown(NamedTuple):
    """Pictures, beside each other where there are several."""

    pictures: Sequence[Picture]
    caption: str = ""


class Code(NamedTuple):
    """Commands, as they stand."""

    text: str


Block = Paragraph | Table | Notes | Entries | Shown | Code


class Section(NamedTuple):
    """A part with a heading."""

    heading: str
    blocks: Sequence[Block]


def write(title: str, sections: Sequence[Section], folder: Path) -> list[Path]:
    """Write ``report.html``, ``report.md`` and each picture as a PNG.

    Args:
        title: of both.
        sections: in their order.
        folder: that is there.

    Returns:
        The files, the page first, then the Markdown.
    """
    files = [folder / PAGE_FILE, folder / MARKDOWN_FILE]
    names: dict[int, str] = {}  # of each picture's file
    for picture in _pictures(sections):
        name, number = picture.name, 1
        while folder / f"{name}.png" in files:  # of texts whose names differ in a sign only
            number += 1
            name = f"{picture.name}_{number}"
        names[id(picture)] = f"{name}.png"
        files.append(folder / f"{name}.png")
        picture.figure.savefig(files[-1])
    write_text(files[0], page(title, sections))
    write_text(files[1], markdown(title, sections, names))
    return files


def _pictures(sections: Sequence[Section]) -> list[Picture]:
    return [
        picture
        for section in sections
        for block in section.blocks
        if isinstance(block, Shown)
        for picture in block.pictures
    ]


# --- as a page --------------------------------------------------------------------------------------------------------

_TAGS: dict[Mark, str] = {"same": "{}", "own": "<ins>{}</ins>", "missing": "<del>{}</del>"}


def page(title: str, sections: Sequence[Section]) -> Markup:
    """The document as one file of HTML."""
    return html.page(title, [html.section(part.heading, *map(_as_html, part.blocks)) for part in sections])


def _as_html(block: Block) -> Markup:
    match block:
        case Paragraph(text):
            return html.paragraph(tagged(text))
        case Table(header, rows, left, caption):
            return html.table(header, rows, left, caption)
        case Notes(lines):
            return html.notes(lines)
        case Entries(entries):
            return html.entries([(label, tagged(text)) for label, text in entries])
        case Shown(pictures, caption):
            shown = [html.picture(picture.figure, picture.alternative, caption) for picture in pictures]
            return shown[0] if len(shown) == 1 else html.beside(*shown)
        case Code(text):
            return html.code(text)


def tagged(text: Text) -> str:
    """As HTML: ``<ins>`` around what is put in, ``<del>`` around what is taken out."""
    if isinstance(text, str):
        return text
    return Markup("").join(Markup(_TAGS[piece.mark]).format(piece.text) for piece in text)


# --- as Markdown ------------------------------------------------------------------------------------------------------

_AROUND: dict[Mark, str] = {"same": "", "own": "**", "missing": "~~"}
_SPECIAL = re.compile(r"([\\`*|]|<(?=[\w/!?])|(?<!\w)_|_(?!\w)|\](?=[(\[])|~(?=~))")  # where it would be markup


def markdown(title: str, sections: Sequence[Section], pictures: Mapping[int, str] | None = None) -> str:
    """The document as Markdown that can be read as it is, too.

    Args:
        title: its heading.
        sections: in their order.
        pictures: file of each picture, by its ``id``; None leaves pictures out.
    """
    parts = [f"# {_line(title)}"]
    for section in sections:
        parts.append(f"## {_line(section.heading)}")
        parts += filter(None, (_as_markdown(block, pictures or {}) for block in section.blocks))
    return "\n\n".join(parts) + "\n"


def _as_markdown(block: Block, pictures: Mapping[int, str]) -> str:
    match block:
        case Paragraph(text):
            return _starred(text)
        case Table(header, rows, left, caption):
            cells = [[_line(cell) for cell in row] for row in rows]
            table = markdown_table(list(map(_line, header)), cells, left)
            return f"{_line(caption)}:\n\n{table}" if caption else table
        case Notes(lines):
            return "\n".join(f"- {_line(line)}" for line in lines)
        case Entries(entries):
            return "\n".join(f"- {_line(label)}: {_starred(text)}" for label, text in entries)
        case Shown(shown, caption):
            files = [(picture, pictures[id(picture)]) for picture in shown if id(picture) in pictures]
            images = [f"![{_line(picture.alternative).translate(_BRACKETS)}]({file})" for picture, file in files]
            return "\n".join([*images, *([f"\n{_line(caption)}"] if caption and images else [])])
        case Code(text):
            return "\n".join(f"    {line}" for line in text.split("\n"))


_BRACKETS = str.maketrans("[]", "()")


def _line(text: str) -> str:
    return " ".join(text.split())


def _starred(text: Text) -> str:
    """Text of people, with its stars and brackets made harmless; marks stand directly around words."""
    if isinstance(text, str):
        return _SPECIAL.sub(r"\\\1", _line(text))
    parts = []
    for piece in text:
        inner = _SPECIAL.sub(r"\\\1", piece.text.strip())
        before, after = (" " if piece.text[:1].isspace() else ""), (" " if piece.text[-1:].isspace() and inner else "")
        mark = _AROUND[piece.mark] if inner else ""
        parts.append(f"{before}{mark}{inner}{mark}{after}")
    return _line("".join(parts))
