"""Translation models that copy, with a memory and a dependence on the prefix that are known: oracles for diagnosis."""

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.models.base import State, Step, TranslationModel
from nmt.models.memory import MemoryTable
from nmt.tokens import BOS

Keeps = Literal["words", "nothing", "short"]
ThrownOffBy = Literal["nothing", "anything", "itself"]

WRONG, AGAIN = 4, 5
"""Words of the reader alone: what it says for the third, and what it goes on with when it is thrown off."""
SHORT = 15
"""The longest source of which the memory that keeps the ``short`` ones keeps words."""
SURE = 30.0
"""The logit of the one word that comes next, where all others have 0."""


class ReaderState(NamedTuple):
    place: Tensor  # [rows]
    lost: Tensor  # [rows] bool


class Reader(TranslationModel):
    """Copies the source; ``p(next)`` is as good as 1, or that of :meth:`lost` once it is thrown off.

    Args:
        vocabulary: of both sides.
        keeps: what the *values* of its table tell (it reads the keys itself): the word of each row, nothing, or
            the word where the source is short.
        thrown_off_by: a previous token that is not the source's, one that is its own ``WRONG`` only, or nothing.
        errs: says ``WRONG`` rather than the third word, which is the second best.
    """

    attends = True

    def __init__(
        self,
        vocabulary: int,
        keeps: Keeps = "words",
        thrown_off_by: ThrownOffBy = "nothing",
        errs: bool = False,
    ) -> None:
        super().__init__()
        self.vocabulary, self.keeps, self.thrown_off_by, self.errs = vocabulary, keeps, thrown_off_by, errs

    def encode(self, source: Tensor, source_lengths: Tensor) -> MemoryTable:
        mask = torch.arange(source.size(1)) < source_lengths[:, None]
        words = F.one_hot(source, self.vocabulary).float()
        kept = {
            "words": torch.ones(len(source)),
            "nothing": torch.zeros(len(source)),
            "short": (source_lengths - 1 <= SHORT).float(),
        }[self.keeps]
        return MemoryTable(source, words * kept[:, None, None], mask)

    def init_state(self, memory: MemoryTable) -> ReaderState:
        place = torch.zeros(memory.mask.size(0), dtype=torch.int64)
        return ReaderState(place, torch.zeros_like(place, dtype=torch.bool))

    def step(self, previous: Tensor, state: State, memory: MemoryTable, with_attention: bool = False) -> Step:
        rows, sentences = previous.size(0), memory.mask.size(0)
        owner = torch.arange(rows) // (rows // sentences)
        last = memory.mask.sum(dim=1)[owner] - 1
        token = memory.keys[owner, torch.minimum(state.place, last)]
        before = memory.keys[owner, torch.minimum((state.place - 1).clamp(min=0), last)]
        false = {
            "nothing": torch.zeros_like(state.lost),
            "anything": (previous != before) & (previous != BOS),
            "itself": previous == WRONG,
        }[self.thrown_off_by]
        lost = state.lost | false
        logits = SURE * F.one_hot(token, self.vocabulary).float()
        if self.errs:
            logits[state.place == 2, WRONG] = SURE + 1
        logits[lost] = F.one_hot(torch.tensor(AGAIN), self.vocabulary).float()
        attention = F.one_hot(torch.minimum(state.place, last), memory.mask.size(1)).float()[:, None, None]
        return Step(logits, ReaderState(state.place + 1, lost), attention if with_attention else None)

    def lost(self) -> float:
        """-log p of any word but ``AGAIN`` when it is thrown off."""
        logits = F.one_hot(torch.tensor(AGAIN), self.vocabulary).double()
        return float(torch.logsumexp(logits, dim=0))

    def project(self, features: Tensor) -> Tensor:
        return features
