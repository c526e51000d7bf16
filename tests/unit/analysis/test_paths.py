"""Path lengths and serial depth against what the architectures' equations say."""

from dataclasses import replace

import pytest
import torch

from nmt.analysis.paths import Paths, handing_over, trace_depth, trace_paths
from nmt.config import ModelConfig
from nmt.models import build
from tests.model_configs import BAHDANAU, CONFIGS, SEQ2SEQ, TRANSFORMER, random_rows, shift_right

SOURCE, TARGET = 5, 4


def earlier_words(recurrent: bool) -> list[list[int | None]]:
    """Path of each target word to the position of a later one: a hand-over a position, or one read at any distance.

    The word just before is read at the position itself.
    """
    rows: list[list[int | None]] = []
    for position in range(TARGET):
        steps = [position - 1 - word for word in range(TARGET - 1)]
        rows.append([None if step < 0 else (step if recurrent else min(step, 1)) for step in steps])
    return rows


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("tying", ["none", "three-way"])
def test_fixed_vector_passes_every_position_between(layers: int, tying: str) -> None:
    config = replace(SEQ2SEQ, layers=layers, tie_embeddings=tying, reverse_source=False)
    # The rest of the encoder (EOS included), the hand-over to the decoder, the decoder's steps so far.
    expected: list[list[int | None]] = [[SOURCE - j + 1 + t for j in range(SOURCE)] for t in range(TARGET)]
    assert trace_paths(config, SOURCE, TARGET) == Paths(expected, earlier_words(recurrent=True))


def test_reversed_source_brings_first_words_together() -> None:
    # Word j is read in place SOURCE - 1 - j, EOS stays last.
    expected: list[list[int | None]] = [[j + 2 + t for j in range(SOURCE)] for t in range(TARGET)]
    assert trace_paths(SEQ2SEQ, SOURCE, TARGET).from_source == expected


def test_attention_reads_any_word_in_one() -> None:
    ones: list[list[int | None]] = [[1] * SOURCE for _ in range(TARGET)]
    assert trace_paths(BAHDANAU, SOURCE, TARGET) == Paths(ones, earlier_words(recurrent=True))


@pytest.mark.parametrize("name", [name for name in CONFIGS if name.startswith("transformer")])
def test_transformer_reads_any_word_of_either_side_in_one(name: str) -> None:
    ones: list[list[int | None]] = [[1] * SOURCE for _ in range(TARGET)]
    assert trace_paths(CONFIGS[name], SOURCE, TARGET) == Paths(ones, earlier_words(recurrent=False))


def test_only_recurrence_is_serial_in_training() -> None:
    assert trace_depth(TRANSFORMER).per_token == 0
    deeper = replace(TRANSFORMER, decoder_layers=TRANSFORMER.decoder_layers + 1)
    assert trace_depth(deeper).of_short > trace_depth(TRANSFORMER).of_short
    assert trace_depth(SEQ2SEQ).per_token > 2  # several operations for a step of the encoder and one of the decoder
    assert trace_depth(BAHDANAU).per_token > 2


def test_too_many_positions_are_refused() -> None:
    with pytest.raises(ValueError, match="7 \\+ 4 words: expected at most 10"):
        trace_paths(SEQ2SEQ, 7, 4)


@pytest.mark.parametrize("name", CONFIGS)
def test_one_position_at_a_time_is_the_same_model(name: str) -> None:
    config: ModelConfig = CONFIGS[name]
    model = build(config, 23, 23, seed=3).eval()
    source, lengths = random_rows([6], seed=1)
    target, _ = random_rows([5], seed=2)
    arguments = source, lengths, shift_right(target)
    expected = model(*arguments)
    with handing_over(model, 1.0):
        torch.testing.assert_close(model(*arguments), expected, atol=1e-6, rtol=1e-5)
    with handing_over(model, 0.5):
        assert not torch.allclose(model(*arguments), expected, atol=1e-6)
    torch.testing.assert_close(model(*arguments), expected, atol=0, rtol=0)  # nothing stays behind
