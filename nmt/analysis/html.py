"""Pieces of a page that is one file: no network, no script, light or dark as the reader's screen is, white on paper.

What is ``Markup`` goes into the page as it stands, any other text is escaped, whoever wrote it. Pictures are drawn by
matplotlib and set into the page as SVG: their text stays text, and black and the grey of the grid follow the page.
"""

import hashlib
import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1b1b; --quiet: #555; --line: #ccc; --grid: #ddd;
  --shade: #f4f4f4; --link: #0b57a4; --own: #fbe3d0; --missing: #dceaf6; }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --text: #e8e8e8; --quiet: #acb0b6; --line: #4a4e55;
  --grid: #3a3d43; --shade: #212429; --link: #8ec2f5; --own: #5b3310; --missing: #12395a; }
  figure svg image { filter: brightness(1.35); } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem 1.25rem 4rem; max-width: 72rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: .6rem 0; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .6rem; padding-top: .5rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
p, .notes li { max-width: 46rem; overflow-wrap: break-word; }
a { color: var(--link); }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li { display: inline-block; margin: 0 1.2em .2em 0; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; color: var(--quiet); padding-bottom: .3rem; }
th, td { padding: .28rem .65rem; text-align: right; vertical-align: top; white-space: pre; font-weight: normal;
  border-bottom: 1px solid var(--line); }
thead th { font-weight: 600; white-space: pre-line; vertical-align: bottom; border-bottom: 2px solid var(--line); }
th.left, td.left { text-align: left; }
.notes { margin: .4rem 0 1rem; padding-left: 1.1rem; color: var(--quiet); font-size: .88rem; }
figure { margin: 1rem 0 1.4rem; }
figure .scroll { margin: 0; }
figure svg { display: block; max-width: 100%; height: auto; fill: currentColor; }
.beside { display: flex; flex-wrap: wrap; gap: 0 2rem; }
.beside figure { flex: 0 1 auto; min-width: 0; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { max-width: 46rem; color: var(--quiet); font-size: .88rem; }
pre { background: var(--shade); padding: .6rem .8rem; overflow-x: auto; font-size: .85rem; line-height: 1.45; }
dl { display: grid; grid-template-columns: 12rem minmax(0, 46rem); gap: .3rem 1rem; margin: .8rem 0; }
dt { color: var(--quiet); overflow-wrap: break-word; }
dd { margin: 0; overflow-wrap: break-word; }
dl + dl { border-top: 1px solid var(--line); padding-top: .8rem; }
@media (max-width: 40rem) {
  dl { display: block; }
  dd { margin-bottom: .5rem; }
  dt { font-size: .85rem; }
}
ins, del { padding: 0 .15em; border-radius: .2em; -webkit-box-decoration-break: clone; box-decoration-break: clone; }
ins { background: var(--own); text-decoration: underline; text-decoration-thickness: .12em; }
del { background: var(--missing); text-decoration: line-through; }
@media print {
  @page { size: A4; margin: 14mm; }
  :root { color-scheme: light; --back: #fff; --text: #000; --quiet: #444; --line: #bbb; --grid: #ddd; --shade: #fff;
    --link: #000; --own: #fff; --missing: #fff; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  .scroll, pre { overflow: visible; }
  table { font-size: 8pt; }
  th, td { padding: 1.2mm 1.6mm; white-space: pre-line; }
  pre { padding: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
  thead { display: table-header-group; }
  tr, figure, dl { break-inside: avoid; }
  figure svg { min-width: 0 !important; max-height: 230mm; }
  figure svg image { filter: none; }
  h2, h3, caption { break-after: avoid; }
}
"""

_NOTHING_FROM_OUTSIDE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_HEADING = re.compile(r"<h2>(.*?)</h2>", re.DOTALL)
_PICTURE = re.compile(r'<svg id="(\w+)".*?</svg>', re.DOTALL)

_FOLLOWS_THE_PAGE = {"#000000": "currentColor", "#dddddd": "var(--grid)", "#ffffff": "var(--back)"}
"""Colours of a picture that are those of the page: of text and axes, of the grid, of what is empty."""


def page(title: str, sections: Sequence[str]) -> Markup:
    """The whole file: title, contents, sections.

    Args:
        title: its heading as well.
        sections: made by :func:`section`; each gets an address, and a place in the contents.
    """
    headings: list[tuple[str, str]] = []

    def addressed(match: re.Match[str]) -> str:
        address = _address(match[1], [taken for taken, _ in headings])
        headings.append((address, match[1]))
        return f'<h2 id="{address}">{match[1]}</h2>'

    seen: Counter[str] = Counter()

    def own(match: re.Match[str]) -> str:
        """What a picture refers to is its own, also where the same picture is there twice."""
        seen[match[1]] += 1
        return match[0] if seen[match[1]] == 1 else match[0].replace(match[1], f"{match[1]}_{seen[match[1]]}")

    body = _PICTURE.sub(own, _HEADING.sub(addressed, _joined(sections)))
    contents = "".join(f'<li><a href="#{address}">{heading}</a></li>' for address, heading in headings)
    navigation = f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n' if headings else ""
    return Markup(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_FROM_OUTSIDE}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1></header>\n{navigation}<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def section(heading: str, *blocks: str) -> Markup:
    """A part of the page, with a place in its contents."""
    return Markup("<section>\n<h2>{}</h2>\n{}\n</section>").format(heading, _joined(blocks))


def subsection(heading: str, *blocks: str) -> Markup:
    """A part of a section."""
    return Markup("<section>\n<h3>{}</h3>\n{}\n</section>").format(heading, _joined(blocks))


def paragraph(text: str) -> Markup:
    """A paragraph of running text."""
    return Markup("<p>{}</p>").format(text)


def notes(lines: Sequence[str]) -> Markup:
    """Small print: how something was measured, and what to bear in mind."""
    return Markup('<ul class="notes">{}</ul>').format(_joined([Markup("<li>{}</li>").format(line) for line in lines]))


def code(text: str) -> Markup:
    """Commands or file contents, as they stand."""
    return Markup('<pre tabindex="0"><code>{}</code></pre>').format(text)


def entries(texts: Sequence[tuple[str, str]]) -> Markup:
    """Labels with a text each, which runs from left or right as its first letter does."""
    return Markup('<dl dir="ltr">{}</dl>').format(
        _joined([Markup('<dt dir="auto">{}</dt><dd dir="auto">{}</dd>').format(*pair) for pair in texts])
    )


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,), caption: str = ""
) -> Markup:
    """A table whose first column names the rows; on a narrow screen it scrolls by itself.

    Args:
        header: names of the columns.
        rows: as many cells each; a line break within a cell is kept.
        left: columns of words; the others are numbers and stand at the right.
        caption: above it.
    """
    assert all(len(row) == len(header) for row in rows), "a row with other cells than the header"

    def cell(tag: str, column: int, text: str, scope: str = "") -> Markup:
        kind = Markup(' class="left"') if column in left else ""
        return Markup("<{0}{1}{2}>{3}</{0}>").format(Markup(tag), Markup(scope), kind, text)

    def line(row: Sequence[str]) -> Markup:
        cells = [cell("td", column, text) for column, text in enumerate(row[1:], 1)]
        return Markup("<tr>{}</tr>").format(_joined([cell("th", 0, row[0], ' scope="row"'), *cells]))

    heads = _joined([cell("th", column, name, ' scope="col"') for column, name in enumerate(header)])
    return Markup(
        '<div class="scroll" role="region" aria-label="{}" tabindex="0"><table>{}<thead><tr>{}</tr></thead>\n'
        "<tbody>\n{}\n</tbody></table></div>"
    ).format(
        caption or ", ".join(name for name in header if name),
        Markup("<caption>{}</caption>").format(caption) if caption else "",
        heads,
        _joined([line(row) for row in rows]),
    )


# --- pictures ---------------------------------------------------------------------------------------------------------


def picture(figure: "Figure", alternative: str, caption: str = "") -> Markup:
    """A picture in the page itself, wide enough to be read: on a narrow screen it scrolls.

    Args:
        figure: drawn with black text and axes and a grid of ``#DDDDDD``, which follow the page.
        alternative: what it shows, for those who do not see it.
        caption: below it.
    """
    below = Markup("<figcaption>{}</figcaption>").format(caption) if caption else ""
    image = Markup('<div class="scroll" tabindex="0" role="region" aria-label="{}">{}</div>').format(
        alternative, _vector(figure, alternative)
    )
    return Markup("<figure>{}{}</figure>").format(image, below)


def beside(*pictures: str) -> Markup:
    """Pictures side by side, as many as the page is wide for."""
    return Markup('<div class="beside">{}</div>').format(_joined(pictures))


def _vector(figure: "Figure", alternative: str) -> Markup:
    """The picture as an ``<svg>`` element that gets along with others on a page."""
    import matplotlib

    drawn = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "nmt"}):
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # here; the reader's browser has fonts of its own
            figure.savefig(drawn, format="svg", transparent=True, metadata=nothing)
    text = drawn.getvalue()
    root = ElementTree.fromstring(text)
    prefix = f"p{hashlib.sha256(text.encode()).hexdigest()[:10]}"
    _make_unique(root, prefix)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # HTML knows SVG without its namespace
        if "style" in element.attrib:
            element.set("style", _page_colours(element.attrib["style"]))
    for definitions in root.findall("defs"):
        for style in definitions.findall("style"):  # for all elements of the whole page
            definitions.remove(style)
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])  # points
    root.attrib = {
        "id": prefix,
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": alternative,
        # as large as drawn, or as the page is wide; but never so small that its text cannot be read
        "style": f"width: {width * 4 / 3:.0f}px; min-width: {min(width * 4 / 3, 560):.0f}px; "
        f"aspect-ratio: {width:.0f} / {height:.0f}",
    }
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _make_unique(root: ElementTree.Element, prefix: str) -> None:
    """Identifiers that something refers to get a prefix, the others go: ``axes_1`` is in every picture."""
    referred: set[str] = set()

    def renamed(match: re.Match[str]) -> str:
        referred.add(match[2])
        return f"{match[1]}{prefix}-{match[2]}"

    for element in root.iter():
        for name in [name for name in element.attrib if name.endswith("}href")]:
            element.set("href", re.sub(r"^(#)([\w-]+)$", renamed, element.attrib.pop(name)))
        for name, value in element.attrib.items():
            element.set(name, re.sub(r"(url\(#)([\w-]+)", renamed, value))
    for element in root.iter():
        name = element.attrib.pop("id", "")
        if name in referred:
            element.set("id", f"{prefix}-{name}")


def _page_colours(style: str) -> str:
    for drawn, followed in _FOLLOWS_THE_PAGE.items():
        style = style.replace(drawn, followed)
    return style


def _joined(blocks: Sequence[str]) -> Markup:
    return Markup("\n").join(blocks)


def _address(heading: str, taken: Sequence[str]) -> str:
    """A heading as the part of an address behind ``#``: its letters and digits, and a number where it is taken."""
    plain = "-".join(re.findall(r"\w+", Markup(heading).unescape().casefold())) or "section"
    address, number = plain, 1
    while address in taken:
        number += 1
        address = f"{plain}-{number}"
    return address
