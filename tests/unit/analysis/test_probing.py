"""Probes of memories whose content is known."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.analysis.probing import PLACE_ALONE, Recovered, frequent, probe, words_of
from nmt.data.batch import pad_rows
from nmt.models.base import TranslationModel
from nmt.models.memory import FixedVector
from nmt.tokens import EOS
from tests.model_configs import CONFIGS, VOCABULARY, lively
from tests.readers import Reader

CPU = torch.device("cpu")
WORDS = 8
LONGEST = 5


def sentences(number: int, seed: int) -> list[np.ndarray]:
    """Words without any order, one of them more frequent than the others."""
    generator = np.random.default_rng(seed)
    shares = np.array([0.3, *[0.1] * (WORDS - 1)])
    return [
        np.append(4 + generator.choice(WORDS, generator.integers(1, LONGEST + 1), p=shares), EOS) for _ in range(number)
    ]


TRAIN, TEST = sentences(600, 1), sentences(150, 2)
CLASSES = frequent([each[:-1] for each in TRAIN])


class Vector(TranslationModel):
    """A fixed vector that holds the last words, each in a place of its own."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last

    def encode(self, source: Tensor, source_lengths: Tensor) -> FixedVector:
        places = source_lengths[:, None] - 2 - torch.arange(self.last)  # [batch, last], from the end
        words = F.one_hot(source.gather(1, places.clamp(min=0)), 4 + WORDS) * (places >= 0)[..., None]
        return FixedVector(words.float(), torch.zeros(len(source), 1, 3))


def recover(model: TranslationModel, updates: int = 150) -> Recovered:
    return probe(model, TRAIN, TEST, CLASSES, updates, seed=1, device=CPU, precision="fp32")


def accuracy(right: list[np.ndarray]) -> float:
    return float(np.concatenate(right).mean())


def test_what_is_in_a_row_is_found_and_its_mean_is_a_bag() -> None:
    found = recover(Reader(4 + WORDS))
    assert accuracy(found.right["row"]) > 0.99
    assert accuracy(found.right[PLACE_ALONE]) < accuracy(found.right["mean of rows"]) < 0.9
    assert [len(each) for each in found.right["row"]] == [len(each) - 1 for each in TEST]


def test_a_memory_that_is_always_the_same_is_worth_what_the_place_is() -> None:
    found = recover(Reader(4 + WORDS, keeps="nothing"))
    most_frequent = float((np.concatenate([each[:-1] for each in TEST]) == CLASSES[0]).mean())
    for given in ("row", "mean of rows", PLACE_ALONE):
        assert accuracy(found.right[given]) == pytest.approx(most_frequent, abs=0.03)


def test_a_vector_is_read_where_its_words_are() -> None:
    everything, last_two = (recover(Vector(last), 400).right["vector"] for last in (LONGEST, 2))
    assert accuracy(everything) > 0.95
    assert accuracy([each[-2:] for each in last_two]) > 0.95
    assert accuracy([each[:-2] for each in last_two]) < 0.5


class Layout(NamedTuple):
    model: str
    given: list[str]
    width: int


@pytest.mark.parametrize(
    "layout",
    [
        Layout("seq2seq", ["vector", PLACE_ALONE], 2 * 2 * 8),  # hidden and cell of two layers
        Layout("bahdanau", ["row", "mean of rows", PLACE_ALONE], 2 * 8),  # both directions
        Layout("transformer", ["row", "mean of rows", PLACE_ALONE], 2 * 8),  # values of two decoder layers
    ],
    ids=lambda layout: layout.model,
)
def test_every_memory_can_be_probed_and_the_same_seed_finds_the_same(layout: Layout) -> None:
    model = lively(CONFIGS[layout.model])
    assert VOCABULARY >= 4 + WORDS
    found, again = recover(model, 5), recover(model, 5)
    assert list(found.right) == layout.given
    assert set(found.widths.values()) == {layout.width}
    for name, own in found.right.items():
        assert all(np.array_equal(one, other) for one, other in zip(own, again.right[name], strict=True))
    assert not model.training


def test_only_words_among_the_classes_are_asked_for_with_their_places() -> None:
    source, lengths = pad_rows([[7, 9, 5, EOS], [5, EOS], [9, EOS]])
    words = words_of(source, lengths, np.array([5, 7]))
    assert words.rows.tolist() == [0, 0, 1]
    assert words.places.tolist() == [0, 2, 0]
    assert words.from_end.tolist() == [2, 0, 0]
    assert words.classes.tolist() == [1, 0, 0]


def test_classes_are_the_most_frequent() -> None:
    assert frequent([np.array([5, 7, 7]), np.array([9, 7, 5])]).tolist() == [7, 5, 9]
