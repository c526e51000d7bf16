"""One of our trained Transformers as a checkpoint of OpenNMT-py 3.5.1, the same numbers under its names.

Its pre-norm Transformer computes what ours does: sinusoids in the same order, added to word vectors times sqrt(dim),
queries, keys and values projected one by one; the epsilon of the layer norms is an option. Its output layer always has
a bias: here, zeros. It leaves the source as it is, so whoever calls it appends the piece ``</s>``.
"""

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt import checkpoint
from nmt.config import TransformerConfig
from nmt.models.attention import CrossAttention, SelfAttention
from nmt.models.transformer import FeedForward, Transformer, sinusoids
from nmt.tokens import PAD

from .corpus import RESERVED, vocabulary
from .environments import PeerError

POSITIONS = 5000  # the length of its table
PAD_PIECE = "<blank>"  # its name for it


def convert(run: Path, output: Path) -> None:
    """Write the checkpoint of a run folder as a ``.pt`` file.

    Raises:
        PeerError: its model is none that OpenNMT-py can compute.
    """
    found = checkpoint.load(run)
    model, config = found.model, found.config.model
    if not isinstance(model, Transformer) or not isinstance(config, TransformerConfig):
        raise PeerError(f"{run}: OpenNMT-py can be given the weights of a Transformer only, found {config.name}")
    expected = {"norm": "pre", "positions": "sinusoidal", "activation": "relu"}
    other = {name: getattr(config, name) for name, value in expected.items() if getattr(config, name) != value}
    if other or config.encoder_layers != config.decoder_layers:
        raise PeerError(f"{run}: OpenNMT-py needs {expected} and as many layers on both sides, found {config}")
    pieces = [tokens(side.pieces(range(side.vocabulary_size))) for side in found.tokenizers]
    vocabularies = {"src": pieces[0], "tgt": pieces[1], "data_task": "seq2seq", "decoder_start_token": "<s>"}
    generator = {"weight": model.embeddings.output_matrix.detach(), "bias": torch.zeros(len(pieces[1]))}
    torch.save(
        {"model": weights(model), "generator": generator, "vocab": vocabularies, "opt": Namespace(**options(config))},
        output,
    )


def tokens(pieces: list[str]) -> list[str]:
    """Its words for our ids, in their order.

    Raises:
        PeerError: a piece holds what it takes for white space.
    """
    reserved = [PAD_PIECE if token == PAD else piece for token, piece in enumerate(pieces[:RESERVED])]
    return [*reserved, *vocabulary(pieces)]


def options(config: TransformerConfig) -> dict[str, Any]:
    """The model in its own options; what is not here has its default."""
    return {
        "model_task": "seq2seq",
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "layers": config.encoder_layers,
        "heads": config.heads,
        "word_vec_size": config.dim,
        "hidden_size": config.dim,
        "transformer_ff": config.feedforward_dim,
        "add_qkvbias": True,
        "add_ffnbias": True,
        "norm_eps": nn.LayerNorm(1).eps,
        "position_encoding": True,
        "share_embeddings": config.tie_embeddings == "three-way",
        "share_decoder_embeddings": config.tie_embeddings != "none",
        "optim": "adam",  # it asks for these even where nothing is trained
        "freeze_word_vecs_enc": False,
        "freeze_word_vecs_dec": False,
        "dropout": [0.0],
        "attention_dropout": [0.0],
    }


def weights(model: Transformer) -> dict[str, Tensor]:
    """Every tensor by its name there, the output layer's left out."""
    embeddings, state = model.embeddings, {}
    source = embeddings.target_table if embeddings.source_table is None else embeddings.source_table
    positions = sinusoids(torch.arange(POSITIONS), source.size(1))[:, None]  # [positions, 1, dim]
    for side, table in (("encoder", source), ("decoder", embeddings.target_table)):
        state[f"{side}.embeddings.make_embedding.emb_luts.0.weight"] = table
        state[f"{side}.embeddings.make_embedding.pe.pe"] = positions
    for number, layer in enumerate(model.encoder_layers):
        here = f"encoder.transformer.{number}."
        state |= _named(here + "layer_norm.", layer.self_attention_residual.norm)
        state |= _attention(here + "self_attn.", layer.self_attention)
        state |= _feedforward(here + "feed_forward.", layer.feedforward, layer.feedforward_residual.norm)
    for number, layer in enumerate(model.decoder_layers):
        here = f"decoder.transformer_layers.{number}."
        state |= _named(here + "layer_norm_1.", layer.self_attention_residual.norm)
        state |= _attention(here + "self_attn.", layer.self_attention)
        state |= _named(here + "layer_norm_2.", layer.cross_attention_residual.norm)
        state |= _attention(here + "context_attn.", layer.cross_attention)
        state |= _feedforward(here + "feed_forward.", layer.feedforward, layer.feedforward_residual.norm)
    state |= _named("encoder.layer_norm.", model.encoder_norm) | _named("decoder.layer_norm.", model.decoder_norm)
    return {name: tensor.detach().clone() for name, tensor in state.items()}


def _named(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in module.named_parameters()}


def _feedforward(prefix: str, module: FeedForward, norm: nn.Module) -> dict[str, Tensor]:
    return (
        _named(prefix + "layer_norm.", norm)
        | _named(prefix + "w_1.", module.inner)
        | _named(prefix + "w_2.", module.outer)
    )


def _attention(prefix: str, module: SelfAttention | CrossAttention) -> dict[str, Tensor]:
    """Projections that are one matrix here are several there."""
    if isinstance(module, SelfAttention):
        parts = _split(module.query_key_value, 3)
    else:
        parts = [*_split(module.query, 1), *_split(module.key_value, 2)]
    state = _named(prefix + "final_linear.", module.output)
    for name, (weight, bias) in zip(("query", "keys", "values"), parts, strict=True):
        state |= {f"{prefix}linear_{name}.weight": weight, f"{prefix}linear_{name}.bias": bias}
    return state


def _split(linear: nn.Linear, parts: int) -> list[tuple[Tensor, Tensor]]:
    return list(zip(linear.weight.chunk(parts), linear.bias.chunk(parts), strict=True))
