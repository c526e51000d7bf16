"""Which target subwords a sentence may need: a shortlist, so that the output layer need not be computed whole.

The lexicon is IBM Model 1 (Brown et al. 1993, section 4.1) over subwords: t(f | e) of each target subword f given a
source subword e, learned from pairs by expectation maximisation; e = PAD stands for the empty word, from which a target
subword may come that nothing in the source explains. A sentence's shortlist holds the best few f of each of its e, the
target subwords that are most frequent overall, and the reserved ones (Jean et al. 2015, section 3.2).

Probabilities are then over the shortlist alone. It depends on the sentence and not on those it is batched with.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from nmt.tokens import EOS, PAD

RESERVED = 4  # PAD, UNK, BOS, EOS: always there, under their own ids
FORMAT = "nmt shortlist 1"

Pair = tuple[np.ndarray, np.ndarray]


class Words(NamedTuple):
    """The shortlists of a batch."""

    ids: Tensor  # [words] int64, ascending: all target subwords that any of the sentences may need
    barred: Tensor  # [batch, words] float32: 0 for those that the sentence may use, -inf for the others

    def places(self, tokens: Sequence[int]) -> list[int]:
        """Where subwords that are all among ``ids`` stand in it."""
        return torch.searchsorted(self.ids, torch.tensor(list(tokens), device=self.ids.device)).tolist()


class Shortlist(NamedTuple):
    """Candidates for every source subword."""

    candidates: Tensor  # [source_vocabulary, per_word] int64, EOS where there are fewer
    always: Tensor  # [frequent] int64, the reserved ones included
    target_vocabulary: int
    tokenizers: str  # their digest

    def of(self, source: Tensor, prefixes: Sequence[Sequence[int]] = ()) -> Words:
        """The shortlists of sentences.

        Args:
            source: [batch, src_len] int64.
            prefixes: target subwords that the translation of each sentence must be allowed to use.
        """
        batch = source.size(0)
        allowed = torch.zeros(batch, self.target_vocabulary, dtype=torch.bool, device=source.device)
        allowed.scatter_(1, self.candidates.to(source.device)[source].flatten(1), True)
        allowed[:, self.always.to(source.device)] = True
        for row, prefix in enumerate(prefixes):
            allowed[row, list(prefix)] = True
        ids = allowed.any(dim=0).nonzero()[:, 0]
        barred = torch.zeros(batch, ids.size(0), device=source.device)
        return Words(ids, barred.masked_fill_(~allowed[:, ids], -torch.inf))

    def save(self, path: Path) -> None:
        """Write a safetensors file."""
        facts = {"format": FORMAT, "tokenizers": self.tokenizers, "target_vocabulary": str(self.target_vocabulary)}
        tensors = {"candidates": self.candidates, "always": self.always}
        path.write_bytes(safetensors.torch.save(tensors, {"shortlist": json.dumps(facts)}))

    @classmethod
    def load(cls, path: Path, tokenizers: str) -> "Shortlist":
        """Read what :meth:`save` wrote.

        Args:
            path: the file.
            tokenizers: digest of the tokenizers it is to be used with.

        Raises:
            ValueError: no such file, a damaged one, or one for other tokenizers.
        """
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                facts = json.loads((file.metadata() or {})["shortlist"])
                tensors = {name: file.get_tensor(name) for name in ("candidates", "always")}
            found = cls(tensors["candidates"], tensors["always"], int(facts["target_vocabulary"]), facts["tokenizers"])
            if facts["format"] != FORMAT:
                raise ValueError(f"format {facts['format']!r}, expected {FORMAT!r}")
        except (OSError, safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"{path}: no shortlist ({reason}); make one with python -m nmt.shortlist") from error
        if found.tokenizers != tokenizers:
            raise ValueError(f"{path}: made for other subwords than the model's; make one with python -m nmt.shortlist")
        return found


class Lexicon(NamedTuple):
    """t(f | e) of every source subword e and target subword f that occur in one pair."""

    keys: np.ndarray  # [links] int64, ascending: e * target_vocabulary + f
    probability: np.ndarray  # [links] float64
    target_vocabulary: int

    def of(self, source: Sequence[int], target: Sequence[int]) -> np.ndarray:
        """t(f | e) of the subwords of a pair: [target, 1 + source] float64, the empty word first; 0 for two that were
        never seen together."""
        given = np.array([PAD, *source], dtype=np.int64)
        wanted = given * self.target_vocabulary + np.array(target, dtype=np.int64)[:, None]  # [target, 1 + source]
        place = np.searchsorted(self.keys, wanted).clip(max=len(self.keys) - 1)
        found: np.ndarray = np.where(self.keys[place] == wanted, self.probability[place], 0.0)
        return found


def learn(pairs: Iterable[Pair], sizes: tuple[int, int], iterations: int = 5) -> Lexicon:
    """Learn the lexicon alone; see :func:`build`."""
    cells, _ = _cells(pairs, sizes[1])
    return Lexicon(cells.source * sizes[1] + cells.target, _learn(cells, *sizes, iterations), sizes[1])


def build(
    pairs: Iterable[Pair], sizes: tuple[int, int], tokenizers: str, per_word: int, frequent: int, iterations: int = 5
) -> Shortlist:
    """Learn the lexicon and keep the best of it.

    Args:
        pairs: subword ids of both sides; in memory are 4 bytes for each source subword x target subword of a pair, and
            some 50 for each two subwords that occur in one.
        sizes: of the source and the target vocabulary.
        tokenizers: their digest.
        per_word: candidates for each source subword.
        frequent: target subwords that every sentence may use.
        iterations: of expectation maximisation.
    """
    source_vocabulary, target_vocabulary = sizes
    cells, frequency = _cells(pairs, target_vocabulary)
    probability = _learn(cells, source_vocabulary, target_vocabulary, iterations)
    order = np.lexsort((cells.target, -probability, cells.source))  # by source; within, the most probable first
    source, target = cells.source[order], cells.target[order]
    begins = np.searchsorted(source, np.arange(source_vocabulary))
    rank = np.arange(len(source)) - begins[source]
    best = rank < per_word
    candidates = np.full((source_vocabulary, per_word), EOS, dtype=np.int64)
    candidates[source[best], rank[best]] = target[best]
    common = np.argsort(-frequency, kind="stable")[:frequent]
    always = np.union1d(np.arange(RESERVED), common[frequency[common] > 0])
    always = np.union1d(always, candidates[PAD])  # those of the empty word
    return Shortlist(torch.from_numpy(candidates), torch.from_numpy(always), target_vocabulary, tokenizers)


class _Part(NamedTuple):
    """Cells of some pairs, by target position: one for the empty word and one for each source subword."""

    links: np.ndarray  # [own] int32, ascending: which of all links occur here
    link: np.ndarray  # [cells] int32, index into ``links``
    begins: np.ndarray  # [target positions], the first cell of each


class _Cells(NamedTuple):
    """Every source subword x target subword of every pair, and which of them are the same two subwords."""

    source: np.ndarray  # [links]
    target: np.ndarray  # [links]
    parts: list[_Part]  # so that what is computed for every cell is there for one part only


_PART = 1 << 20
"""Cells of a part; the pair that reaches it is the last one."""


def _cells(pairs: Iterable[Pair], target_vocabulary: int) -> tuple[_Cells, np.ndarray]:
    frequency = np.zeros(target_vocabulary, dtype=np.int64)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # of each part: keys, which of them, beginnings
    waiting: list[np.ndarray] = []  # of each pair, [target, 1 + source] keys
    cells = 0
    for source, target in pairs:
        np.add.at(frequency, target, 1)
        words = np.concatenate(([PAD], source)).astype(np.int64)
        waiting.append(words[None, :] * target_vocabulary + np.asarray(target, dtype=np.int64)[:, None])
        cells += waiting[-1].size
        if cells >= _PART:
            found.append(_numbered(waiting))
            waiting, cells = [], 0
    if cells:
        found.append(_numbered(waiting))
    if not found:
        raise ValueError("no pairs to learn a lexicon from")
    every = np.unique(np.concatenate([keys for keys, _, _ in found]))
    parts = [_Part(np.searchsorted(every, keys).astype(np.int32), link, begins) for keys, link, begins in found]
    return _Cells(every // target_vocabulary, every % target_vocabulary, parts), frequency


def _numbered(pairs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys of pairs, each once; which of them every cell has, int32; the first cell of each target position."""
    keys, link = np.unique(np.concatenate([own.ravel() for own in pairs]), return_inverse=True)
    sizes = np.concatenate([np.full(len(own), own.shape[1]) for own in pairs])
    return keys, link.astype(np.int32), np.cumsum(sizes) - sizes


def _learn(cells: _Cells, source_vocabulary: int, target_vocabulary: int, iterations: int) -> np.ndarray:
    """t(f | e) of every link."""
    probability = np.full(len(cells.source), 1 / target_vocabulary)
    for _ in range(iterations):
        counts = np.zeros(len(probability))
        for part in cells.parts:
            share = probability[part.links][part.link]
            sizes = np.diff(part.begins, append=len(share))
            share /= np.repeat(np.add.reduceat(share, part.begins), sizes)  # which source subword explains it
            counts[part.links] += np.bincount(part.link, weights=share, minlength=len(part.links))
        probability = counts / np.bincount(cells.source, weights=counts, minlength=source_vocabulary)[cells.source]
    return probability
