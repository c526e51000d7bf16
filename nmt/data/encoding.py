"""Text to rows of ids, a passage at a time."""

from typing import NamedTuple

from nmt.data.cleaning import Passage, lines
from nmt.data.store import FlatRows, flat_rows, id_type
from nmt.data.tokenizer import TokenizerPair
from nmt.tokens import UNK


class Encoded(NamedTuple):
    """What became of a passage."""

    source: FlatRows  # of the pairs that stay
    target: FlatRows
    dropped: list[tuple[int, str]]  # place in the passage, and why it does not stay
    unknown: tuple[int, int]  # unknown subwords of each side, of the pairs that stay


class Encoder:
    """Encodes passages; one goes to every process.

    Args:
        tokenizers: of both sides.
        max_length: drop pairs with a longer side (EOS counted) or an empty one; None: drop none.
    """

    def __init__(self, tokenizers: TokenizerPair, max_length: int | None) -> None:
        self.tokenizers = tokenizers
        self._max_length = max_length

    def __call__(self, passage: Passage) -> Encoded:
        """Encode on one core."""
        sources, targets = (
            tokenizer.encode_batch(lines(text), threads=1)
            for tokenizer, text in zip(self.tokenizers, passage, strict=True)
        )
        dropped = []
        if self._max_length is not None:
            for place, (source, target) in enumerate(zip(sources, targets, strict=True)):
                if not source or not target:
                    dropped.append((place, "empty"))
                elif max(len(source), len(target)) + 1 > self._max_length:
                    dropped.append((place, "too_long"))
            gone = {place for place, _ in dropped}
            sources = [row for place, row in enumerate(sources) if place not in gone]
            targets = [row for place, row in enumerate(targets) if place not in gone]
        types = [id_type(tokenizer.vocabulary_size) for tokenizer in self.tokenizers]
        return Encoded(
            flat_rows(sources, types[0]),
            flat_rows(targets, types[1]),
            dropped,
            (sum(row.count(UNK) for row in sources), sum(row.count(UNK) for row in targets)),
        )
