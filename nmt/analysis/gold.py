"""Word alignments that people (or a grammar) have made, read from files.

Three forms, told apart by their first line:

    0-0 1-2 2?1 2p3      Pharaoh: a line a pair; ``-`` is a sure link, ``?`` or ``p`` a possible one; from 0 or 1
    0-0 1-2              ... with the possible links in a second file of the same form
    17 1 2 S             NAACL (Mihalcea and Pedersen 2003): sentence, source word, target word, S or P (none is S); all
                         counted from 1

A word is what stands between white space. Gold text is usually tokenised (``l' Union``, ``oh , oh !``) where the text
that a model is trained on is not. :func:`written` puts it as people write it, and still knows where each word stands.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.alignment import Span, words
from nmt.analysis.symmetrize import Link, Links
from nmt.data.corpus import DataError, in_step, is_blank, read_lines

_PHARAOH = re.compile(r"(\d+)([-?p])(\d+)")
_NAACL = re.compile(r"(\d+)\s+(\d+)\s+(\d+)(?:\s+([SP]))?(?:\s+[\d.]+)?\s*")  # the last is a confidence


class Side(NamedTuple):
    """One side of a pair as the model reads it."""

    text: str
    spans: list[Span]  # where each word stands


class GoldPair(NamedTuple):
    """A pair with its gold links."""

    source: Side
    target: Side
    sure: Links
    possible: Links  # the sure ones included


class GoldFiles(NamedTuple):
    """Where gold is, and how it is written."""

    source: Path
    target: Path
    links: Path
    possible: Path | None = None  # of a second file; its links are possible, sure or not
    base: int = 0  # Pharaoh: what the first word is called
    inverse: bool = False  # links are target-source
    languages: tuple[str, str] | None = None  # put tokenised text as people write it


def as_given(text: str) -> Side:
    """A line as it stands."""
    return Side(text, words(text))


def written(text: str, language: str) -> Side:
    """A tokenised line as people write it, by Moses' rules; as it stands where its words cannot be found in that."""
    from sacremoses import MosesDetokenizer

    tokens = text.split()
    joined = str(MosesDetokenizer(lang=language).detokenize(tokens, unescape=False))
    spans, place = [], 0
    for token in tokens:
        begin = joined.find(token, place)
        if begin < 0 or joined[place:begin].strip():
            return as_given(text)
        place = begin + len(token)
        spans.append((begin, place))
    return Side(joined, spans)


def read_gold(files: GoldFiles) -> list[GoldPair]:
    """All pairs, in order.

    Raises:
        DataError: a file is missing or of no known form, counts of lines differ, a link leads to no word; names file
            and line, what was found and what to do.
    """
    texts = list(in_step(read_lines(files.source), read_lines(files.target), str(files.source), str(files.target)))
    if not texts:
        raise DataError(f"{files.source}: no lines to align")
    sure, possible = _read(files.links, files.base, len(texts))
    if files.possible is not None:
        more = _read(files.possible, files.base, len(texts))
        possible = [before | each | other for before, each, other in zip(possible, *more, strict=True)]
    pairs = []
    for number, (source, target) in enumerate(texts, 1):
        if is_blank(source) or is_blank(target):
            raise DataError(f"{files.source} and {files.target}: line {number}: nothing to align with on one side")
        own_sure, own_possible = (_turned(each[number - 1], files.inverse) for each in (sure, possible))
        pair = GoldPair(*_sides(source, target, files.languages), own_sure, own_sure | own_possible)
        _check(pair, files, number)
        pairs.append(pair)
    if not any(pair.sure for pair in pairs):
        raise DataError(f"{files.links}: no sure link in it: recall and AER have nothing to count")
    return pairs


def _read(path: Path, base: int, pairs: int) -> tuple[list[set[Link]], list[set[Link]]]:
    """Sure and possible links of each pair, counted from 0."""
    lines = list(read_lines(path))
    first = next((line for line in lines if not is_blank(line)), "")
    if _NAACL.fullmatch(first):
        return _read_naacl(path, lines, pairs)
    if len(lines) != pairs:
        raise DataError(f"{path} has {len(lines)} lines but the text has {pairs}: line n must align pair n")
    found = [list(_pharaoh(line, path, number, base)) for number, line in enumerate(lines, 1)]
    sure = [{link for link, is_sure in links if is_sure} for links in found]
    return sure, [{link for link, is_sure in links if not is_sure} for links in found]


def _pharaoh(line: str, path: Path, number: int, base: int) -> Iterator[tuple[Link, bool]]:
    for item in line.split():
        match = _PHARAOH.fullmatch(item)
        if match is None:
            raise DataError(f"{path}: line {number}: expected links like 0-0 (sure) or 0?0 (possible), found {item!r}")
        link = (int(match[1]) - base, int(match[3]) - base)
        if min(link) < 0:
            raise DataError(f"{path}: line {number}: {item}: counted from 0, not from 1: leave out --gold-base 1")
        yield link, match[2] == "-"


def _read_naacl(path: Path, lines: Sequence[str], pairs: int) -> tuple[list[set[Link]], list[set[Link]]]:
    found: dict[tuple[int, bool], set[Link]] = defaultdict(set)
    for number, line in enumerate(lines, 1):
        if is_blank(line):
            continue
        match = _NAACL.fullmatch(line)
        if match is None:
            raise DataError(f"{path}: line {number}: expected 'sentence source target S|P', found {line!r:.60}")
        sentence, source, target = (int(match[group]) for group in (1, 2, 3))
        if not 1 <= sentence <= pairs:
            raise DataError(f"{path}: line {number}: sentence {sentence}, but the text has {pairs} lines")
        if 0 in (source, target):
            continue  # a word that is linked to nothing
        found[sentence - 1, match[4] != "P"].add((source - 1, target - 1))
    return [found[pair, True] for pair in range(pairs)], [found[pair, False] for pair in range(pairs)]


def _sides(source: str, target: str, languages: tuple[str, str] | None) -> tuple[Side, Side]:
    if languages is None:
        return as_given(source), as_given(target)
    return written(source, languages[0]), written(target, languages[1])


def _turned(links: set[Link], inverse: bool) -> Links:
    return frozenset((target, source) if inverse else (source, target) for source, target in links)


def _check(pair: GoldPair, files: GoldFiles, number: int) -> None:
    sizes = (len(pair.source.spans), len(pair.target.spans))
    for link in sorted(pair.possible):
        if link[0] >= sizes[0] or link[1] >= sizes[1]:
            raise DataError(
                f"{files.links}: pair {number}: links source word {link[0] + 1} and target word {link[1] + 1}, but the "
                f"pair has {sizes[0]} and {sizes[1]} words; counted from 1 (--gold-base 1), or target first "
                "(--gold-inverse)?"
            )


def reversed_pair(pair: GoldPair) -> GoldPair:
    """The same with source and target in each other's place."""
    sure, possible = (frozenset((target, source) for source, target in links) for links in (pair.sure, pair.possible))
    return GoldPair(pair.target, pair.source, sure, possible)
