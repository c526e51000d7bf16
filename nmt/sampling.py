"""The picker of the next token that draws instead of ranking.

A token is drawn from p(token)^(1 / temperature), filtered and then normalised again: with ``top_k`` the k most probable
tokens remain (Fan et al. 2018), with ``top_p`` of these the fewest most probable ones that have the probability top_p
together, the one that crosses it included (Holtzman et al. 2020, section 3.1); among equals the lower id goes first.

Every sample has a random stream of its own, numpy's Philox seeded with (seed, key of its sentence, number of the
sample): what else is in the batch, and which process does it, has no part in it. A token wins a race of exponential
clocks, argmax(log p - log E) with E ~ Exp(1) for each token (the Gumbel-max trick), which draws from p exactly.
Inverting the cumulative distribution would need one random number instead of one for each token, but would hand on the
rounding of *every* probability: products are rounded with the size of the batch, and in a long tail of rare tokens that
decides. Here it decides between two tokens only if both almost won, as in a beam search.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.config import Sampling


def check_sampling(config: Sampling) -> None:
    """Refuse what nothing can be drawn with.

    Raises:
        ValueError: naming the option.
    """
    if not 0 < config.temperature < math.inf:
        raise ValueError(f"temperature (--temperature): expected a number above 0, found {config.temperature}")
    if config.top_k < 0:
        raise ValueError(f"top-k (--top-k): expected 1 or more, or 0 for all tokens, found {config.top_k}")
    if not 0 < config.top_p <= 1:
        raise ValueError(f"top-p (--top-p): expected a number above 0 and at most 1 (all tokens), found {config.top_p}")
    if config.seed < 0:
        raise ValueError(f"seed (--seed): expected 0 or more, found {config.seed}")


class Sampler:
    """Draws the next tokens of ``samples`` samples of every sentence; row s * samples + i is sample i of sentence s.

    Args:
        config: temperature, filters, seed.
        keys: of the sentences, 0 or more; what a sentence is known by wherever it is translated.
        samples: of each sentence. The first do not depend on how many there are.
    """

    def __init__(self, config: Sampling, keys: Sequence[int], samples: int) -> None:
        self._config = config
        seeds = [np.random.SeedSequence(config.seed, spawn_key=(key, i)) for key in keys for i in range(samples)]
        self._streams = [np.random.Generator(np.random.Philox(seed)) for seed in seeds]

    def pick(self, log_probs: Tensor, rows: Tensor) -> Tensor:
        """A token for each of the samples that still grow, [rows] int64.

        Args:
            log_probs: [rows, vocabulary] of the next token, -inf where it is barred; need not be normalised.
            rows: [rows], which samples these are; each must be asked for at every step until it ends.
        """
        weights = filtered(log_probs, self._config)  # [rows, vocabulary]
        # float64 throughout: one in some ten million float32 clocks shows exactly 0, and would let any token win.
        clocks = np.stack([self._streams[row].standard_exponential(log_probs.size(1)) for row in rows.tolist()])
        return (weights - torch.from_numpy(clocks).log().to(weights.device)).argmax(dim=1)


def filtered(log_probs: Tensor, config: Sampling) -> Tensor:
    """What is drawn from, as log weights of no particular sum: [rows, vocabulary] float64, -inf where nothing is."""
    best = log_probs.amax(dim=1, keepdim=True)
    weights = (log_probs - best).double() / config.temperature  # the best is 0 at any temperature
    if config.top_k == 0 and config.top_p == 1:
        return weights
    ranked, order = weights.sort(dim=1, descending=True, stable=True)
    if config.top_k > 0:
        ranked[:, config.top_k :] = -torch.inf
    if config.top_p < 1:
        probabilities = ranked.softmax(dim=1)
        before = probabilities.cumsum(dim=1) - probabilities  # of the more probable ones together
        before[:, 0] = 0.0  # whatever rounding says, the best remains
        ranked = ranked.masked_fill(before >= config.top_p, -torch.inf)
    return torch.empty_like(ranked).scatter_(1, order, ranked)
