"""What turns source ids into hypotheses: the models of this project in this process, or anything that does the same.

A :class:`Request` is one batch and all that is asked about it, in ids and plain values, so that it can be sent to
another process; an :class:`Engine` answers requests in order.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import torch

from nmt.config import Sampling, SearchConfig
from nmt.data.batch import encode_source
from nmt.device import SearchPrecision, autocast, give_back_freed_memory
from nmt.forced import check_attention, with_details
from nmt.lexicon import Shortlist
from nmt.models.base import TranslationModel
from nmt.models.int8 import quantized
from nmt.search import Hypothesis, search

TRIM_EVERY = 64
"""Requests after which a process gives back the memory that it has kept for tensors."""


class Request(NamedTuple):
    """One batch of sentences to translate."""

    sources: Sequence[Sequence[int]]  # subword ids of each, without EOS
    config: SearchConfig
    n_best: int = 1
    prefixes: Sequence[Sequence[int]] | None = None  # target subword ids that each translation begins with
    sampling: Sampling | None = None  # n_best samples instead of the n best
    keys: Sequence[int] | None = None  # of the sentences, for sampling
    with_token_scores: bool = False  # fill in Hypothesis.token_log_probabilities
    with_attention: bool = False  # fill in Hypothesis.attention


class Engine(Protocol):
    """Answers requests in order: for each of its sentences what ``nmt.search.search`` promises.

    What cannot be done is refused with a ValueError, also where a request has no sentences: so it can be asked about
    beforehand.
    """

    def run(self, requests: Iterable[Request]) -> Iterator[list[list[Hypothesis]]]:
        """The hypotheses of every request; takes the next request when it can work on it."""


class TorchEngine:
    """Models in this process.

    Args:
        models: one, or an ensemble; all on ``device``.
        device: where the models are.
        precision: number format of matrix products; probabilities are float32 in any case.
        shortlist: restricts the output layer.
    """

    def __init__(
        self,
        models: Sequence[TranslationModel],
        device: torch.device,
        precision: SearchPrecision,
        shortlist: Shortlist | None = None,
    ) -> None:
        self.models = [quantized(model) for model in models] if precision == "int8" else list(models)
        self.device = device
        self.precision = precision
        self.shortlist = shortlist
        self._requests = 0

    def run(self, requests: Iterable[Request]) -> Iterator[list[list[Hypothesis]]]:
        """See :class:`Engine`."""
        for request in requests:
            self._requests += 1  # of all runs: a worker process has a run for each
            if self._requests % TRIM_EVERY == 0:
                give_back_freed_memory()
            if request.with_attention:
                check_attention(self.models)
            source, lengths = (tensor.to(self.device) for tensor in encode_source(request.sources))
            with autocast(self.device, self.precision):
                found = search(
                    self.models,
                    source,
                    lengths,
                    request.config,
                    request.n_best,
                    prefixes=request.prefixes,
                    sampling=request.sampling,
                    keys=request.keys,
                    shortlist=self.shortlist,
                )
                if request.with_token_scores or request.with_attention:
                    found = with_details(
                        self.models,
                        request.sources,
                        found,
                        self.device,
                        request.with_token_scores,
                        request.with_attention,
                    )
            yield found
