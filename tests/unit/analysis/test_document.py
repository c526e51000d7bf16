"""A document as a page and as Markdown: the same, safe, and readable as it is."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from nmt.analysis.document import (
    Block,
    Code,
    Entries,
    Notes,
    Paragraph,
    Picture,
    Piece,
    Section,
    Shown,
    Table,
    markdown,
    write,
)
from tests.pages import Page


def picture(name: str) -> Picture:
    figure = Figure(figsize=(1, 1))
    figure.add_subplot().plot([1, 2])
    return Picture(name, figure, "a [line] that rises")


MARKED = (Piece("a", "same"), Piece(" big", "missing"), Piece(" ", "same"), Piece("c*t", "own"), Piece("", "own"))


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (Paragraph("two\nlines, 3 < 4, a_b"), "two lines, 3 < 4, a_b"),
        (Paragraph("<b> *bold* [a](b) _x_"), "\\<b> \\*bold\\* [a\\](b) \\_x\\_"),
        (Paragraph(MARKED), "a ~~big~~ **c\\*t**"),
        (Table(["x", "y"], [["a", "1\n[0, 2]"]]), "| x   |        y |\n| --- | -------: |\n| a   | 1 [0, 2] |"),
        (Table(["x"], [["a"]], caption="what"), "what:\n\n| x   |\n| --- |\n| a   |"),
        (Notes(["one", "two\nlines"]), "- one\n- two lines"),
        (Entries([("who", "me"), ("it", MARKED)]), "- who: me\n- it: a ~~big~~ **c\\*t**"),
        (Code("a *\n  b"), "    a *\n      b"),
    ],
    ids=str,
)
def test_markdown(block: Block, expected: str) -> None:
    assert markdown("Title", [Section("Part", [block])]) == f"# Title\n\n## Part\n\n{expected}\n"


def test_pictures_are_files_beside_the_markdown_and_in_the_page(tmp_path: Path) -> None:
    twins = [picture("one"), picture("one")]
    sections = [Section("A", [Shown(twins, "below")]), Section("B", [Shown([picture("two")])])]
    files = write("Title", sections, tmp_path)
    assert [file.name for file in files] == ["report.html", "report.md", "one.png", "one_2.png", "two.png"]
    assert sorted(files) == sorted(tmp_path.iterdir())
    text = files[1].read_text(encoding="utf-8")
    assert "![a (line) that rises](one.png)\n![a (line) that rises](one_2.png)\n\nbelow\n" in text
    page = Page(files[0].read_text(encoding="utf-8"))
    assert len(page.all("svg")) == 3
    assert page.texts["figcaption"] == ["below", "below"]
    assert "one" not in markdown("Title", sections), "where there are no files, nothing points to them"


def test_marks_are_elements_of_the_page(tmp_path: Path) -> None:
    page = Page(write("T", [Section("A", [Entries([("x", MARKED)])])], tmp_path)[0].read_text(encoding="utf-8"))
    assert page.texts["ins"] == ["c*t", ""]
    assert page.texts["del"] == [" big"]
    assert page.texts["dd"] == ["a big c*t"]
