"""RNNsearch against the paper's equations, one number at a time, and against torch's own GRU with the same weights."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from nmt.models import build
from nmt.models.bahdanau import SplitGRUCell
from nmt.models.memory import select_rows
from tests.model_configs import BAHDANAU, VOCABULARY, lively, random_rows, shake, shift_right

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SOURCE, LENGTHS = random_rows([7, 3, 5, 1], seed=1)
TARGET_IN = shift_right(random_rows([4, 6, 2, 3], seed=2)[0])


def test_cell_equals_torch() -> None:
    ours, theirs = SplitGRUCell(word_dim=3, context_dim=4, hidden_dim=5), nn.GRUCell(7, 5)
    shake(ours)
    with torch.no_grad():
        theirs.weight_ih.copy_(torch.cat([ours.word_gates.weight, ours.context_gates.weight], dim=1))
        theirs.bias_ih.copy_(ours.word_gates.bias)
        theirs.weight_hh.copy_(ours.recurrent_gates.weight)
        theirs.bias_hh.copy_(ours.recurrent_gates.bias)
    word, context, state = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 5)
    expected = theirs(torch.cat([word, context], dim=1), state)
    torch.testing.assert_close(ours(ours.project_input(word), context, state), expected, **CLOSE)


def directions(encoder: nn.GRU) -> tuple[nn.GRU, nn.GRU]:
    """The two directions of a bidirectional GRU as two plain ones."""
    parameters = dict(encoder.named_parameters())
    pair = []
    for suffix in ("", "_reverse"):
        one = nn.GRU(encoder.input_size, encoder.hidden_size, batch_first=True)
        one.load_state_dict({name: parameters[name + suffix] for name, _ in one.named_parameters()})
        pair.append(one)
    return pair[0], pair[1]


@pytest.mark.parametrize("reverse_source", [False, True])
def test_annotations_are_two_readings_of_the_sentence_without_its_padding(reverse_source: bool) -> None:
    model = lively(replace(BAHDANAU, reverse_source=reverse_source))
    memory = model.encode(SOURCE, LENGTHS)
    forward, backward = directions(model.encoder)
    for row, length in enumerate(LENGTHS.tolist()):
        read = [*range(length)]  # places of the sentence in the order in which they are read, EOS last
        if reverse_source:
            read = [*range(length - 2, -1, -1), length - 1]
        embedded = model.embeddings.source(SOURCE[row : row + 1, read])
        left_to_right = forward(embedded)[0][0]
        right_to_left, end = backward(embedded.flip(1))
        expected = torch.cat([left_to_right, right_to_left[0].flip(0)], dim=1)
        torch.testing.assert_close(memory.values[row, read], expected, **CLOSE)
        torch.testing.assert_close(memory.keys[row, read], model.reader.key(expected), **CLOSE)
        s_0 = torch.tanh(model.initial(end[0, 0]))  # of what the backward pass ends on, having read everything
        torch.testing.assert_close(model.init_state(memory)[row], s_0, **CLOSE)


@pytest.mark.parametrize("reverse_source", [False, True])
def test_the_column_of_a_word_is_that_of_its_place_in_the_sentence(reverse_source: bool) -> None:
    """With an encoder that keeps nothing of what it has read, another word changes its own column and no other."""
    model = lively(replace(BAHDANAU, reverse_source=reverse_source))
    with torch.no_grad():
        for suffix in ("", "_reverse"):
            getattr(model.encoder, f"weight_hh_l0{suffix}").zero_()
            getattr(model.encoder, f"bias_ih_l0{suffix}").chunk(3)[1].fill_(-1e4)  # z = 0
    memory = model.encode(SOURCE, LENGTHS)
    # One state for all, so that what is asked for does not change with s_0.
    state = torch.linspace(-1, 1, BAHDANAU.hidden_dim).expand(len(LENGTHS), -1)
    scores = model.step(TARGET_IN[:, 0], state, memory, with_attention=True).attention[:, 0, 0].log()
    for row, length in enumerate(LENGTHS.tolist()):
        for place in range(length - 1):
            swapped = SOURCE.clone()
            swapped[row, place] = 4 + (SOURCE[row, place] - 3) % (VOCABULARY - 4)
            after = model.encode(swapped, LENGTHS)
            others = [column for column in range(length) if column != place]
            assert torch.equal(after.values[row, others], memory.values[row, others])
            assert not torch.allclose(after.values[row, place], memory.values[row, place])
            weights = model.step(TARGET_IN[:, 0], state, after, with_attention=True).attention[row, 0, 0]
            shift = weights[:length].log() - scores[row, :length]  # but for the sum of all, the same in every column
            torch.testing.assert_close(shift[others], shift[length - 1].expand(length - 1), **CLOSE)
            assert abs(shift[place] - shift[length - 1]) > 1e-4


def test_reading_backwards_reads_the_reversed_sentence_and_leaves_the_table_in_order() -> None:
    """The same parameters on sentences reversed by hand: the table has the same entries in the other order, and as
    attention asks by content alone, whatever is read from it is the same, weights moved to where their words stand."""
    backwards, plain = (lively(replace(BAHDANAU, reverse_source=reverse)) for reverse in (True, False))
    by_hand = SOURCE.clone()
    for row, length in enumerate(LENGTHS.tolist()):
        by_hand[row, : length - 1] = SOURCE[row, : length - 1].flip(0)
    ours, theirs = backwards.encode(SOURCE, LENGTHS), plain.encode(by_hand, LENGTHS)
    state = backwards.init_state(ours)
    torch.testing.assert_close(ours.mask, theirs.mask)
    step, other = (
        model.step(TARGET_IN[:, 0], state, memory, with_attention=True)
        for model, memory in ((backwards, ours), (plain, theirs))
    )
    for row, length in enumerate(LENGTHS.tolist()):
        there = [*reversed(range(length - 1)), length - 1]
        torch.testing.assert_close(ours.values[row, :length], theirs.values[row, there], **CLOSE)
        torch.testing.assert_close(ours.keys[row, :length], theirs.keys[row, there], **CLOSE)
        torch.testing.assert_close(step.attention[row, 0, 0, :length], other.attention[row, 0, 0, there], **CLOSE)
    torch.testing.assert_close(state, plain.init_state(theirs), **CLOSE)
    torch.testing.assert_close(backwards.decode(TARGET_IN, ours), plain.decode(TARGET_IN, theirs), **CLOSE)


def by_the_paper(model: nn.Module, annotations: Tensor, target_in: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Appendix A for one sentence: annotations [src_len, 2n], target_in [tgt_len] -> readouts, weights, states."""
    hidden_dim = model.initial.out_features
    state = torch.tanh(model.initial.weight @ annotations[0, hidden_dim:] + model.initial.bias)
    u_o, v_o, c_o = model.readout.weight.split([hidden_dim, model.embeddings.target_table.size(1), 2 * hidden_dim], 1)
    w_r, w_z, w_n = model.cell.word_gates.weight.chunk(3)
    b_r, b_z, b_n = model.cell.word_gates.bias.chunk(3)
    c_r, c_z, c_n = model.cell.context_gates.weight.chunk(3)
    u_r, u_z, u_n = model.cell.recurrent_gates.weight.chunk(3)
    d_r, d_z, d_n = model.cell.recurrent_gates.bias.chunk(3)
    readouts, all_weights, states = [], [], []
    for token in target_in:
        word = model.embeddings.target_table[token]
        scores = [
            model.reader.score.weight[0] @ torch.tanh(model.reader.query.weight @ state + model.reader.key.weight @ h)
            for h in annotations
        ]
        weights = torch.stack(scores).softmax(0)
        context = weights @ annotations
        units = (u_o @ state + v_o @ word + c_o @ context + model.readout.bias).view(2, -1)
        readouts.append(torch.stack([max(a, b) for a, b in units.T]))
        r = torch.sigmoid(w_r @ word + b_r + c_r @ context + u_r @ state + d_r)
        z = torch.sigmoid(w_z @ word + b_z + c_z @ context + u_z @ state + d_z)
        n = torch.tanh(w_n @ word + b_n + c_n @ context + r * (u_n @ state + d_n))
        state = (1 - z) * n + z * state
        all_weights.append(weights)
        states.append(state)
    return torch.stack(readouts), torch.stack(all_weights), torch.stack(states)


def test_decoder_equals_the_equations() -> None:
    model = lively(BAHDANAU)
    memory = model.encode(SOURCE, LENGTHS)
    features, weights = model.decode(TARGET_IN, memory), model.attention(TARGET_IN, memory)
    for row, length in enumerate(LENGTHS.tolist()):
        readouts, expected_weights, states = by_the_paper(model, memory.values[row, :length], TARGET_IN[row])
        torch.testing.assert_close(features[row], readouts, **CLOSE)
        torch.testing.assert_close(weights[row, 0, 0, :, :length], expected_weights, **CLOSE)
        alone = select_rows(memory, torch.tensor([row]))
        state = model.init_state(alone)
        for position, token in enumerate(TARGET_IN[row]):
            state = model.step(token[None], state, alone).state
            torch.testing.assert_close(state[0], states[position], **CLOSE)


def test_with_nothing_to_read_the_decoder_is_a_plain_gru() -> None:
    model = lively(BAHDANAU)
    memory = model.encode(*random_rows([0, 0, 0, 5], seed=4))
    gru = nn.GRU(BAHDANAU.embedding_dim, BAHDANAU.hidden_dim, batch_first=True)
    cell = model.cell
    with torch.no_grad():
        gru.weight_ih_l0.copy_(cell.word_gates.weight)
        gru.bias_ih_l0.copy_(cell.word_gates.bias)
        gru.weight_hh_l0.copy_(cell.recurrent_gates.weight)
        gru.bias_hh_l0.copy_(cell.recurrent_gates.bias)
    state = model.init_state(memory)
    expected, _ = gru(model.embeddings.target(TARGET_IN), state[None].contiguous())
    for position in range(TARGET_IN.size(1)):
        state = model.step(TARGET_IN[:, position], state, memory).state
        torch.testing.assert_close(state[:3], expected[:3, position], **CLOSE)
        assert not torch.allclose(state[3], expected[3, position])


def test_the_state_stays_in_float32_under_autocast() -> None:
    model = lively(BAHDANAU)
    with torch.autocast("cpu", torch.bfloat16):
        memory = model.encode(SOURCE, LENGTHS)
        state = model.init_state(memory)
        assert state.dtype == torch.float32
        assert model.step(TARGET_IN[:, 0], state, memory).state.dtype == torch.float32


def test_initialisation_of_the_paper() -> None:
    config = replace(BAHDANAU, initialization="paper", hidden_dim=40, embedding_dim=50, attention_dim=60, maxout_dim=30)
    parameters = dict(build(config, 500, 500, seed=1).named_parameters())
    recurrent = [name for name in parameters if "weight_hh" in name or name == "cell.recurrent_gates.weight"]
    assert len(recurrent) == 3
    for name in recurrent:
        for gate in parameters.pop(name).chunk(3):
            torch.testing.assert_close(gate @ gate.T, torch.eye(40), **CLOSE)
    for name, parameter in parameters.items():
        if parameter.dim() == 1 or name == "reader.score.weight":
            assert torch.count_nonzero(parameter) == 0, name
        else:
            deviation = 0.001 if name.startswith("reader") else 0.01
            assert parameter.std().item() == pytest.approx(deviation, rel=0.1), name
