"""The Transformer without its cache, held against the one with it."""

from dataclasses import replace

import pytest
import torch

from nmt.analysis.uncached import Uncached
from nmt.models.transformer import Transformer
from nmt.search import search
from tests.model_configs import CONFIGS, lively, random_rows
from tests.oracles import options


@pytest.mark.parametrize("name", [name for name in CONFIGS if name.startswith("transformer")])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_it_finds_what_the_model_finds(name: str, beam_size: int) -> None:
    model = lively(CONFIGS[name])
    assert isinstance(model, Transformer)
    source, lengths = random_rows([5, 3, 7, 1], seed=3)
    config = replace(options(beam_size=beam_size, max_length_b=9), length_penalty="simple")
    expected = search([model], source, lengths, config, n_best=beam_size)
    found = search([Uncached(model)], source, lengths, config, n_best=beam_size)
    for ours, theirs in zip(found, expected, strict=True):
        assert [each.tokens for each in ours] == [each.tokens for each in theirs]
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-4)


def test_its_state_is_the_tokens_so_far() -> None:
    model = lively(CONFIGS["transformer"])
    assert isinstance(model, Transformer)
    uncached = Uncached(model)
    memory = uncached.encode(*random_rows([4, 2], seed=1))
    state = uncached.init_state(memory)
    for token in (2, 7, 9):
        state = uncached.step(torch.tensor([token, token + 1]), state, memory).state
    assert state.tolist() == [[2, 7, 9], [3, 8, 10]]
