"""Pages that are one file: whole, self-contained, and safe from what is written on them."""

import re
from collections.abc import Callable

import pytest
from markupsafe import Markup
from matplotlib.figure import Figure

from nmt.analysis import html
from nmt.analysis.figures import COLOURS, GRID
from tests.pages import Page

HOSTILE = "</p><script>alert('1')</script> & \"quotes\" <b onclick=x>"


def drawn(text: str = "title") -> Figure:
    """Lines with marks, clipped; a legend; a heat map."""
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes, other = figure.subplots(1, 2)
    axes.plot([1, 2, 3], [3, 1, 2], "o-", color=COLOURS["bahdanau"], label=text)
    axes.plot([1], [1], "D", color="#000000")
    axes.bar([1], [2], hatch="//")
    axes.grid(color=GRID)
    axes.set_title(text)
    axes.legend(frameon=False)
    other.imshow([[0.0, 1.0], [0.5, 0.2]])
    return figure


PIECES: dict[str, Callable[[str], Markup]] = {
    "paragraph": html.paragraph,
    "notes": lambda text: html.notes([text, "other"]),
    "code": html.code,
    "table": lambda text: html.table([text, "n"], [[text, "1"]], caption=text),
    "entries": lambda text: html.entries([(text, text)]),
    "picture": lambda text: html.picture(drawn(text), text, text),
    "section": lambda text: html.section(text, text),
    "subsection": lambda text: html.subsection(text, text),
}


@pytest.mark.parametrize("name", PIECES)
def test_whatever_is_written_is_text(name: str) -> None:
    """Escaped once: what a reader sees is what was given."""
    found = Page(html.page(HOSTILE, [html.section(HOSTILE, PIECES[name](HOSTILE))]))
    assert found.texts["title"] == [HOSTILE]
    assert found.texts["h1"] == [HOSTILE]
    assert HOSTILE in found.texts["main"][0].replace(HOSTILE, "", 1)  # the heading's, and the piece's
    assert not found.all("b")


def test_a_block_that_is_no_markup_is_escaped() -> None:
    assert "<i>" not in html.section("heading", "<i>text</i>")
    assert "<i>" in html.section("heading", Markup("<i>text</i>"))


def test_contents_lead_to_every_section() -> None:
    headings = ["Quality", "Quality & more", "quality", "Größe", "猫", "!!", "Quality"]
    found = Page(html.page("title", [html.section(name, html.subsection("Quality")) for name in headings]))
    assert found.texts["a"] == headings
    targets = [names["href"] for names in found.all("a")]
    assert targets == [f"#{names['id']}" for names in found.all("h2")]
    assert len(set(targets)) == len(headings)
    assert len(found.all("main")) == len(found.all("header")) == len(found.all("nav")) == 1
    assert not Page(html.page("title", [html.paragraph("text")])).all("nav")


def test_a_table_names_its_rows_and_columns() -> None:
    found = Page(html.table(["system", "kind", "BLEU"], [["a", "x", "1.0\n[0, 2]"], ["b", "y", "2"]], left=(0, 1)))
    assert found.texts["th"] == ["system", "kind", "BLEU", "a", "b"]
    assert [names["scope"] for names in found.all("th")] == ["col", "col", "col", "row", "row"]
    assert found.texts["td"] == ["x", "1.0\n[0, 2]", "y", "2"]
    assert [names.get("class") for names in found.all("td")] == ["left", None, "left", None]
    assert found.all("div")[0]["aria-label"] == "system, kind, BLEU"
    with pytest.raises(AssertionError, match="other cells"):
        html.table(["a", "b"], [["1"]])


def test_a_picture_keeps_its_text_and_takes_the_colours_of_the_page() -> None:
    markup = html.picture(drawn("a line"), "what it shows", "below")
    found = Page(markup)
    assert found.texts["text"].count("a line") == 2  # title, legend
    assert found.texts["figcaption"] == ["below"]
    assert [(names["role"], names["aria-label"]) for names in found.all("svg")] == [("img", "what it shows")]
    styles = " ".join(names["style"] or "" for _, names in found.elements if "style" in names).lower()
    assert not re.search(r"#(000000|ffffff|dddddd)\b", styles)
    assert "stroke: var(--grid)" in styles
    assert "stroke: currentcolor" in styles
    assert COLOURS["bahdanau"].lower() in styles
    assert "style" not in found.texts, "rules for the whole page"
    assert "data:image/png;base64," in markup  # the heat map


def test_pictures_of_one_page_do_not_share_what_they_refer_to() -> None:
    """Both define a mark and a clip; the parser refuses what is defined twice, or nowhere."""
    pictures = [html.picture(drawn(text), "alternative") for text in ("one", "other", "one")]
    found = Page(html.page("title", [html.section("one", *pictures), html.beside(*pictures)]))
    assert len(found.all("clippath")) % 6 == 0
    assert found.all("use")


def test_a_picture_is_the_same_every_time() -> None:
    assert html.picture(drawn(), "one") == html.picture(drawn(), "one")
