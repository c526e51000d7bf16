"""Pairs of lines in, the probability of the second given the first out.

    from nmt import Scorer

    for score in Scorer.load("runs/X").score([("Ein Mann schläft.", "A man is sleeping.")]):
        print(score.log_probability, score.perplexity)

What is summed is what validation sums while a model is trained: every target subword and EOS, without label smoothing.
A blank line is a sentence of no words there and here: EOS alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from nmt.checkpoint import load_ensemble
from nmt.data.batch import collate
from nmt.data.corpus import buffered
from nmt.data.tokenizer import TokenizerPair
from nmt.device import SearchPrecision, autocast, resolve_device, resolve_search_precision
from nmt.evaluation.likelihood import Likelihood
from nmt.forced import force
from nmt.models.base import TranslationModel
from nmt.models.int8 import quantized
from nmt.tokens import EOS
from nmt.translation import batches_by_length
from nmt.translator import BUFFER_LINES

BATCH_TOKENS = 4096
"""Tokens a side scored at once, padding included; a longer pair stands alone."""


class PairScore(NamedTuple):
    """What the models make of one pair."""

    tokens: list[str]  # target subwords, without EOS
    token_log_probabilities: list[float]  # of each of them and of EOS, natural logarithms

    @property
    def length(self) -> int:
        """Target subwords, EOS included."""
        return len(self.token_log_probabilities)

    @property
    def log_probability(self) -> float:
        """log p(target | source)."""
        return sum(self.token_log_probabilities)

    @property
    def per_token(self) -> float:
        """Mean log probability of a subword."""
        return self.log_probability / self.length

    @property
    def perplexity(self) -> float:
        """exp(-``per_token``)."""
        return Likelihood(-self.log_probability, self.length).perplexity


class Scorer:
    """One model, or an ensemble, and its tokenizers.

    Args:
        models: all on ``device``.
        tokenizers: of both sides.
        device: where the models are.
        precision: number format of matrix products; probabilities are float32 in any case.
    """

    def __init__(
        self,
        models: Sequence[TranslationModel],
        tokenizers: TokenizerPair,
        device: torch.device,
        precision: SearchPrecision,
    ) -> None:
        self.models = [quantized(model) for model in models] if precision == "int8" else list(models)
        self.tokenizers = tokenizers
        self.device = device
        self.precision = precision

    @classmethod
    def load(cls, paths: str | Path | Sequence[str | Path], device: str = "auto", precision: str = "fp32") -> "Scorer":
        """Load a run folder or a checkpoint folder, or several for an ensemble: see ``Translator.load``."""
        where = resolve_device(device)
        loaded = load_ensemble([paths] if isinstance(paths, (str, Path)) else paths, where)
        models = [each.model for each in loaded]
        return cls(models, loaded[0].tokenizers, where, resolve_search_precision(precision, where))

    def score(self, pairs: Iterable[tuple[str, str]], batch_tokens: int = BATCH_TOKENS) -> list[PairScore]:
        """Score (source line, target line) pairs, in their order.

        Args:
            pairs: any number.
            batch_tokens: tokens a side scored at once, padding included; changes speed, not scores.
        """
        lines = list(pairs)
        sources = self.tokenizers.source.encode_batch([source for source, _ in lines])
        targets = self.tokenizers.target.encode_batch([target for _, target in lines])
        lengths = {i: 1 + max(len(sources[i]), len(targets[i])) for i in range(len(lines))}
        values: list[list[float]] = [[] for _ in lines]
        for rows in batches_by_length(lengths, batch_tokens):
            batch = collate([[*sources[i], EOS] for i in rows], [[*targets[i], EOS] for i in rows], rows)
            with autocast(self.device, self.precision):
                found = force(self.models, batch.to(self.device)).log_probabilities  # [batch, tgt_len]
            assert found is not None
            for i, row in zip(rows, found.tolist(), strict=True):
                values[i] = row[: len(targets[i]) + 1]
        tokens = map(self.tokenizers.target.pieces, targets)
        return [PairScore(own, row) for own, row in zip(tokens, values, strict=True)]

    def stream(
        self, pairs: Iterable[tuple[str, str]], buffer_size: int = BUFFER_LINES, batch_tokens: int = BATCH_TOKENS
    ) -> Iterator[tuple[str, str, PairScore]]:
        """Every pair and its score, in order, read and scored ``buffer_size`` pairs at a time.

        Raises:
            ValueError: an option out of range.
        """
        for name, value in (
            ("buffer size (--buffer-size)", buffer_size),
            ("batch tokens (--batch-tokens)", batch_tokens),
        ):
            if value < 1:
                raise ValueError(f"{name}: expected 1 or more, found {value}")
        for buffer in buffered(pairs, buffer_size):
            for (source, target), score in zip(buffer, self.score(buffer, batch_tokens), strict=True):
                yield source, target, score
