"""The commands of a page of documentation."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple


class Command(NamedTuple):
    """One ``python -m nmt.X ...`` of a page."""

    place: str
    module: str
    words: list[str]  # behind the module, without redirections, comments and ...


def commands(page: Path) -> list[Command]:
    """Those of the indented lines of a page, and those that a back-quote begins."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.split("\n") if line.startswith("    ")]
    found = []
    for line in [*lines, *re.findall(r"`([^`\n]* -m nmt\.[^`\n]*)`", text)]:
        match = re.search(r"-m (nmt\.[a-z_]+)(.*)", line)
        if match is None:
            continue
        words = [word for word in shlex.split(match[2], comments=True) if word != "..."]
        ends = [place for place, word in enumerate(words) if word[0] in "<>|"]
        found.append(Command(f"{page.name}: {line.strip()}", match[1], words[: min(ends, default=len(words))]))
    return found
