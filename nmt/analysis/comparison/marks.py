"""Where a translation departs from its reference, word by word, marked for a reader.

Two marks: words of the translation that the reference has not (or not there), and words of the reference in whose place
the translation has nothing. Words put in place of others are marked, what they replace is not repeated: it stands in
the reference. The alignment is difflib's (longest matching blocks), which is how a reader compares, and no edit
distance.

A word is a run of letters, digits and what joins them; any other character stands alone. Scripts that do without spaces
are compared character by character. Nothing is normalised: another case, or another kind of space within a word, is a
difference, as it is for BLEU.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher

import regex

from nmt.analysis.document import Piece

LEGEND = (
    Piece("Underlined", "own"),
    Piece(" or bold: not in the reference, or not there. ", "same"),
    Piece("Struck through", "missing"),
    Piece(": in the reference, with nothing in its place; no part of the translation.", "same"),
)

_WITHOUT_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_LETTER = rf"(?![{_WITHOUT_SPACES}])[\p{{L}}\p{{N}}\p{{M}}_\u200c\u200d]"
_WORD = regex.compile(rf"(?:{_LETTER})+(?:['’\-](?:{_LETTER})+)*|(?!\s)\X")


def differences(translation: str, reference: str) -> list[Piece]:
    """The translation in pieces, in order, with what it lacks in between.

    All pieces but those that are missing give the translation back, letter by letter.
    """
    own, wanted = _spans(translation), _spans(reference)
    matcher = SequenceMatcher(None, _texts(reference, wanted), _texts(translation, own), autojunk=False)
    pieces: list[Piece] = []
    done = 0  # of the translation
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "delete":
            # With the space before it, so directly behind the last word; the first word with the space behind it.
            begin = wanted[i1 - 1][1] if i1 else wanted[0][0]
            end = wanted[i2 - 1][1] if i1 or i2 == len(wanted) else wanted[i2][0]
            pieces.append(Piece(reference[begin:end], "missing"))
            continue
        begin, end = own[j1][0], own[j2 - 1][1]
        pieces += [
            Piece(translation[done:begin], "same"),
            Piece(translation[begin:end], "same" if kind == "equal" else "own"),
        ]
        done = end
    pieces.append(Piece(translation[done:], "same"))
    return _merged(pieces)


def _spans(text: str) -> list[tuple[int, int]]:
    """Where each word stands."""
    return [match.span() for match in _WORD.finditer(text)]


def _texts(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    return [text[begin:end] for begin, end in spans]


def _merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbours under one mark as one piece, none empty."""
    merged: list[Piece] = []
    for piece in pieces:
        if merged and merged[-1].mark == piece.mark:
            piece = Piece(merged.pop().text + piece.text, piece.mark)
        if piece.text:
            merged.append(piece)
    return merged
