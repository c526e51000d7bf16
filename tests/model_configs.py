"""Small models of every kind, and batches for them: what the model tests share."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from nmt.config import BahdanauConfig, ModelConfig, Seq2SeqConfig, TransformerConfig
from nmt.models import build
from nmt.models.base import TranslationModel
from nmt.tokens import BOS, EOS, PAD

VOCABULARY = 23

SEQ2SEQ = Seq2SeqConfig(
    name="seq2seq",
    embedding_dim=8,
    hidden_dim=8,
    layers=2,
    dropout=0.2,
    reverse_source=True,
    tie_embeddings="none",
    init_range=0.3,
)
BAHDANAU = BahdanauConfig(
    name="bahdanau",
    embedding_dim=6,
    hidden_dim=8,
    attention_dim=7,
    maxout_dim=6,
    dropout=0.2,
    reverse_source=False,
    tie_embeddings="none",
    initialization="xavier",
)
TRANSFORMER = TransformerConfig(
    name="transformer",
    dim=8,
    heads=2,
    encoder_layers=2,
    decoder_layers=2,
    feedforward_dim=12,
    dropout=0.2,
    attention_dropout=0.1,
    norm="pre",
    activation="relu",
    positions="sinusoidal",
    max_positions=None,
    tie_embeddings="none",
)

CONFIGS: dict[str, ModelConfig] = {
    "seq2seq": SEQ2SEQ,
    "seq2seq-shallow": replace(SEQ2SEQ, layers=1, reverse_source=False, tie_embeddings="three-way"),
    "bahdanau": BAHDANAU,
    "bahdanau-paper": replace(BAHDANAU, initialization="paper", tie_embeddings="two-way"),
    "bahdanau-reversed": replace(BAHDANAU, reverse_source=True),
    "transformer": TRANSFORMER,
    "transformer-post": replace(TRANSFORMER, norm="post", activation="gelu", tie_embeddings="three-way"),
    "transformer-learned": replace(TRANSFORMER, positions="learned", max_positions=30, tie_embeddings="two-way"),
    "transformer-unordered": replace(TRANSFORMER, positions="none", encoder_layers=1, decoder_layers=1),
}
ATTENDING = [name for name in CONFIGS if not name.startswith("seq2seq")]


def lively(config: ModelConfig, seed: int = 1) -> TranslationModel:
    """A small model in eval mode, none of whose parameters is zero or one, so that none can be forgotten unnoticed."""
    model = build(config, VOCABULARY, VOCABULARY, seed).eval()
    shake(model)
    return model


def shake(module: nn.Module, scale: float = 0.3) -> None:
    """Add noise to every parameter."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += scale * torch.randn(parameter.shape, generator=generator)


def random_rows(lengths: Sequence[int], seed: int, extra_padding: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of ordinary subwords that end in EOS, right-padded; a length of 0 is a row of padding."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(4, VOCABULARY, (len(lengths), max(lengths) + extra_padding), generator=generator)
    for row, length in enumerate(lengths):
        rows[row, max(length - 1, 0) :] = PAD
        if length:
            rows[row, length - 1] = EOS
    return rows, torch.tensor(lengths)


def shift_right(target_out: Tensor) -> Tensor:
    """What the decoder reads while it is to say ``target_out``."""
    shifted = target_out.roll(1, dims=1)
    shifted[:, 0] = BOS
    return shifted
