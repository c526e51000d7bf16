"""The one interface that makes three architectures comparable: encode, step, decode, project.

Axis 0 of every tensor is the row: a sentence while encoding and training, a hypothesis while searching. Masks are bool,
True = real token. Padding is on the right and holds :data:`nmt.tokens.PAD`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.models.memory import Memory

State = Any
"""What differs between the hypotheses of one sentence: a tree of tensors that ``select_rows`` can index."""


class Step(NamedTuple):
    """Result of one decoder step."""

    features: Tensor  # [rows, dim], what `project` turns into logits
    state: State
    attention: Tensor | None  # [rows, layers, heads, src_len] float32 if asked for and the model attends, else None


class TranslationModel(nn.Module):
    """p(target | source) = prod_t p(target_t | target_<t, source), with the source read through a ``Memory``."""

    attends: bool = False
    """Whether ``step`` can return attention weights."""

    def encode(self, source: Tensor, source_lengths: Tensor) -> Memory:
        """Read the source once and leave what the decoder may look at.

        Args:
            source: [batch, src_len] int64, each row ends in EOS and is padded with PAD on the right.
            source_lengths: [batch] int64, real tokens of each row (EOS included).
        """
        raise NotImplementedError

    def init_state(self, memory: Memory) -> State:
        """State before the first target token, one row per sentence of ``memory``."""
        raise NotImplementedError

    def step(self, previous: Tensor, state: State, memory: Memory, with_attention: bool = False) -> Step:
        """Advance every row by one target token. Pure: nothing is kept on the module, no argument is changed.

        Args:
            previous: [rows] int64, the last token of every hypothesis (BOS at first).
            state: tree of [rows, ...] tensors, from ``init_state`` or the step before.
            memory: of ``sentences`` rows. ``rows`` is a multiple k of it, and row r belongs to sentence r // k: the
                hypotheses of a sentence stand side by side and share its memory, which is never copied.
            with_attention: also return the weights (the explicit, slower path of a model that attends).
        """
        raise NotImplementedError

    def decode(self, target_in: Tensor, memory: Memory) -> Tensor:
        """Teacher forcing: features of every target position given the true tokens before it.

        Args:
            target_in: [batch, tgt_len] int64, BOS first, right-padded.
            memory: of ``batch`` rows.

        Returns:
            [batch, tgt_len, dim]. Here: a loop over ``step``. Overridden where a model allows more parallelism.
        """
        state = self.init_state(memory)
        features = []
        for position in range(target_in.size(1)):
            step = self.step(target_in[:, position], state, memory)
            features.append(step.features)
            state = step.state
        return torch.stack(features, dim=1)  # [batch, tgt_len, dim]

    def attention(self, target_in: Tensor, memory: Memory) -> Tensor:
        """Weights under teacher forcing, [batch, layers, heads, tgt_len, src_len] float32.

        Row t is the distribution used to predict target token t (the one that follows ``target_in[:, t]``).

        Raises:
            ValueError: the model has no attention.
        """
        if not self.attends:
            raise ValueError(f"{type(self).__name__} reads one fixed vector: it has no attention weights")
        state = self.init_state(memory)
        rows = []
        for position in range(target_in.size(1)):
            step = self.step(target_in[:, position], state, memory, with_attention=True)
            assert step.attention is not None
            rows.append(step.attention)
            state = step.state
        return torch.stack(rows, dim=3)  # [batch, layers, heads, tgt_len, src_len]

    def project(self, features: Tensor) -> Tensor:
        """Logits over the target vocabulary, [..., vocabulary], for features [..., dim]."""
        raise NotImplementedError

    def projection(self, words: Tensor) -> Callable[[Tensor], Tensor]:
        """The output layer for some target subwords: ``projection(words)(x)`` is ``project(x)[..., words]``.

        Args:
            words: [words] int64.
        """
        return lambda features: self.project(features)[..., words]

    def forward(self, source: Tensor, source_lengths: Tensor, target_in: Tensor) -> Tensor:
        """Features [batch, tgt_len, dim] of a batch of pairs: ``decode(target_in, encode(source, source_lengths))``."""
        return self.decode(target_in, self.encode(source, source_lengths))
