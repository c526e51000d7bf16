"""Looking elsewhere: weights moved by hand against values moved by the code."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.analysis import interventions
from nmt.analysis.interventions import Elsewhere, look_elsewhere, shuffled_places
from nmt.data.batch import Batch, collate
from nmt.models.attention import AdditiveAttention, CrossAttention, Reading, merge_heads
from nmt.models.memory import MemoryTable
from nmt.tokens import EOS
from tests.model_configs import ATTENDING, CONFIGS, lively

CPU = torch.device("cpu")
SHUFFLED, UNIFORM = Elsewhere("shuffled"), Elsewhere("uniform")


def batch() -> Batch:
    sources, targets = [[5, 9, 12, 7, EOS], [8, 6, EOS], [EOS]], [[6, 11, EOS], [7, 9, 13, 10, EOS], [12, EOS]]
    return collate(sources, targets, range(3))


def test_real_places_are_shuffled_and_padding_stays() -> None:
    generator = torch.Generator().manual_seed(1)
    lengths = torch.tensor([6, 3, 1, 0])
    seen = [shuffled_places(lengths, 6, generator) for _ in range(60)]
    for order in seen:
        for row, length in zip(order.tolist(), lengths.tolist(), strict=True):
            assert sorted(row[:length]) == list(range(length))
            assert row[length:] == list(range(length, 6))
    assert {tuple(order[1, :3].tolist()) for order in seen} == {
        (a, b, c) for a in range(3) for b in range(3) for c in range(3) if len({a, b, c}) == 3
    }


class _Moved:
    """Attention modules of a model with weights moved after the softmax by ``move``, and only while it is set."""

    def __init__(self, model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
        self.move = None
        additive, cross = AdditiveAttention.forward, CrossAttention.forward

        def read_additive(module: AdditiveAttention, query: Tensor, table: MemoryTable) -> Reading:
            found = additive(module, query, table)
            if self.move is None:
                return found
            weights = self.move(found.weights[:, None], table.mask)[:, 0]  # [rows, src_len]
            return Reading((weights[:, None] @ table.values)[:, 0], weights)

        def read_cross(module: CrossAttention, x: Tensor, table: MemoryTable, with_weights: bool = False) -> Reading:
            found = cross(module, x, table, True)
            if self.move is None:
                return found
            weights = self.move(found.weights[:, :, 0], table.mask)  # [rows, heads, src_len]
            return Reading(module.output(merge_heads(weights[:, :, None] @ table.values)), None)

        monkeypatch.setattr(AdditiveAttention, "forward", read_additive)
        monkeypatch.setattr(CrossAttention, "forward", read_cross)


@pytest.mark.parametrize("kind", ["shuffled", "uniform"])
@pytest.mark.parametrize("name", ATTENDING)
def test_moving_values_is_moving_weights(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Position order(j) gets the weight of position j; or every real position gets the same."""
    model, pairs = lively(CONFIGS[name]), batch()
    orders: list[Tensor] = []

    def remembered(lengths: Tensor, src_len: int, generator: torch.Generator) -> Tensor:
        orders.append(shuffled_places(lengths, src_len, generator))
        return orders[-1]

    monkeypatch.setattr(interventions, "shuffled_places", remembered)
    [found] = look_elsewhere(model, pairs, [Elsewhere(kind)], CPU, "fp32", seed=4)

    moved = _Moved(model, monkeypatch)
    values, clean = torch.zeros(pairs.target_out.shape), torch.zeros(pairs.target_out.shape)
    with torch.no_grad():
        memory = model.encode(pairs.source, pairs.source_lengths)
        state = model.init_state(memory)
        for t, order in enumerate(orders):
            step = model.step(pairs.target_in[:, t], state, memory)

            def move(weights: Tensor, mask: Tensor, order: Tensor = order) -> Tensor:
                if kind == "uniform":
                    return (mask / mask.sum(dim=1, keepdim=True))[:, None].expand_as(weights)
                return torch.zeros_like(weights).scatter(-1, order[:, None].expand_as(weights), weights)

            moved.move = move
            elsewhere = model.step(pairs.target_in[:, t], state, memory)
            moved.move = None
            token = pairs.target_out[:, t, None]
            for into, features in ((clean, step.features), (values, elsewhere.features)):
                into[:, t] = -model.project(features).log_softmax(-1).gather(1, token)[:, 0]
            state = step.state
    for row, length in enumerate(pairs.target_lengths.tolist()):
        assert found.nll[row] == pytest.approx(clean[row, :length].mean().item(), abs=1e-5)
        assert found.nll_elsewhere[row] == pytest.approx(values[row, :length].mean().item(), abs=1e-5)
    assert found.change[:2].min() > 1e-4
    assert found.change[2] < 1e-6  # only EOS to look at


def test_one_layer_is_one_layer() -> None:
    """What each layer does alone is something, is not what all do, and a layer that there is not does nothing."""
    model = lively(CONFIGS["transformer"])
    how = [Elsewhere("uniform"), Elsewhere("uniform", 1), Elsewhere("uniform", 2), Elsewhere("uniform", 3)]
    every, first, second, third = look_elsewhere(model, batch(), how, CPU, "fp32", seed=1)
    assert third.change.max() < 1e-6
    assert len({round(float(each.change[0]), 6) for each in (every, first, second, third)}) == 4


def test_where_all_values_are_the_same_weights_do_not_matter() -> None:
    model = lively(CONFIGS["bahdanau"])
    encode = model.encode

    def constant(source: Tensor, lengths: Tensor) -> MemoryTable:
        table = encode(source, lengths)
        return table._replace(values=torch.ones_like(table.values) * 0.3)

    model.encode = constant
    for found in look_elsewhere(model, batch(), [SHUFFLED, UNIFORM], CPU, "fp32", seed=1):
        assert found.change.max() < 1e-5
        np.testing.assert_allclose(found.nll_elsewhere, found.nll, atol=1e-5)


def test_the_undisturbed_steps_are_those_of_teacher_forcing() -> None:
    model, pairs = lively(CONFIGS["transformer-learned"]), batch()
    [found] = look_elsewhere(model, pairs, [SHUFFLED], CPU, "fp32", seed=1)
    with torch.no_grad():
        logits = model.project(model(pairs.source, pairs.source_lengths, pairs.target_in))
        nll = -logits.log_softmax(-1).gather(2, pairs.target_out[..., None])[..., 0]
    for row, length in enumerate(pairs.target_lengths.tolist()):
        assert found.nll[row] == pytest.approx(nll[row, :length].mean().item(), abs=1e-5)
