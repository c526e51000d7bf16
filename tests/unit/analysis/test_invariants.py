"""Invariants: healthy models keep them all, and each is seen to be broken where a model is broken on purpose."""

import math

import pytest
import torch
from torch import Tensor

from nmt.analysis.invariants import NAMES, Invariant, invariants, spread
from nmt.models import attention
from nmt.models.attention import Reading, SelfAttention
from nmt.models.bahdanau import Bahdanau
from nmt.models.base import TranslationModel
from nmt.models.memory import FixedVector, MemoryTable
from nmt.models.seq2seq import Seq2Seq
from nmt.models.transformer import Transformer
from nmt.tokens import EOS
from tests.model_configs import ATTENDING, CONFIGS, VOCABULARY, lively

CPU = torch.device("cpu")
PAIRS = [([5, 9, 12, 7, 6, 20], [6, 11, 8, 9, EOS]), ([7, 8], [9, 9, EOS]), ([4, 11, 6, 13], [12, 7, 15, EOS])]
OF_WEIGHTS = {"padding: weights", "all padding: weights", "weights sum to 1"}


def found(model: TranslationModel, precision: str = "fp32") -> dict[str, Invariant]:
    return {each.name: each for each in invariants(model, PAIRS, (VOCABULARY, VOCABULARY), CPU, precision)}


def broken(model: TranslationModel) -> set[str]:
    return {name for name, each in found(model).items() if each.state == "broken"}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_healthy_model_keeps_them_all(name: str, precision: str) -> None:
    model = lively(CONFIGS[name]).train()
    checked = found(model, precision)
    assert list(checked) == list(NAMES)
    silent = set() if name in ATTENDING else OF_WEIGHTS
    assert {each for each, what in checked.items() if what.state == "does not apply"} == silent
    assert all(what.state == "holds" for each, what in checked.items() if each not in silent)
    assert all(what.seen is None or what.seen > 0 for each, what in checked.items() if each not in silent)
    assert all("fixed vector" in (checked[each].reason or "") for each in silent)
    assert model.training  # left as it was
    assert all(parameter.grad is None for parameter in model.parameters())


def test_one_sentence_is_enough() -> None:
    """Padding and a longer mate are made."""
    checked = invariants(lively(CONFIGS["transformer"]), PAIRS[1:2], (VOCABULARY, VOCABULARY), CPU, "fp32")
    assert {each.state for each in checked} == {"holds"}


# --- broken on purpose ------------------------------------------------------------------------------------------------


class MaskOfTheTableDropped(Bahdanau):
    """Every position counts as real, padding, too."""

    def encode(self, source: Tensor, source_lengths: Tensor) -> MemoryTable:
        table = super().encode(source, source_lengths)
        return MemoryTable(table.keys, table.values, torch.ones_like(table.mask))


class MaskOfOneLayerDropped(Transformer):
    """Of the last decoder layer."""

    def encode(self, source: Tensor, source_lengths: Tensor) -> tuple[MemoryTable, ...]:
        *others, last = super().encode(source, source_lengths)
        return (*others, MemoryTable(last.keys, last.values, torch.ones_like(last.mask)))


class LengthsForgotten(Seq2Seq):
    """The recurrence goes on through the padding."""

    def encode(self, source: Tensor, source_lengths: Tensor) -> FixedVector:
        return super().encode(source, torch.full_like(source_lengths, source.size(1)))


class MeanOfTheBatch(Seq2Seq):
    """What a sentence says depends on its neighbours."""

    def decode(self, target_in: Tensor, memory: FixedVector) -> Tensor:
        features = super().decode(target_in, memory)
        return features - features.mean(dim=0, keepdim=True)


class LooksAhead(Seq2Seq):
    """The decoder sees the token that it is to predict."""

    def decode(self, target_in: Tensor, memory: FixedVector) -> Tensor:
        features = super().decode(target_in, memory)
        return features + 0.1 * features.roll(-1, dims=1)


class ForgetsItsState(Bahdanau):
    """While stepping only."""

    def step(self, previous, state, memory, with_attention=False):
        return super().step(previous, self.init_state(memory), memory, with_attention)


def built(kind: type, name: str) -> TranslationModel:
    """A model of another class with the weights of a small one."""
    model = lively(CONFIGS[name])
    other = kind(CONFIGS[name], VOCABULARY, VOCABULARY).eval()
    other.load_state_dict(model.state_dict())
    return other


@pytest.mark.parametrize(
    ("kind", "name"), [(MaskOfTheTableDropped, "bahdanau"), (MaskOfOneLayerDropped, "transformer")]
)
def test_a_dropped_mask_is_seen(kind: type, name: str) -> None:
    names = broken(built(kind, name))
    assert names >= {"padding: weights", "all padding: weights", "all padding: context", "batch"}
    assert not names & {"weights sum to 1", "future: features", "future: gradients", "steps"}


def test_a_mask_dropped_in_the_encoder_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of the decoder are all right; what it reads is not."""
    real = SelfAttention.forward
    monkeypatch.setattr(SelfAttention, "forward", lambda self, x, mask: real(self, x, torch.ones_like(mask)))
    names = broken(lively(CONFIGS["transformer"]))
    assert names == {"padding: features", "padding: gradients", "batch"}


def test_lengths_that_are_forgotten_are_seen() -> None:
    names = broken(built(LengthsForgotten, "seq2seq-shallow"))
    assert names == {"padding: features", "padding: gradients", "all padding: context", "batch"}


def test_a_row_of_padding_that_is_no_number_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """-inf for every padded position, the usual way to write a mask: NaN where all of them are."""

    def naive(scores: Tensor, mask: Tensor | None) -> Tensor:
        hidden = scores if mask is None else scores.masked_fill(~mask, -math.inf)
        return hidden.float().softmax(dim=-1)

    monkeypatch.setattr(attention, "masked_softmax", naive)
    checked = found(lively(CONFIGS["bahdanau"]))
    for name in ("all padding: weights", "all padding: context"):
        assert checked[name].deviation == math.inf
        assert checked[name].state == "broken"
    assert checked["padding: weights"].state == "holds"


def test_a_row_of_padding_with_uniform_weights_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lowest finite number for every padded position: a mean over nothing where all of them are."""

    def finite(scores: Tensor, mask: Tensor | None) -> Tensor:
        hidden = scores if mask is None else scores.float().masked_fill(~mask, torch.finfo(torch.float32).min)
        return hidden.float().softmax(dim=-1)

    monkeypatch.setattr(attention, "masked_softmax", finite)
    assert broken(lively(CONFIGS["bahdanau"])) >= {"all padding: weights", "all padding: context"}


def test_output_that_depends_on_the_batch_is_seen() -> None:
    names = broken(built(MeanOfTheBatch, "seq2seq"))
    assert "batch" in names
    assert not names & {"all padding: context"}


def test_a_look_ahead_is_seen() -> None:
    names = broken(built(LooksAhead, "seq2seq"))
    assert names >= {"future: features", "future: gradients", "steps"}


def test_a_causal_mask_that_is_dropped_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = attention.scaled_dot_product

    def all_visible(query, keys, values, mask, causal=False, dropout_p=0.0, with_weights=False) -> Reading:
        return real(query, keys, values, mask, False, dropout_p, with_weights)

    monkeypatch.setattr(attention, "scaled_dot_product", all_visible)
    names = broken(lively(CONFIGS["transformer"]))
    assert names >= {"future: features", "future: gradients", "steps"}
    assert not names & {"padding: weights", "all padding: weights", "weights sum to 1"}


def test_steps_that_differ_from_teacher_forcing_are_seen() -> None:
    assert broken(built(ForgetsItsState, "bahdanau")) == {"steps"}


def test_weights_that_are_no_distribution_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = attention.masked_softmax
    monkeypatch.setattr(attention, "masked_softmax", lambda scores, mask: 0.9 * real(scores, mask))
    assert broken(lively(CONFIGS["bahdanau"])) == {"weights sum to 1"}


def test_a_check_that_could_see_nothing_does_not_pass() -> None:
    """A decoder that says the same whatever it reads keeps its promises by saying nothing."""
    model = lively(CONFIGS["bahdanau"])
    with torch.no_grad():
        model.readout.weight.zero_()
    checked = found(model)
    for name in ("padding: features", "padding: gradients", "future: features", "future: gradients"):
        assert checked[name].state == "does not apply"
        assert "nothing to see" in (checked[name].reason or "")


def test_pairs_are_spread_over_the_lengths() -> None:
    pairs = [([5] * length, [6]) for length in (9, 1, 5, 3, 7, 2, 4, 8, 6, 11, 10)]
    assert [len(source) for source, _ in spread(pairs)] == [1, 3, 5, 7, 9, 11]
    assert spread(pairs[:1]) == pairs[:1]
