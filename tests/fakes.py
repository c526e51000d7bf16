"""Tiny models and tokenizers with known answers: search and translator are tested on them, without any training."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.models.base import State, Step, TranslationModel
from nmt.models.memory import MemoryTable
from nmt.tokens import BOS, EOS, UNK

FIRST_FREE = 4
"""The lowest id that is an ordinary subword."""


class AutomatonState(NamedTuple):
    """A tree, so that a search that moves only a part of it gets caught."""

    node: Tensor  # [rows]
    history: tuple[Tensor, Tensor]  # [rows] checksum of all tokens, [rows] their number


class AutomatonModel(TranslationModel):
    """A random automaton: every next-token distribution depends on the whole prefix and on the source.

    The prefix comes in through the state (a walk over ``nodes`` nodes, and a checksum of the history), the source
    through the memory (a bias per sentence), so that a lost reorder of either changes the answer.
    """

    attends = True
    LAYERS, HEADS = 2, 3

    def __init__(self, seed: int, vocabulary: int = 6, nodes: int = 211, spread: float = 2.0, end_bias: float = 0.0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.vocabulary = vocabulary
        self.transitions = torch.randint(nodes, (nodes, vocabulary), generator=generator)
        self.table = torch.randn(nodes, vocabulary, generator=generator) * spread
        self.table[:, EOS] += end_bias
        self.checksum_table = torch.randn(97, vocabulary, generator=generator) * spread / 2
        self.source_table = torch.randn(89, vocabulary, generator=generator) * spread / 2
        self.queries = torch.randn(nodes, self.LAYERS, self.HEADS, generator=generator)

    def encode(self, source: Tensor, source_lengths: Tensor) -> MemoryTable:
        mask = torch.arange(source.size(1)) < source_lengths[:, None]  # [batch, src_len]
        places = torch.arange(1, source.size(1) + 1)
        code = (source * places * mask).sum(dim=1) % 89
        return MemoryTable(source.float(), self.source_table[code], mask)

    def init_state(self, memory: MemoryTable) -> AutomatonState:
        node = memory.mask.sum(dim=1) % self.transitions.size(0)
        return AutomatonState(node, (torch.zeros_like(node), torch.zeros_like(node)))

    def step(self, previous: Tensor, state: State, memory: MemoryTable, with_attention: bool = False) -> Step:
        rows, sentences = previous.size(0), memory.mask.size(0)
        assert rows % sentences == 0, "rows must be a multiple of the sentences"
        assert rows == state.node.size(0) == state.history[0].size(0) == state.history[1].size(0)
        owner = torch.arange(rows) // (rows // sentences)
        node = self.transitions[state.node, previous]
        count = state.history[1] + 1
        checksum = (state.history[0] * 31 + previous * count) % 97
        logits = self.table[node] + self.checksum_table[checksum] + memory.values[owner]  # [rows, vocabulary]
        attention = self._attention(node, memory, owner) if with_attention else None
        return Step(logits, AutomatonState(node, (checksum, count)), attention)

    def _attention(self, node: Tensor, memory: MemoryTable, owner: Tensor) -> Tensor:
        energies = self.queries[node][..., None] * memory.keys[owner][:, None, None]  # [rows, layers, heads, src_len]
        return energies.masked_fill(~memory.mask[owner][:, None, None], -torch.inf).softmax(dim=-1)

    def project(self, features: Tensor) -> Tensor:
        return features


class ScriptedModel(TranslationModel):
    """p(next | prefix) written out: ``{prefix: {token: probability}}``; any other prefix ends in EOS for certain."""

    def __init__(self, script: dict[tuple[int, ...], dict[int, float]], vocabulary: int = 8):
        super().__init__()
        self.vocabulary = vocabulary
        prefixes = sorted({tuple(p[:n]) for p in script for n in range(len(p) + 1)} | {()}, key=lambda p: (len(p), p))
        self.number = {prefix: place for place, prefix in enumerate(prefixes)}
        unknown = len(prefixes)
        self.transitions = torch.full((unknown + 1, vocabulary), unknown)
        self.table = torch.full((unknown + 1, vocabulary), -torch.inf)
        self.table[:, EOS] = 0.0
        for prefix, place in self.number.items():
            self.transitions[place, BOS] = place  # only at the start
            for token in range(vocabulary):
                if (*prefix, token) in self.number:
                    self.transitions[place, token] = self.number[(*prefix, token)]
            if prefix in script:
                self.table[place] = -torch.inf
                for token, probability in script[prefix].items():
                    self.table[place, token] = torch.tensor(probability, dtype=torch.float64).log()

    def encode(self, source: Tensor, source_lengths: Tensor) -> MemoryTable:
        mask = torch.arange(source.size(1)) < source_lengths[:, None]
        return MemoryTable(source[..., None], source[..., None], mask)

    def init_state(self, memory: MemoryTable) -> Tensor:
        return torch.zeros(memory.mask.size(0), dtype=torch.int64)

    def step(self, previous: Tensor, state: State, memory: MemoryTable, with_attention: bool = False) -> Step:
        node = self.transitions[state, previous]
        return Step(self.table[node], node, None)

    def project(self, features: Tensor) -> Tensor:
        return features


class CopyModel(TranslationModel):
    """Repeats the source, token by token, EOS last; ``never_ends`` starts over instead of ending."""

    attends = True

    def __init__(self, vocabulary: int, never_ends: bool = False):
        super().__init__()
        self.vocabulary = vocabulary
        self.never_ends = never_ends
        self.rows_per_step: list[int] = []  # a record for tests; not used by the model

    def encode(self, source: Tensor, source_lengths: Tensor) -> MemoryTable:
        mask = torch.arange(source.size(1)) < source_lengths[:, None]
        return MemoryTable(source, source, mask)

    def init_state(self, memory: MemoryTable) -> Tensor:
        return torch.zeros(memory.mask.size(0), dtype=torch.int64)

    def step(self, previous: Tensor, state: State, memory: MemoryTable, with_attention: bool = False) -> Step:
        rows, sentences = previous.size(0), memory.mask.size(0)
        self.rows_per_step.append(rows)
        owner = torch.arange(rows) // (rows // sentences)
        lengths = memory.mask.sum(dim=1)[owner]
        place = state % (lengths - 1).clamp(min=1) if self.never_ends else torch.minimum(state, lengths - 1)
        token = memory.values[owner, place]  # [rows]
        logits = torch.nn.functional.one_hot(token, self.vocabulary).float() * 20
        attention = torch.nn.functional.one_hot(place, memory.mask.size(1)).float()[:, None, None]
        return Step(logits, state + 1, attention if with_attention else None)

    def project(self, features: Tensor) -> Tensor:
        return features


class WordTokenizer:
    """The interface of ``nmt.data.tokenizer.Tokenizer`` over a fixed list of words; all others are UNK."""

    def __init__(self, words: Sequence[str]):
        self.listed = ["<pad>", "<unk>", "<s>", "</s>", *words]
        self.ids = {word: FIRST_FREE + place for place, word in enumerate(words)}
        self.vocabulary_size = len(self.listed)
        self.model_bytes = " ".join(self.listed).encode()

    def encode(self, text: str) -> list[int]:
        return [self.ids.get(word, UNK) for word in text.split()]

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.listed[token] for token in ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return ["▁" + self.listed[token] for token in ids]

    def source_spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(r"\S+", text)]

    def target_spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        return self.source_spans(self.decode(ids))
