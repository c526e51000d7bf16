"""Segmentations of text into the subwords of a model, drawn at random: BPE-dropout and unigram sampling.

SentencePiece draws, too, but from a generator whose numbers are others in every process, whatever seed it is given:
with that no run could be resumed or shared. Here each line has a generator of its own. The best segmentation, of which
draws are variations, is the library's (``Tokenizer.encode``), and so are the vocabulary, the scores and the normaliser.

Pieces never reach over the beginning of a word, so words are cut one by one, and what is computed for a word is kept.
"""

import heapq
import math
import random
from functools import lru_cache
from itertools import chain
from typing import Literal, Protocol

from nmt.data.tokenizer import WORD_BEGIN, Tokenizer
from nmt.tokens import UNK

_KEPT = 1 << 13  # words; a unigram lattice is some 2 kB

_UNKNOWN_PENALTY = 10.0  # of SentencePiece: how far a character without a piece is below the lowest score


class Segmenter(Protocol):
    """Draws segmentations."""

    def sample(self, text: str, seed: int) -> list[int]:
        """Ids of a line, without BOS and EOS; the same for the same arguments, everywhere and always."""
        ...


def segmenter(kind: Literal["bpe", "unigram"], tokenizer: Tokenizer, rate: float) -> Segmenter:
    """For the subwords of a tokenizer of this kind; ``rate`` is that of BPE-dropout, or alpha of unigram sampling."""
    return BPEDropout(tokenizer, rate) if kind == "bpe" else UnigramSampling(tokenizer, rate)


class _Lines:
    """What both have in common: lines are words, and characters without a piece are bytes or unknown."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._pieces = tokenizer.normal_pieces()  # id and score
        self._whole = any(WORD_BEGIN in piece[1:] for piece in self._pieces)

    def _words(self, text: str) -> list[str]:
        line = self._tokenizer.normalize(text)
        if self._whole:  # pieces of another's model may hold several words
            return [line] if line else []
        first, *others = line.split(WORD_BEGIN)
        return [*([first] if first else []), *(WORD_BEGIN + word for word in others)]

    def _ids(self, piece: str) -> list[int]:
        found = self._pieces.get(piece)
        return self._tokenizer.character_ids(piece) if found is None else [found[0]]


def _joined(words: list[list[int]]) -> list[int]:
    """Ids of a line; characters without a piece that stand side by side are one UNK, as in the library."""
    ids = list(chain.from_iterable(words))
    if UNK not in ids:
        return ids
    return [token for place, token in enumerate(ids) if token != UNK or place == 0 or ids[place - 1] != UNK]


class BPEDropout(_Lines):
    """BPE-dropout (Provilkov et al. 2020, algorithm 1): each merge that is next in turn is left out with a probability.

    A merge that was left out is not tried again until one beside it has changed what there is to merge (SentencePiece
    does the same).
    """

    def __init__(self, tokenizer: Tokenizer, rate: float) -> None:
        super().__init__(tokenizer)
        self._rate = rate
        self._log_kept = math.log1p(-rate)
        self._best = lru_cache(_KEPT)(self._merge_all)

    def sample(self, text: str, seed: int) -> list[int]:
        """See :class:`Segmenter`."""
        generator = random.Random(seed)
        return _joined([self._word(word, generator) for word in self._words(text)])

    def _word(self, word: str, generator: random.Random) -> list[int]:
        """Most words lose no merge: how many are made before the first is left out is drawn at once."""
        ids, merges = self._best(word)
        made = int(math.log(1.0 - generator.random()) / self._log_kept) if merges else 0
        return ids if made >= merges else self._merge(word, made, generator)[0]

    def _merge_all(self, word: str) -> tuple[list[int], int]:
        return self._merge(word, len(word), None)

    def _merge(self, word: str, made: int, generator: random.Random | None) -> tuple[list[int], int]:
        """Ids, and how many merges there were: the first ``made`` are made, the next is not, each after it perhaps."""
        symbols = list(word)  # "": merged into one before it
        before, behind = list(range(-1, len(word) - 1)), [*range(1, len(word)), -1]
        agenda: list[tuple[float, int, int, int]] = []  # -score, left, right, length

        def consider(left: int, right: int) -> None:
            if left >= 0 and right >= 0 and (found := self._pieces.get(symbols[left] + symbols[right])) is not None:
                heapq.heappush(agenda, (-found[1], left, right, len(symbols[left]) + len(symbols[right])))

        for right in range(1, len(word)):
            consider(right - 1, right)
        turns = 0
        while agenda:
            _, left, right, length = heapq.heappop(agenda)
            if not symbols[left] or not symbols[right] or len(symbols[left]) + len(symbols[right]) != length:
                continue
            turns += 1
            if turns > made and generator is not None and (turns == made + 1 or generator.random() < self._rate):
                continue
            symbols[left] += symbols[right]
            symbols[right] = ""
            behind[left] = behind[right]
            if behind[right] >= 0:
                before[behind[right]] = left
            consider(before[left], left)
            consider(left, behind[left])
        return list(chain.from_iterable(self._ids(symbol) for symbol in symbols if symbol)), turns


class UnigramSampling(_Lines):
    """Subword regularisation (Kudo 2018, section 3.2): a segmentation x is drawn with probability P(x)^alpha / Z, from
    all there are: sums over the beginnings of a word, then pieces drawn from its end to its beginning."""

    def __init__(self, tokenizer: Tokenizer, alpha: float) -> None:
        super().__init__(tokenizer)
        self._alpha = alpha
        self._longest = max(map(len, self._pieces))
        self._unknown = min(score for _, score in self._pieces.values()) - _UNKNOWN_PENALTY
        self._lattice = lru_cache(_KEPT)(self._forward)

    def sample(self, text: str, seed: int) -> list[int]:
        """See :class:`Segmenter`."""
        generator = random.Random(seed)
        return _joined([self._word(word, generator) for word in self._words(text)])

    def _word(self, word: str, generator: random.Random) -> list[int]:
        ends, backwards, end = self._lattice(word), [], len(word)
        while end:
            begins = ends[end - 1]
            chosen = begins[0][0]
            if len(begins) > 1:
                draw = generator.random()
                chosen = next((begin for begin, upto in begins if draw < upto), begins[-1][0])
            backwards.append(self._ids(word[chosen:end]))
            end = chosen
        return list(chain.from_iterable(reversed(backwards)))

    def _forward(self, word: str) -> list[list[tuple[int, float]]]:
        """For each end of a piece: where it may begin, with the sum of the probabilities up to there."""
        sums = [0.0]  # logarithms, over all segmentations of each beginning of the word
        ends = []
        for end in range(1, len(word) + 1):
            weights: list[tuple[int, float]] = []
            for begin in range(max(0, end - self._longest), end):
                found = self._pieces.get(word[begin:end])
                if found is not None or begin == end - 1:
                    score = self._unknown if found is None else found[1]
                    weights.append((begin, sums[begin] + self._alpha * score))
            most = max(weight for _, weight in weights)
            total = math.fsum(math.exp(weight - most) for _, weight in weights)
            sums.append(most + math.log(total))
            upto, begins = 0.0, []
            for begin, weight in weights:
                upto += math.exp(weight - most) / total
                begins.append((begin, upto))
            ends.append(begins)
        return ends
