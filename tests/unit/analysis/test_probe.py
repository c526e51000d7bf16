"""What the probe multiplies, and how often: the operations of a training step, all of them."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.analysis import probe
from nmt.analysis.cost import TRAINING, products
from nmt.analysis.probe import Probe, Shape
from tests.model_configs import CONFIGS, VOCABULARY

CPU = torch.device("cpu")
Multiply = Callable[[Tensor, Tensor], Tensor]


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer"])
def test_its_products_are_those_of_forward_and_backward(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "CHUNK_ROWS", 4)  # 6 * 5 target positions: seven chunks and a half
    of_model = products(CONFIGS[name], VOCABULARY, pairs=6, source=7, target=5)
    made = Probe(of_model, CPU, "fp32")
    forward = sum(times * shape.operations for shape, times in made.forward.items())
    weights = sum(times * shape.operations for shape, times in made.weight_gradient.items())
    assert 2 * forward + weights == pytest.approx(TRAINING * sum(each.operations for each in of_model if each.weight))
    output = [shape for shape in made.forward if shape.columns == VOCABULARY]
    assert [shape.rows for shape in output] == [4]


def test_rate_is_all_operations_over_all_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that only products move, each as long as it has operations at a known rate."""

    def run(
        self: Probe, repeats: int, multiply: Callable[[Tensor, Tensor], Tensor], one: Tensor, other: Tensor
    ) -> float:
        rows, columns = multiply(one, other).shape
        slow = 2.0 if rows == VOCABULARY or columns == VOCABULARY else 1.0
        return repeats * slow * 2 * one.size(0) * one.size(1) * columns / 1e6

    monkeypatch.setattr(Probe, "_run", run)
    of_model = [each for each in products(CONFIGS["transformer"], VOCABULARY, 6, 7, 5) if each.weight]
    total = sum(each.operations for each in of_model)
    output = sum(each.operations for each in of_model if each.part == "output")
    seconds = (TRAINING * total + 2 * output) / 1e6
    assert Probe(of_model, CPU, "fp32").rate() == pytest.approx(TRAINING * total / seconds)


def test_rate_in_both_precisions() -> None:
    for precision in ("fp32", "bf16"):
        measured = Probe(products(CONFIGS["bahdanau"], VOCABULARY, 6, 7, 5), CPU, precision)
        assert measured.rate() > 0


def test_operations_of_a_shape() -> None:
    assert Shape(2, 3, 5).operations == 60
