"""The page of a comparison: complete, in order, true to the tree, and safe from what runs are called."""

import warnings
from pathlib import Path
from typing import Any, Literal

import pytest
from matplotlib.figure import Figure

from nmt.analysis.comparison.sections import write_report
from nmt.analysis.comparison.tree import Comparison
from tests.comparisons import BLEU, comparison, text
from tests.pages import Page

HOSTILE = '<script src="//example.org">$x_1$</script>'


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of pictures that take no time; on the page each is drawn all the same."""
    draw = Figure.savefig

    def save(figure: Figure, file: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(file, Path):
            file.write_bytes(b"\x89PNG")
        else:
            draw(figure, file, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", save)


def renamed(tree: Any, names: dict[str, str]) -> Any:
    """The tree with other words wherever one of the names is all of a text, or its beginning."""
    if isinstance(tree, str):
        return next((new + tree.removeprefix(old) for old, new in names.items() if tree.startswith(old)), tree)
    if isinstance(tree, dict):
        return {renamed(key, names): renamed(value, names) for key, value in tree.items()}
    if isinstance(tree, tuple):
        parts = [renamed(part, names) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree


def written(found: Comparison, folder: Path) -> Page:
    files = write_report(found, folder)
    assert sorted(files) == sorted(folder.iterdir())
    page = Page(files[0].read_text(encoding="utf-8"))
    assert [file.name for file in files[:2]] == ["report.html", "report.md"]
    assert files[-1].name == "report.json"
    pictures = files[2:-1]
    assert len(page.all("svg")) == len(pictures), "every picture is on the page and beside it"
    markdown = files[1].read_text(encoding="utf-8")
    for file in pictures:
        assert file.read_bytes().startswith(b"\x89PNG")
        assert markdown.count(f"]({file.name})") == 1
    assert markdown.count("\n## ") == len(page.texts["h2"])
    return page


SECTIONS = [
    "In short",
    "Quality",
    "Differences",
    "By source length",
    "By rarest source word",
    "What goes wrong",
    "While training",
    "Cost",
    "Size of the beam",
    "Side by side",
    "Where attention looked",
    "How to do it again",
]


def test_everything_has_its_place(tmp_path: Path) -> None:
    found = comparison()
    page = written(found, tmp_path)
    assert page.texts["h1"] == [found.title]
    assert page.texts["h2"] == SECTIONS
    assert len(page.all("svg")) == 9
    assert "Left out" not in page.texts["main"][0]
    assert all(names["aria-label"] for names in page.all("svg"))
    for command in found.provenance.commands:
        assert command in page.texts["code"][0]
    cells = page.texts["td"]
    for quality in found.texts[0].quality.values():
        bleu = quality.bleu
        assert f"{bleu.value:.1f} ± {bleu.spread:.1f}\n[{bleu.low:.1f}, {bleu.high:.1f}]" in cells
    for name, cost in found.cost.items():
        assert name in page.texts["th"]
        assert f"{cost.parameters:,}" in cells
        assert f"{cost.sentences_per_second[5]:.1f}" in cells
    for example in found.texts[0].examples:
        assert example.source in page.texts["dd"]
    assert page.texts["ins"] == ["Underlined", "bench", "stands", "and cleans"]


def test_names_and_texts_are_never_markup(tmp_path: Path) -> None:
    """The parser refuses scripts and references; here they must be readable as well."""
    hostile = {name: f"{name}{HOSTILE}" for name in BLEU}
    names = renamed(comparison(), hostile | {"Ein Mann": HOSTILE, "A man": HOSTILE, "▁": HOSTILE, "python": HOSTILE})
    kept = names._replace(
        title=HOSTILE,
        budget=HOSTILE,
        systems=tuple(system._replace(model=system.model.removesuffix(HOSTILE)) for system in names.systems),
        texts=tuple(each._replace(name=HOSTILE, notes=(HOSTILE,)) for each in names.texts),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of matplotlib, where a picture has no room
        page = written(kept, tmp_path)
    assert page.texts["title"] == [HOSTILE]
    for name in hostile.values():
        assert name in page.texts["th"]
        assert name in "".join(page.texts["text"]), "in the pictures, too, on several lines"


@pytest.mark.parametrize(
    ("part", "empty", "heading", "pictures"),
    [
        ("differences", (), "Differences", 8),
        ("by_length", None, "By source length", 8),
        ("by_rarest_word", None, "By rarest source word", 8),
        ("rates", {}, "What goes wrong", 9),
        ("beams", {}, "Size of the beam", 8),
        ("examples", (), "Side by side", 9),
        ("attention", (), "Where attention looked", 7),
    ],
)
@pytest.mark.usefixtures("stand_ins")
def test_what_is_not_there_is_left_out_with_the_reason(
    tmp_path: Path, part: str, empty: object, heading: str, pictures: int
) -> None:
    less = text()._replace(**{part: empty, "left_out": {part: "because of <this>"}})  # type: ignore[arg-type]
    page = written(comparison()._replace(texts=(less,)), tmp_path)
    assert page.texts["h2"] == SECTIONS
    assert len(page.all("svg")) == pictures
    [place] = [section for section in page.texts["section"] if section.strip().startswith(heading)]
    assert place.split("\n")[2] == "Left out: because of <this>."
    assert len(place.strip().split("\n")) == 2


@pytest.mark.usefixtures("stand_ins")
def test_one_system_with_one_seed_and_no_curve(tmp_path: Path) -> None:
    whole = comparison(seeds=1)
    only = whole._replace(
        systems=whole.systems[:1],
        curves=(),
        cost={"seq2seq": whole.cost["seq2seq"]._replace(minutes=None, peak_memory_mb=None, sentences_per_second={})},
        texts=(
            whole.texts[0]._replace(
                quality={"seq2seq": whole.texts[0].quality["seq2seq"]._replace(perplexity=None)},
                differences=(),
                by_length=None,
                by_rarest_word=None,
                rates={},
                beams={},
                attention=(),
                left_out={"differences": "one system"},
            ),
        ),
    )
    page = written(only, tmp_path)
    assert "Is it more than chance?" not in page.texts["dt"]
    assert "-" in page.texts["td"]
    assert "±" not in "".join(page.texts["td"])
    assert len(page.all("svg")) == 2


@pytest.mark.parametrize(
    ("seeds", "test", "said"),
    [
        (1, "randomization", "approximate randomisation"),
        (1, "bootstrap", "paired bootstrap"),
        (3, "bootstrap", "Student's"),
    ],
)
@pytest.mark.usefixtures("stand_ins")
def test_it_says_which_test_was_made(
    tmp_path: Path, seeds: int, test: Literal["randomization", "bootstrap"], said: str
) -> None:
    page = written(comparison(seeds)._replace(test=test), tmp_path)
    [line] = [line for line in page.texts["li"] if line.startswith("p: ")]
    assert said in line
    assert ("seeds" in line) == (seeds > 1)


@pytest.mark.usefixtures("stand_ins")
def test_perplexities_that_cannot_be_compared_are_no_curve_to_compare(tmp_path: Path) -> None:
    quality = {name: each._replace(perplexity=None) for name, each in text().quality.items()}
    found = comparison()
    other = written(found._replace(texts=(text()._replace(quality=quality),)), tmp_path)
    said = "The systems have different subwords: these perplexities cannot be compared."
    assert said in other.texts["li"]
    assert said not in written(found, tmp_path).texts["li"]


@pytest.mark.usefixtures("stand_ins")
def test_two_texts_are_told_apart(tmp_path: Path) -> None:
    other = text()._replace(name="own text")
    page = written(comparison()._replace(texts=(text(), other)), tmp_path)
    assert page.texts["h2"].count("Quality: multi30k test") == page.texts["h2"].count("Quality: own text") == 1
    assert page.texts["h2"].count("Cost") == 1
    assert "Which is best on own text?" in page.texts["dt"]
    assert (tmp_path / "quality_own_text.png").is_file()


@pytest.mark.usefixtures("stand_ins")
def test_texts_whose_names_differ_in_a_sign_only_keep_their_pictures(tmp_path: Path) -> None:
    written(comparison()._replace(texts=(text()._replace(name="a b"), text()._replace(name="a/b"))), tmp_path)
