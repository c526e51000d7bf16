"""Sentences of the demo grammar: main clauses joined, commas, capitals and final marks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from nmt.data.demo_clause import Clause
from nmt.data.demo_syntax import English, German, Source, Word


@dataclass(eq=False, slots=True)
class Sentence:
    """Main clauses, joined by connectors (English, German), and the final mark."""

    clauses: list[Clause]
    connectors: list[tuple[str, str]] = field(default_factory=list)
    question: bool = False
    source: list[Source] = field(default_factory=list)
    source_commas: set[int] = field(default_factory=set)  # positions followed by a comma
    words: list[Word] = field(default_factory=list)
    target_commas: set[int] = field(default_factory=set)
    _connectors: list[Source] = field(default_factory=list)

    def make_source(self) -> int:
        """Makes the English words; returns their number."""
        mode = "question" if self.question else "statement"
        words: English = self.clauses[0].english(mode)
        for (text, _), clause in zip(self.connectors, self.clauses[1:], strict=True):
            self._connectors.append(Source(text))
            words += [None, self._connectors[-1], *clause.english(mode)]
        self.source, self.source_commas = split_commas(words)
        return len(self.source)

    def make_target(self) -> int:
        """Makes the German words (after the English ones); returns their number."""
        order = "question" if self.question else "main"
        words: German = self.clauses[0].german(order)
        for (_, text), source, clause in zip(self.connectors, self._connectors, self.clauses[1:], strict=True):
            if text == "deshalb":  # an adverb: it takes the front field
                words += [None, *clause.german(order, opener=Word(text, (source,), "connector", clause=clause))]
            else:
                comma: German = [] if text in ("und", "oder") else [None]
                words += [*comma, Word(text, (source,), "coordinator"), *clause.german(order)]
        self.words, self.target_commas = split_commas(words)
        return len(self.words)


Token = TypeVar("Token")


def split_commas(words: list[Token | None]) -> tuple[list[Token], set[int]]:
    """Words without boundaries, and the positions that a comma follows (never the last)."""
    kept: list[Token] = []
    commas: set[int] = set()
    for word in words:
        if word is not None:
            kept.append(word)
        elif kept:
            commas.add(len(kept) - 1)
    commas.discard(len(kept) - 1)
    return kept, commas


def spell(texts: list[str], commas: set[int], mark: str) -> str:
    """Words with their commas, a capital at the start and the final mark."""
    pieces = [text + "," if index in commas else text for index, text in enumerate(texts)]
    pieces[0] = pieces[0][:1].upper() + pieces[0][1:]
    return " ".join(pieces) + mark
