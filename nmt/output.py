"""How translations are written: lines of text or JSON, a summary, and a file that appears when it is whole."""

import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

from nmt.alignment import Alignment
from nmt.cli import naming
from nmt.translation import Answer, Translation

DECIMALS = 6
"""Of attention weights in JSON: the float32 that they are holds no more."""


_LINE_ENDS = re.compile("[\x7f-\x9f\u2028\u2029]")
"""Control characters that ``json.dumps`` leaves as they are, and what else some readers take for the end of a line."""


def json_line(tree: dict[str, Any]) -> str:
    """An object as one line, whatever its reader takes for the end of one."""
    text = json.dumps(tree, ensure_ascii=False)
    return _LINE_ENDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


class Format(NamedTuple):
    """What is written for every input line."""

    kind: Literal["text", "json"]
    n_best: bool  # text: every translation, numbered by input line, instead of the best alone
    token_scores: bool  # json: the log probability of each subword, too
    align: Literal["hard", "soft"] | None  # the translations have alignments; soft: write the weights, too (json)

    def lines(self, number: int, answer: Answer) -> list[str]:
        """The lines for input line ``number``, with their ends."""
        if self.kind == "json":
            entries = [self._entry(translation) for translation in answer.translations]
            tree = {"source": answer.source, "source_tokens": answer.source_tokens, "translations": entries}
            return [json_line(tree)]
        if not self.n_best:
            best = answer.translations[0]
            return [" ||| ".join([best.text, *self._links(best)]) + "\n"]
        return [
            " ||| ".join([str(number), each.text, f"{each.score:.6f}", *self._links(each)]) + "\n"
            for each in answer.translations
        ]

    def _links(self, translation: Translation) -> list[str]:
        """The last column, if there is one; with nothing in it for a blank line."""
        if self.align is None:
            return []
        return [translation.alignment.pharaoh if translation.alignment else ""]

    def _entry(self, translation: Translation) -> dict[str, Any]:
        """A translation in JSON."""
        length = translation.length
        entry: dict[str, Any] = {
            "text": translation.text,
            "score": translation.score,
            "log_probability": translation.log_probability,
            "log_probability_per_token": translation.log_probability / length if length else None,
            "tokens": translation.tokens,
            "length": length,
            "finished": translation.finished,
        }
        if self.token_scores:
            entry["token_log_probabilities"] = translation.token_log_probabilities or []
        if self.align is not None:
            entry["alignment"] = translation.alignment.pharaoh if translation.alignment else ""
            entry["attention"] = _attention(translation.alignment, self.align) if translation.alignment else None
        return entry


def _attention(alignment: Alignment, align: Literal["hard", "soft"]) -> dict[str, Any]:
    """Whose weights, and if asked for the weights."""
    whose = {name: getattr(alignment, name) for name in ("layer", "layers", "head", "heads")}
    if align == "hard":
        return whose
    return {
        **whose,
        "source_tokens": alignment.source_tokens,
        "target_tokens": alignment.target_tokens,
        "weights": _rounded(alignment.weights),
        "source_words": alignment.source_words,
        "target_words": alignment.target_words,
        "word_weights": _rounded(alignment.word_weights),
    }


def _rounded(matrix: list[list[float]]) -> list[list[float]]:
    return [[round(value, DECIMALS) for value in row] for row in matrix]


class Summary:
    """Counts what goes through ``count``; as a string, the line for stderr."""

    def __init__(self) -> None:
        self.lines = self.blank = self.tokens = self.cut = 0
        self.seconds = 0.0

    def count(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """Pass everything on; the clock runs until the last answer."""
        start = time.perf_counter()
        for answer in answers:
            best = answer.translations[0]
            self.lines += 1
            self.blank += best.length == 0
            self.tokens += best.length
            self.cut += not best.finished
            yield answer
        self.seconds = time.perf_counter() - start

    def __str__(self) -> str:
        seconds = max(self.seconds, 1e-9)
        return (
            f"{self.lines} lines ({self.blank} blank) in {self.seconds:.1f} s without loading: "
            f"{(self.lines - self.blank) / seconds:.1f} sentences/s, {self.tokens / seconds:.0f} target tokens/s; "
            f"{self.cut} cut at the length limit"
        )


@contextmanager
def whole_file(path: Path | None) -> Iterator[TextIO]:
    """Where results go: stdout, or a file that has its name only once everything is in it.

    A name that exists and is no regular file (a named pipe, /dev/null) is written to directly.
    """
    if path is None:
        yield sys.stdout
        return
    final = Path(os.path.realpath(path))  # through a link to what it points to
    if not final.parent.is_dir():
        raise ValueError(f"output (--output): no folder {final.parent}; make it first")
    if final.exists() and not stat.S_ISREG(final.stat().st_mode):
        with open(final, "w", encoding="utf-8", newline="\n") as output:
            yield output
        return
    temporary = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        with naming(path), open(temporary, "w", encoding="utf-8", newline="\n") as output:
            yield output
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)
