"""``select_rows``: the only beam plumbing there is."""

from typing import NamedTuple

import torch
from torch import Tensor

from nmt.models.memory import MemoryTable, select_rows


class Pair(NamedTuple):
    left: Tensor
    right: tuple[Tensor, int]


def test_selects_in_every_tensor_of_a_tree_and_keeps_its_types() -> None:
    tree = (Pair(torch.arange(3), (torch.arange(6).view(3, 2), 7)), None)
    chosen = select_rows(tree, torch.tensor([2, 0, 2, 1]))
    assert isinstance(chosen[0], Pair)
    assert chosen[0].left.tolist() == [2, 0, 2, 1]
    assert chosen[0].right[0].tolist() == [[4, 5], [0, 1], [4, 5], [2, 3]]
    assert chosen[0].right[1] == 7
    assert chosen[1] is None


def test_a_table_stays_a_table_and_says_which_rows_are_empty() -> None:
    mask = torch.tensor([[True, False], [False, False]])
    table = select_rows(MemoryTable(torch.zeros(2, 2, 3), torch.zeros(2, 2, 3), mask), torch.tensor([1, 0, 1]))
    assert table.empty.tolist() == [True, False, True]
