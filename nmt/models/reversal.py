"""The source read backwards, word by word: Sutskever, Vinyals and Le (2014), section 3.3."""

import torch
from torch import Tensor


def reverse_words(values: Tensor, lengths: Tensor) -> Tensor:
    """Reverse the words of each row; EOS and padding stay where they are. Done twice, it changes nothing.

    ``a b c EOS PAD`` becomes ``c b a EOS PAD``: the paper reverses the words of the sentence, and EOS is no word but
    the sign that the sentence is over. Only EOS then stands between the first source word and the first target word.

    Args:
        values: [batch, src_len] tokens or [batch, src_len, dim] vectors; each row ends in EOS, padded on the right.
        lengths: [batch], EOS included.
    """
    positions = torch.arange(values.size(1), device=values.device)[None]  # [1, src_len]
    words = lengths[:, None] - 1
    order = torch.where(positions < words, words - 1 - positions, positions)  # [batch, src_len]
    return values.gather(1, order if values.dim() == 2 else order[..., None].expand_as(values))
