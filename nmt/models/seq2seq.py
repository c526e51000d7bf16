"""Sequence to sequence through one fixed vector: Sutskever, Vinyals and Le (2014), arXiv 1409.3215.

A deep LSTM reads the source; its final hidden and cell state of every layer is all that the decoder, another deep LSTM,
ever gets: c = h_T, p(y | x) = prod_t p(y_t | y_<t, c). There is no source axis in what ``encode`` returns, so there is
nothing to look up.

Deviations from the paper: dropout (on the embeddings, between the layers, before the output layer; 0 gives the paper's
model), optional weight tying, the forget gate has two biases as in torch.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from nmt.config import Seq2SeqConfig
from nmt.device import has_bf16
from nmt.models.base import Step, TranslationModel
from nmt.models.dropout import Dropout
from nmt.models.embedding import Embeddings
from nmt.models.memory import FixedVector, Memory
from nmt.models.reversal import reverse_words


class Seq2Seq(TranslationModel):
    """Deep LSTM encoder and decoder; the state of a hypothesis is a :class:`FixedVector` as well."""

    def __init__(self, config: Seq2SeqConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.reverse_source = config.reverse_source
        self.init_range = config.init_range
        self.embeddings = Embeddings(
            source_vocabulary,
            target_vocabulary,
            config.embedding_dim,
            config.hidden_dim,
            config.tie_embeddings,
            output_bias=True,
        )
        between = config.dropout if config.layers > 1 else 0.0  # with one layer there is no between
        self.encoder = nn.LSTM(
            config.embedding_dim, config.hidden_dim, config.layers, batch_first=True, dropout=between
        )
        self.decoder = nn.LSTM(
            config.embedding_dim, config.hidden_dim, config.layers, batch_first=True, dropout=between
        )
        self.dropout = Dropout(config.dropout)

    def initialize(self, generator: torch.Generator) -> None:
        """All parameters uniform in +-``init_range`` (section 3.4)."""
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -self.init_range, self.init_range, generator=generator)

    def encode(self, source: Tensor, source_lengths: Tensor) -> FixedVector:
        """State of every layer after the last token of each row; a row without tokens leaves zeros."""
        if self.reverse_source:
            source = reverse_words(source, source_lengths)
        embedded = self.dropout(self.embeddings.source(source))  # [batch, src_len, embedding_dim]
        # Packed, so that each row's recurrence ends at its own last token and padding is never read.
        lengths = source_lengths.clamp(min=1).cpu()
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        with _number_format(source.device):
            _, (hidden, cell) = self.encoder(packed)  # [layers, batch, dim]
        empty = (source_lengths == 0)[:, None, None]
        return FixedVector(*(part.transpose(0, 1).masked_fill(empty, 0.0) for part in (hidden, cell)))

    def init_state(self, memory: Memory) -> FixedVector:
        """The fixed vector itself: the decoder starts where the encoder stopped."""
        assert isinstance(memory, FixedVector)
        return memory

    def step(self, previous: Tensor, state: FixedVector, memory: Memory, with_attention: bool = False) -> Step:
        """One LSTM step. ``memory`` is not looked at: what the source left is in the state."""
        features, state = self._run(previous[:, None], state)
        return Step(features.squeeze(1), state, None)

    def decode(self, target_in: Tensor, memory: Memory) -> Tensor:
        """All positions in one call of the LSTM."""
        features, _ = self._run(target_in, self.init_state(memory))
        return features

    def _run(self, target: Tensor, state: FixedVector) -> tuple[Tensor, FixedVector]:
        """Features [rows, tgt_len, dim] of the tokens [rows, tgt_len] read from ``state`` on, and the state after."""
        embedded = self.dropout(self.embeddings.target(target))
        start = tuple(
            part.transpose(0, 1).contiguous() for part in state
        )  # [layers, rows, dim], as the kernel wants it
        with _number_format(target.device):
            output, (hidden, cell) = self.decoder(embedded, start)
        return self.dropout(output), FixedVector(hidden.transpose(0, 1), cell.transpose(0, 1))

    def project(self, features: Tensor) -> Tensor:
        """Logits [..., target_vocabulary]."""
        return self.embeddings.logits(features)

    def projection(self, words: Tensor) -> Callable[[Tensor], Tensor]:
        """Without computing what is not wanted."""
        return self.embeddings.logits_of(words)


def _number_format(device: torch.device) -> AbstractContextManager[object]:
    """Context for an LSTM: in bfloat16 torch has one only for a CPU that has the arithmetic; others stay in float32."""
    if device.type == "cpu" and torch.is_autocast_enabled("cpu") and not has_bf16(device):
        return torch.autocast("cpu", enabled=False)
    return nullcontext()
