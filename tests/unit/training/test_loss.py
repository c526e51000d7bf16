"""The chunked loss against the textbook one: all logits at once, autograd, an explicit target distribution."""

import pytest
import torch
from torch import Tensor, nn

from nmt.data.batch import Batch, collate
from nmt.models.base import TranslationModel
from nmt.models.memory import MemoryTable
from nmt.tokens import EOS, PAD
from nmt.training.loss import backward, real_positions, smoothed_cross_entropy

VOCABULARY = 23


class TiedToy(TranslationModel):
    """Features from source and target embeddings, projected by the target embedding: the tie is what could go wrong."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding = nn.Embedding(VOCABULARY, 8)
        self.mix = nn.Linear(8, 8)
        self.bias = nn.Parameter(torch.randn(VOCABULARY))

    def encode(self, source: Tensor, source_lengths: Tensor) -> MemoryTable:
        mask = torch.arange(source.size(1)) < source_lengths[:, None]
        table = self.embedding(source) * mask[..., None]
        return MemoryTable(table, table, mask)

    def decode(self, target_in: Tensor, memory: MemoryTable) -> Tensor:  # type: ignore[override]
        return torch.tanh(self.mix(self.embedding(target_in) + memory.values.sum(dim=1, keepdim=True)))

    def project(self, features: Tensor) -> Tensor:
        return features @ self.embedding.weight.T + self.bias


def pairs(lengths: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    generator = torch.Generator().manual_seed(len(lengths))

    def sentence(length: int) -> list[int]:
        return [*torch.randint(4, VOCABULARY, (length - 1,), generator=generator).tolist(), EOS]

    return [(sentence(length), sentence(length)) for length in lengths]


def batch_of(some: list[tuple[list[int], list[int]]]) -> Batch:
    return collate([source for source, _ in some], [target for _, target in some], range(len(some)))


def oracle(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Cross-entropy with the written-out distribution, and plain NLL, both summed."""
    wanted = torch.full_like(logits, smoothing / (logits.size(-1) - 1))
    wanted[..., PAD] = 0.0
    wanted.scatter_add_(
        -1, targets[..., None], torch.full_like(targets[..., None], 1.0 - smoothing, dtype=logits.dtype)
    )
    torch.testing.assert_close(wanted.sum(-1), torch.ones_like(wanted.sum(-1)))
    log_p = logits.log_softmax(-1)
    return -(wanted * log_p).sum(), -log_p.gather(-1, targets[..., None]).sum()


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_block_of_rows_equals_the_written_out_distribution(smoothing: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = (5 * torch.randn(9, VOCABULARY, generator=generator, dtype=torch.float64)).float().requires_grad_()
    targets = torch.randint(1, VOCABULARY, (9,), generator=generator)
    wanted, wanted_nll = oracle(logits, targets, smoothing)
    wanted.backward()
    smoothed, nll, gradient = smoothed_cross_entropy(logits.detach(), targets, smoothing)
    torch.testing.assert_close(smoothed, wanted.detach())
    torch.testing.assert_close(nll, wanted_nll.detach())
    torch.testing.assert_close(gradient, logits.grad)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk_rows", [1, 3, 1000])
def test_gradients_equal_those_of_all_logits_at_once(smoothing: float, chunk_rows: int) -> None:
    model, batch = TiedToy(), batch_of(pairs((2, 3, 7, 20)))
    features = model(batch.source, batch.source_lengths, batch.target_in)
    mask = batch.target_mask
    wanted, wanted_nll = oracle(model.project(features)[mask], batch.target_out[mask], smoothing)
    (wanted / 32).backward()
    expected = gradients(model)
    model.zero_grad()

    features = model(batch.source, batch.source_lengths, batch.target_in)
    sums = backward(model, features, batch, real_positions(batch), smoothing, 1 / 32, chunk_rows)
    torch.testing.assert_close(sums.smoothed, wanted.detach())
    torch.testing.assert_close(sums.nll, wanted_nll.detach())
    found = gradients(model)
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], atol=1e-6, rtol=1e-5)


def test_padding_changes_nothing() -> None:
    model, short = TiedToy(), batch_of(pairs((2, 3, 5)))
    wide = Batch(
        nn.functional.pad(short.source, (0, 4)),
        short.source_lengths,
        nn.functional.pad(short.target_in, (0, 6)),
        nn.functional.pad(short.target_out, (0, 6)),
        short.target_lengths,
        short.indices,
    )
    results = []
    for batch in (short, wide):
        model.zero_grad()
        features = model(batch.source, batch.source_lengths, batch.target_in)
        sums = backward(model, features, batch, real_positions(batch), 0.1, 1.0)
        results.append((sums, gradients(model)))
    torch.testing.assert_close(results[0][0], results[1][0])
    for name in results[0][1]:
        torch.testing.assert_close(results[0][1][name], results[1][1][name], atol=1e-6, rtol=1e-5)


def test_no_mass_on_pad() -> None:
    """At the optimum of the smoothed loss the gradient of PAD's logit pushes it down, whatever the smoothing."""
    logits = torch.zeros(4, VOCABULARY)
    _, _, gradient = smoothed_cross_entropy(logits, torch.tensor([4, 5, 6, 7]), 0.5)
    torch.testing.assert_close(gradient[:, PAD], torch.full((4,), 1 / VOCABULARY))


def test_bf16_logits_are_summed_in_float32() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(300, VOCABULARY, generator=generator).bfloat16()
    targets = torch.randint(1, VOCABULARY, (300,), generator=generator)
    found, wanted = smoothed_cross_entropy(logits, targets, 0.1), smoothed_cross_entropy(logits.float(), targets, 0.1)
    assert found[0].dtype is torch.float32
    torch.testing.assert_close(found[0], wanted[0])
