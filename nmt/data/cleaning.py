"""What is done with every training pair before subwords are trained: clean, filter, look for it in the held-out sets.

Pairs are compared (with the held-out ones here, with each other in ``duplicates``) as the subwords see them: cleaned
and normalised as the tokenizer does it. Two that are equal then have the same ids.
"""

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, Literal, NamedTuple

import numpy as np

from nmt.data.corpus import clean_line, is_blank
from nmt.data.duplicates import Duplicates, columns, key, pair_key
from nmt.data.filters import Filters
from nmt.data.quarantine import sides
from nmt.data.tokenizer import TokenizerPair

Keys = tuple[bytes, bytes, bytes]
"""Of a pair: its source's, its target's, its own."""

_SOURCE, _TARGET, _PAIR = 1, 2, 4  # what of a training pair occurs in a held-out set, as bits

_REMOVED = {"keep": 0, "pair": _PAIR, "source": _SOURCE, "target": _TARGET, "either": _SOURCE | _TARGET}


class Passage(NamedTuple):
    """Pairs on their way to another process: UTF-8, every line ended by its ``\\n``, as many on both sides."""

    source: bytes
    target: bytes


class Cleaned(NamedTuple):
    """What became of a passage."""

    passed: np.ndarray  # [pairs] bool
    text: Passage  # the pairs that passed, cleaned
    occurs: bytes  # of these, a byte each: which sides occur in a held-out set; not 0: to be looked up again
    keys: bytes  # of these: the keys by which they are compared with each other
    dropped: list[tuple[int, str, bytes]]  # place in the passage, reason, text for the quarantine (else empty)
    held_out: tuple[int, int, int]  # pairs behind the filters whose source, target, both occur in a held-out set
    control: int  # control characters removed
    blank: int  # pairs with a blank side


class Comparable:
    """Keys of pairs, by their text as the subwords see it.

    Args:
        rule: SentencePiece's name of the normalisation;
        tokenizers: or the subwords themselves, where they are given.
    """

    def __init__(self, rule: str, tokenizers: TokenizerPair | None) -> None:
        models = (None, None) if tokenizers is None else (tokenizers.source.model_bytes, tokenizers.target.model_bytes)
        self._made_of = rule, models
        self._normalizers = [_normalizer(rule, model) for model in models]

    def texts(self, texts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Cleaned pairs, normalised."""
        normal = [
            normalizer.normalize([text[side] for text in texts]) for side, normalizer in enumerate(self._normalizers)
        ]
        return list(zip(*normal, strict=True))

    def keys(self, texts: Sequence[tuple[str, str]]) -> list[Keys]:
        """Of cleaned pairs."""
        return [_keys(*text) for text in self.texts(texts)]

    def __getstate__(self) -> Any:
        return self._made_of

    def __setstate__(self, made_of: Any) -> None:
        self._made_of = made_of
        rule, models = made_of
        self._normalizers = [_normalizer(rule, model) for model in models]


def _normalizer(rule: str, model: bytes | None) -> Any:
    import sentencepiece

    return sentencepiece.SentencePieceNormalizer(
        model_proto=model,
        rule_name=rule,
        add_dummy_prefix=False,
        escape_whitespaces=False,
        remove_extra_whitespaces=True,
    )


def _keys(source: str, target: str) -> Keys:
    left, right = key(source), key(target)
    return left, right, pair_key(left, right)


class HeldOut:
    """The texts of validation and test, by their keys; blank ones are not among them."""

    def __init__(self, pairs: Iterable[Keys]) -> None:
        blank = key("")
        found = list(pairs)
        self._sources = frozenset(keys[0] for keys in found) - {blank}
        self._targets = frozenset(keys[1] for keys in found) - {blank}
        self._pairs = frozenset(keys[2] for keys in found)

    def occurs(self, keys: Keys) -> int:
        """Which of source, target and both occur, as bits."""
        source, target, pair = keys
        return _SOURCE * (source in self._sources) | _TARGET * (target in self._targets) | _PAIR * (pair in self._pairs)


class Cleaner:
    """Cleans and filters passages; one goes to every process, so it has no state.

    Args:
        filters: None drops nothing but pairs with an empty side.
        comparable: makes keys.
        held_out: the sets that training must not see.
        removed: which pairs that occur in them are dropped.
        duplicates: by which keys pairs are to be compared with each other.
        quarantine: whether the text of what is dropped is wanted.
    """

    def __init__(
        self,
        filters: Filters | None,
        comparable: Comparable,
        held_out: HeldOut,
        removed: Literal["keep", "pair", "source", "target", "either"],
        duplicates: Duplicates,
        quarantine: bool,
    ) -> None:
        self._filters = filters
        self._comparable = comparable
        self._held_out = held_out
        self._removed = _REMOVED[removed]
        self._columns = [("source", "target", "pair").index(column) for column in columns(duplicates)]
        self._quarantine = quarantine

    def __call__(self, passage: Passage) -> Cleaned:
        """Clean and filter."""
        cleaned = [
            (clean_line(source), clean_line(target))
            for source, target in zip(lines(passage.source), lines(passage.target), strict=True)
        ]
        texts = [(source[0], target[0]) for source, target in cleaned]
        reasons = self._filters.reasons(texts) if self._filters is not None else [None] * len(texts)
        passed: list[bool] = []
        occurring: list[int] = []
        keys: list[bytes] = []
        dropped: list[tuple[int, str, bytes]] = []
        counts = [0, 0, 0]
        for place, (text, reason, normal) in enumerate(zip(texts, reasons, self._comparable.texts(texts), strict=True)):
            if reason is None and (is_blank(normal[0]) or is_blank(normal[1])):
                reason = "empty"
            if reason is None:
                found = _keys(*normal)
                occurs = self._held_out.occurs(found)
                for bit, mask in enumerate((_SOURCE, _TARGET, _PAIR)):
                    counts[bit] += bool(occurs & mask)
                if occurs & self._removed:
                    reason = "held_out"
                else:
                    occurring.append(occurs)
                    keys += [found[column] for column in self._columns]
            passed.append(reason is None)
            if reason is not None:
                dropped.append((place, reason, sides(*text) if self._quarantine else b""))
        return Cleaned(
            np.array(passed, np.bool_),
            Passage(
                *("".join(f"{text[side]}\n" for text in compress(texts, passed)).encode("utf-8") for side in (0, 1))
            ),
            bytes(occurring),
            b"".join(keys),
            dropped,
            (counts[0], counts[1], counts[2]),
            sum(source[1] + target[1] for source, target in cleaned),
            sum(is_blank(source) or is_blank(target) for source, target in texts),
        )


def lines(text: bytes) -> list[str]:
    """The lines of one side of a passage."""
    return text.decode("utf-8").split("\n")[:-1]
