"""A Transformer that remembers nothing from one step to the next: what its cache is measured against.

It finds what the model itself finds, at a cost per token that grows with the tokens before it. For measurements only.
"""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from nmt.models.base import Step, TranslationModel
from nmt.models.memory import Memory, MemoryTable
from nmt.models.transformer import Transformer


class Uncached(TranslationModel):
    """The state of a hypothesis is its tokens so far, [rows, tgt_len]; every step decodes all of them again.

    Args:
        model: whose parameters and layers these are.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def encode(self, source: Tensor, source_lengths: Tensor) -> Memory:
        """As the model does: keys and values of the *source* are made once here, too."""
        return self.model.encode(source, source_lengths)

    def init_state(self, memory: Memory) -> Tensor:
        """No tokens."""
        mask = cast(tuple[MemoryTable, ...], memory)[0].mask
        return torch.zeros(mask.size(0), 0, dtype=torch.int64, device=mask.device)

    def step(self, previous: Tensor, state: Tensor, memory: Memory, with_attention: bool = False) -> Step:
        """The last position of a pass over all of them."""
        assert not with_attention, "the model itself has the weights"
        tokens = torch.cat([state, previous[:, None]], dim=1)  # [rows, tgt_len], BOS first
        # Like `step`, the Transformer's `decode` lets the hypotheses of a sentence share its row of the memory.
        return Step(self.model.decode(tokens, memory)[:, -1], tokens, None)

    def projection(self, words: Tensor) -> Callable[[Tensor], Tensor]:
        """The output layer for some subwords."""
        return self.model.projection(words)

    def project(self, features: Tensor) -> Tensor:
        """Logits [..., target_vocabulary]."""
        return self.model.project(features)
