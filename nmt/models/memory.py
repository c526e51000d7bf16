"""What an encoder leaves for the decoder: one fixed vector, or a table that can be looked up.

The return types of ``encode`` tell the story of the three architectures: :class:`FixedVector` (Sutskever et al. 2014)
has no source axis, so there is nothing to look up; :class:`MemoryTable` (Bahdanau et al. 2014) has one row per source
position; the Transformer (Vaswani et al. 2017) leaves one table per decoder layer.
"""

from typing import NamedTuple, TypeVar, cast

from torch import Tensor

Tree = TypeVar("Tree")


class FixedVector(NamedTuple):
    """Final encoder state of every layer: all that the decoder of a fixed-vector model ever gets."""

    hidden: Tensor  # [batch, layers, dim]
    cell: Tensor  # [batch, layers, dim]


class MemoryTable(NamedTuple):
    """A table with one entry per source position; keys are compared with the query, values are what is read."""

    keys: Tensor  # [batch, src_len, dim], or [batch, heads, src_len, head_dim]
    values: Tensor  # [batch, src_len, dim], or [batch, heads, src_len, head_dim]
    mask: Tensor  # [batch, src_len], bool, True = real token

    @property
    def empty(self) -> Tensor:
        """Rows with no valid source position at all, [batch] bool. Their context and weights are exactly zero."""
        return ~self.mask.any(dim=1)


Memory = FixedVector | MemoryTable | tuple[MemoryTable, ...]


def select_rows(tree: Tree, rows: Tensor) -> Tree:
    """Index axis 0 of every tensor in a tree of tuples and named tuples; anything that is not a tensor stays.

    This is the only beam plumbing there is: expanding a sentence into its hypotheses, reordering the state by parent,
    and dropping finished sentences from state and memory are all one call.

    Args:
        tree: tensor, (named) tuple of trees, what has a method ``select_rows(rows)`` of its own, or any other value
            (returned as it is).
        rows: [new_rows] int64, the old row that each new row takes.
    """
    if isinstance(tree, Tensor):
        return cast(Tree, tree.index_select(0, rows))
    if hasattr(tree, "select_rows"):
        return cast(Tree, tree.select_rows(rows))
    if isinstance(tree, tuple):
        parts = [select_rows(part, rows) for part in tree]
        return cast(Tree, type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts))
    return tree
