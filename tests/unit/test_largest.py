"""The largest of a row against a sort of it."""

import pytest
import torch

from nmt.largest import largest


@pytest.mark.parametrize("size", [7, 1023, 1024, 10_240, 40_003])
@pytest.mark.parametrize("wanted", [1, 2, 7])
def test_the_largest_of_a_row_whatever_its_length(size, wanted):
    scores = torch.randn(5, size, generator=torch.Generator().manual_seed(size))
    scores[1, : size // 2] = -torch.inf
    scores[2] = torch.linspace(0, 1, size)  # all the largest side by side, at the end
    scores[3] = scores[2].flip(0)
    values, places = largest(scores, wanted)
    expected = scores.sort(dim=1, descending=True)
    assert torch.equal(values.sort(dim=1, descending=True).values, expected.values[:, :wanted])
    assert torch.equal(scores.gather(1, places), values)
    assert all(len(set(row)) == wanted for row in places.tolist())
