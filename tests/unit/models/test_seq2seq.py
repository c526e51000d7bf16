"""The fixed-vector model against ``nn.LSTM`` on single unpadded sentences; reversal; initialisation."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.models import build
from nmt.models.reversal import reverse_words
from nmt.tokens import EOS, PAD
from tests.model_configs import SEQ2SEQ, VOCABULARY, lively, random_rows, shift_right

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SOURCE, LENGTHS = random_rows([7, 3, 5, 1], seed=1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(4, VOCABULARY - 1), max_size=6), min_size=1, max_size=5), st.integers(0, 3))
def test_reversal_turns_the_words_round_and_nothing_else(sentences: list[list[int]], padding: int) -> None:
    width = max(map(len, sentences)) + 1 + padding

    def padded(rows: list[list[int]]) -> list[list[int]]:
        return [[*row, EOS] + [PAD] * (width - 1 - len(row)) for row in rows]

    lengths = torch.tensor([len(row) + 1 for row in sentences])
    reversed_rows = reverse_words(torch.tensor(padded(sentences)), lengths)
    assert reversed_rows.tolist() == padded([row[::-1] for row in sentences])


def test_reversal_leaves_a_row_of_padding() -> None:
    rows = torch.tensor([[PAD, PAD, PAD], [5, 6, EOS]])
    assert reverse_words(rows, torch.tensor([0, 3])).tolist() == [[PAD, PAD, PAD], [6, 5, EOS]]


def test_a_reversing_encoder_is_a_plain_one_on_reversed_sentences() -> None:
    reversing, plain = lively(SEQ2SEQ), lively(replace(SEQ2SEQ, reverse_source=False))
    by_hand = SOURCE.clone()
    for row, length in enumerate(LENGTHS.tolist()):
        by_hand[row, : length - 1] = SOURCE[row, : length - 1].flip(0)
    for ours, expected in zip(reversing.encode(SOURCE, LENGTHS), plain.encode(by_hand, LENGTHS), strict=True):
        torch.testing.assert_close(ours, expected)
    assert not torch.allclose(reversing.encode(SOURCE, LENGTHS).hidden, plain.encode(SOURCE, LENGTHS).hidden)


def test_the_fixed_vector_is_the_final_state_of_every_layer() -> None:
    model = lively(replace(SEQ2SEQ, reverse_source=False))
    memory = model.encode(SOURCE, LENGTHS)
    assert memory.hidden.shape == (4, 2, 8)  # [batch, layers, dim]
    for row, length in enumerate(LENGTHS.tolist()):
        _, (hidden, cell) = model.encoder(model.embeddings.source(SOURCE[row : row + 1, :length]))  # no padding at all
        torch.testing.assert_close(memory.hidden[row], hidden[:, 0], **CLOSE)
        torch.testing.assert_close(memory.cell[row], cell[:, 0], **CLOSE)


def test_the_fixed_vector_equals_the_equations() -> None:
    """[i f g o] = W x + b + U h + b'; c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c), layer by layer."""
    model = lively(replace(SEQ2SEQ, reverse_source=False))
    weights = dict(model.encoder.named_parameters())
    memory = model.encode(SOURCE, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        inputs = list(model.embeddings.source(SOURCE[row, :length]))
        for layer in range(2):
            hidden, cell = torch.zeros(8), torch.zeros(8)
            outputs = []
            for x in inputs:
                gates = weights[f"weight_ih_l{layer}"] @ x + weights[f"bias_ih_l{layer}"]
                gates = gates + weights[f"weight_hh_l{layer}"] @ hidden + weights[f"bias_hh_l{layer}"]
                i, f, g, o = gates.chunk(4)
                cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
                hidden = o.sigmoid() * cell.tanh()
                outputs.append(hidden)
            torch.testing.assert_close(memory.hidden[row, layer], hidden, **CLOSE)
            torch.testing.assert_close(memory.cell[row, layer], cell, **CLOSE)
            inputs = outputs


def test_decode_is_the_lstm_started_from_the_fixed_vector() -> None:
    model = lively(SEQ2SEQ)
    target_in = shift_right(random_rows([4, 6, 2, 3], seed=2)[0])
    memory = model.encode(SOURCE, LENGTHS)
    start = (memory.hidden.transpose(0, 1).contiguous(), memory.cell.transpose(0, 1).contiguous())
    expected, _ = model.decoder(model.embeddings.target(target_in), start)
    torch.testing.assert_close(model.decode(target_in, memory), expected, **CLOSE)


def test_a_row_without_tokens_leaves_zeros() -> None:
    source, lengths = random_rows([3, 0], seed=3)
    memory = lively(SEQ2SEQ).encode(source, lengths)
    assert torch.count_nonzero(memory.hidden[1]) == torch.count_nonzero(memory.cell[1]) == 0


def test_initial_parameters_are_uniform_in_the_range() -> None:
    model = build(replace(SEQ2SEQ, init_range=0.08, hidden_dim=64, embedding_dim=64), VOCABULARY, VOCABULARY, seed=1)
    values = torch.cat([parameter.flatten() for parameter in model.parameters()])
    assert values.abs().max() <= 0.08
    assert values.std().item() == pytest.approx(0.08 / 3**0.5, rel=0.02)
    assert abs(values.mean().item()) < 1e-3
