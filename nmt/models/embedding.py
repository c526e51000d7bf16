"""Where ids become vectors and vectors become logits: three vocabulary-sized matrices, some of which may be one."""

from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config import ConfigError, Tying


class OutputLayer(Protocol):
    """The output layer in another number format."""

    def __call__(self, features: Tensor) -> Tensor:
        """Logits [..., target_vocabulary] of features [..., output_dim]."""

    def outputs(self, chosen: Tensor) -> "OutputLayer":
        """The same for some target subwords, [chosen] int64."""


class Embeddings(nn.Module):
    """Source table, target table and output layer.

    Tying (Press and Wolf 2017): ``two-way`` makes the target table the output layer's matrix, ``three-way`` the source
    table as well. A shared matrix exists once, as ``target_table``; the others are then None.

    Args:
        source_vocabulary: number of source subwords.
        target_vocabulary: number of target subwords.
        dim: size of a word vector.
        output_dim: size of the features that become logits.
        tying: which of the three are one.
        output_bias: whether the output layer has a bias.

    Raises:
        ConfigError: a tie of matrices of different shapes.
    """

    def __init__(
        self, source_vocabulary: int, target_vocabulary: int, dim: int, output_dim: int, tying: Tying, output_bias: bool
    ) -> None:
        super().__init__()
        if tying != "none" and dim != output_dim:
            raise ConfigError(
                f"model.tie_embeddings: {tying} makes the word vectors ({dim} numbers) the rows of the output layer "
                f"({output_dim} numbers): give both the same size, or set model.tie_embeddings=none"
            )
        if tying == "three-way" and source_vocabulary != target_vocabulary:
            raise ConfigError(
                f"model.tie_embeddings: three-way needs one vocabulary for both sides, found {source_vocabulary} "
                f"source and {target_vocabulary} target subwords: set data.tokenizer.joint=true, or tie two-way"
            )

        def table(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(rows, columns))

        self.target_table = table(target_vocabulary, dim)
        self.source_table = None if tying == "three-way" else table(source_vocabulary, dim)
        self.output_table = None if tying != "none" else table(target_vocabulary, output_dim)
        self.output_bias = nn.Parameter(torch.empty(target_vocabulary)) if output_bias else None
        self.output: OutputLayer | None = None  # stands in for matrix and bias, if there is another form of them

    def source(self, ids: Tensor) -> Tensor:
        """Word vectors [..., dim] of source ids [...]."""
        return F.embedding(ids, self.target_table if self.source_table is None else self.source_table)

    def target(self, ids: Tensor) -> Tensor:
        """Word vectors [..., dim] of target ids [...]."""
        return F.embedding(ids, self.target_table)

    @property
    def output_matrix(self) -> nn.Parameter:
        """[target_vocabulary, output_dim]."""
        return self.target_table if self.output_table is None else self.output_table

    def logits(self, features: Tensor) -> Tensor:
        """[..., target_vocabulary] of features [..., output_dim]."""
        if self.output is not None:
            return self.output(features)
        return F.linear(features, self.output_matrix, self.output_bias)

    def logits_of(self, words: Tensor) -> Callable[[Tensor], Tensor]:
        """The output layer for some target subwords [words] int64: a function of features [..., output_dim]."""
        if self.output is not None:
            return self.output.outputs(words)
        matrix, bias = self.output_matrix[words], None if self.output_bias is None else self.output_bias[words]
        return lambda features: F.linear(features, matrix, bias)
