"""What a translation must begin with and may not contain: continuations are barred before the search ranks them.

- PAD and BOS are never produced, EOS not before ``min_length`` subwords.
- ``forbid_unk``: UNK is not produced.
- ``no_repeat_ngram`` = n above 0: no n subwords stand twice in a hypothesis (Paulus et al. 2018, section 2.5, where n
  is 3). EOS is none of them.
- A prefix is what a sentence's translation begins with, subword for subword. It goes before all of the above; what
  comes after it repeats none of its n-grams.

A barred continuation has log probability -inf, and nothing else changes: what is barred keeps its share in the
normalisation, so that a score is the one that teacher forcing gives.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.config import SearchConfig
from nmt.tokens import BOS, EOS, PAD, UNK


def check_prefixes(prefixes: Sequence[Sequence[int]], sentences: int) -> None:
    """Refuse prefixes that no translation of ``sentences`` sentences can begin with.

    Raises:
        ValueError: naming the place of the sentence, from 0.
    """
    if len(prefixes) != sentences:
        raise ValueError(
            f"prefixes: expected one for each of {sentences} sentences (it may be empty), found {len(prefixes)}"
        )
    for place, prefix in enumerate(prefixes):
        for token in prefix:
            if token < 0 or token in (PAD, BOS, EOS):
                raise ValueError(
                    f"prefix of sentence {place}: expected ids of subwords, found {token}; "
                    f"PAD ({PAD}), BOS ({BOS}) and EOS ({EOS}) stand in no translation"
                )


class Constraints:
    """Those of one batch.

    Args:
        config: ``min_length``, ``no_repeat_ngram``, ``forbid_unk``.
        prefixes: for each sentence what its translation begins with, or None; empty is free.
        device: where the log probabilities are.
    """

    def __init__(self, config: SearchConfig, prefixes: Sequence[Sequence[int]] | None, device: torch.device) -> None:
        self._config = config
        self._prefixes: Tensor | None = None  # [sentences, longest prefix], PAD behind each
        self._highest = max((token for prefix in prefixes or [] for token in prefix), default=PAD)
        if prefixes is not None and any(prefixes):
            rows = [torch.tensor(list(prefix), dtype=torch.int64) for prefix in prefixes]
            self._prefixes = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD).to(device)

    def raise_limit(self, limit: Tensor) -> Tensor:
        """Most subwords of each translation, [sentences]: as given, or the prefix and EOS where that is more."""
        if self._prefixes is None:
            return limit
        return limit.maximum((self._prefixes != PAD).sum(dim=1) + 1)

    def apply(self, log_probs: Tensor, tokens: Tensor, sentence: Tensor) -> None:
        """Bar continuations, in place.

        Args:
            log_probs: [sentences * beams, vocabulary] of the next token.
            tokens: [sentences, beams, length], what the hypotheses have so far.
            sentence: [sentences], the row that each had in the batch at first.

        Raises:
            ValueError: a prefix with an id beyond the vocabulary.
        """
        length, config = tokens.size(2) + 1, self._config
        wanted = self._wanted(tokens, sentence, log_probs.size(1))  # [rows, 1] or None
        kept = None if wanted is None else log_probs.gather(1, wanted)
        for token in (PAD, BOS) if length > config.min_length else (PAD, BOS, EOS):
            log_probs[:, token] = -torch.inf
        if config.forbid_unk:
            log_probs[:, UNK] = -torch.inf
        if 0 < config.no_repeat_ngram < length:
            _bar_repeats(log_probs, tokens.flatten(end_dim=1), config.no_repeat_ngram)
        if wanted is not None and kept is not None:
            free = wanted == PAD  # PAD takes the write that means nothing: it is barred in any case
            log_probs.masked_fill_(~free, -torch.inf)
            log_probs.scatter_(1, wanted, kept.masked_fill(free, -torch.inf))

    def _wanted(self, tokens: Tensor, sentence: Tensor, vocabulary: int) -> Tensor | None:
        """The next token of every row's prefix, PAD behind its end, [rows, 1]; None where all prefixes are over."""
        _, beams, place = tokens.shape
        if self._prefixes is None or place >= self._prefixes.size(1):
            return None
        if self._highest >= vocabulary:
            raise ValueError(
                f"prefixes: found id {self._highest}, expected ids below {vocabulary}, the size of the vocabulary"
            )
        return self._prefixes[sentence, place].repeat_interleave(beams)[:, None]


def _bar_repeats(log_probs: Tensor, tokens: Tensor, n: int) -> None:
    """Bar every token that would make the last ``n`` subwords ones that a row has had.

    Args:
        log_probs: [rows, vocabulary], changed in place; PAD is barred already.
        tokens: [rows, length], at least ``n`` long.
        n: of the n-grams; with 1 no token comes twice.
    """
    grams = tokens.unfold(1, n, 1)  # [rows, length - n + 1, n]
    begun = tokens[:, tokens.size(1) - n + 1 :]  # [rows, n - 1], what the next token completes
    again = (grams[..., :-1] == begun[:, None]).all(dim=-1)  # [rows, length - n + 1]
    log_probs.scatter_(1, grams[..., -1].where(again, PAD), -torch.inf)
