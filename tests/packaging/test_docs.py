"""What the documentation tells a reader to type is accepted, and what it points to is there. No model is needed."""

import importlib
import re
from pathlib import Path

import pytest

from nmt.composition import composed, register_resolvers
from tests.doc_commands import commands

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

HYDRA = ("nmt.train", "nmt.prepare")

COMMANDS = [command for page in PAGES for command in commands(page)]


def test_commands_are_found():
    assert {command.module for command in COMMANDS} >= {"nmt.train", "nmt.translate", "nmt.score", "nmt.export"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.place)
def test_a_command_is_accepted(command, capsys):
    if command.module in HYDRA:
        composes(command.words)
        return
    module = "nmt.benchmark.__main__" if command.module == "nmt.benchmark" else command.module
    try:
        importlib.import_module(module).parser().parse_args(command.words)
    except SystemExit:
        pytest.fail(f"{command.place}\n{capsys.readouterr().err}")


def composes(words: list[str]) -> None:
    """Keys and groups exist and fit; of a sweep the first job is tried. Hydra's own and the shell's $ are left out."""
    register_resolvers()
    sweep = "-m" in words
    overrides = [word for word in words if not word.startswith(("hydra", "-")) and "$" not in word]
    config = composed([word.split(",", 1)[0] if sweep else word for word in overrides])
    assert config.seed >= 1


def test_a_command_that_is_wrong_is_not_accepted(tmp_path):
    """The reader of this file: it sees the option behind a line break, and what an inline command asks."""
    page = tmp_path / "page.md"
    page.write_text(
        "    python -m nmt.score \\\n        --nowhere < in > out   # why\n`python -m nmt.train no.key=1 ...`\n"
    )
    wrong = commands(page)
    assert [command.words for command in wrong] == [["--nowhere"], ["no.key=1"]]
    with pytest.raises(SystemExit):
        importlib.import_module("nmt.score").parser().parse_args(wrong[0].words)
    with pytest.raises(ValueError, match=r"no\.key"):
        composes(wrong[1].words)


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = page.parent / path if path else page
        assert target.is_file(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    """Paths in back-quotes that begin with a folder of this project."""
    for path in re.findall(r"`((?:nmt|configs|scripts|tests|docs)/[\w./]*)`", page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), f"{page.name}: {path}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_compile_and_import_what_there_is(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        compile(block, page.name, "exec")
        for names in re.findall(r"^from nmt import (.*)$", block, re.MULTILINE):
            for name in names.split(", "):
                assert hasattr(importlib.import_module("nmt"), name), f"{page.name}: {name}"
