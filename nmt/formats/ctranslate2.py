"""CTranslate2 (https://opennmt.net/CTranslate2): an inference engine in C++ that needs no torch.

The folder is written with CTranslate2's own specification of a Transformer (Vaswani et al. 2017) and opens with
``ctranslate2.Translator(folder)``: sources are SentencePiece pieces without EOS (``config.json`` has it added), the
decoder starts with BOS. What its specification leaves open is stored as numbers:

- positions as a table, since the sinusoids that it would compute are ordered otherwise: all sines, then all cosines.
  The table ends (:data:`POSITIONS`); CTranslate2 refuses a sentence beyond it. A learned table that is shorter goes on
  with its last row, as in training; no positions are a table of zeros.
- the epsilon of the layer norms.

GELU is the exact one there as here. Matrices that are tied are stored once.
"""

import importlib
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nmt.checkpoint import Checkpoint
from nmt.config import TransformerConfig
from nmt.formats import ExportError, Options, write_description
from nmt.models.attention import CrossAttention, SelfAttention
from nmt.models.transformer import DecoderLayer, EncoderLayer, FeedForward, Positions, Residual, Transformer
from nmt.tokens import BOS, EOS, UNK

POSITIONS = 4096
"""Subwords, EOS counted, that a sentence of either side may at least have in an exported model."""

Spec = Any  # CTranslate2 has no type annotations


def library() -> Any:
    """The package ``ctranslate2``, which only this format needs.

    Raises:
        ExportError: it is not installed.
    """
    try:
        return importlib.import_module("ctranslate2")
    except ImportError as error:
        raise ExportError(
            f"ctranslate2: the package cannot be imported ({error}); pip install 'nmt[ctranslate2]'"
        ) from error


def export(checkpoint: Checkpoint, folder: Path, options: Options) -> None:
    """Write a Transformer into an empty folder, its matrices in the number format ``options.quantization``.

    Raises:
        ExportError: the model is none that CTranslate2 can express, or the package is missing.
    """
    config = checkpoint.config.model
    if not isinstance(config, TransformerConfig):
        raise ExportError(
            f"model.name: ctranslate2 computes Transformers only and has no recurrent layer, found {config.name}; "
            "translate with the checkpoint itself"
        )
    specs = library().specs
    quantization = options.quantization or "float32"
    positions = max(POSITIONS, config.max_positions or 0)
    # One more: scoring a translation that was cut also asks for what would have come next.
    spec = transformer_spec(specs, cast(Transformer, checkpoint.model), config, positions + 1)
    for register, tokenizer in (
        (spec.register_source_vocabulary, checkpoint.tokenizers.source),
        (spec.register_target_vocabulary, checkpoint.tokenizers.target),
    ):
        register(tokenizer.pieces(range(tokenizer.vocabulary_size)))
    unk, bos, eos = checkpoint.tokenizers.target.pieces((UNK, BOS, EOS))
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = unk, bos, eos
    spec.config.decoder_start_token = bos
    spec.config.add_source_bos, spec.config.add_source_eos = False, True
    spec.config.layer_norm_epsilon = nn.LayerNorm(1).eps
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    write_description(folder, checkpoint, "ctranslate2", {"quantization": quantization, "positions": positions})


# --- the parts of the model -------------------------------------------------------------------------------------------


def transformer_spec(specs: Any, model: Transformer, config: TransformerConfig, positions: int) -> Spec:
    """CTranslate2's description of the model with all of its numbers, and tables of so many positions."""
    encoder_layers = cast(list[EncoderLayer], model.encoder_layers)
    decoder_layers = cast(list[DecoderLayer], model.decoder_layers)
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm == "pre",
        activation={
            "relu": specs.common_spec.Activation.RELU,
            "gelu": specs.common_spec.Activation.GELU,  # with erf; the one with tanh is GELUTanh
        }[config.activation],
    )
    tables = model.embeddings
    spec.encoder.embeddings[0].weight = _numbers(
        tables.target_table if tables.source_table is None else tables.source_table
    )
    spec.decoder.embeddings.weight = _numbers(tables.target_table)
    spec.decoder.projection.weight = _numbers(
        tables.target_table if tables.output_table is None else tables.output_table
    )
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = True  # by sqrt(dim)
    spec.encoder.position_encodings.encodings = _positions(model.source_positions, positions)
    spec.decoder.position_encodings.encodings = _positions(model.target_positions, positions)
    if config.norm == "pre":
        _norm(spec.encoder.layer_norm, model.encoder_norm)
        _norm(spec.decoder.layer_norm, model.decoder_norm)
    for layer_spec, encoder_layer in zip(spec.encoder.layer, encoder_layers, strict=True):
        _self_attention(layer_spec.self_attention, encoder_layer.self_attention, encoder_layer.self_attention_residual)
        _feedforward(layer_spec.ffn, encoder_layer.feedforward, encoder_layer.feedforward_residual)
    for layer_spec, decoder_layer in zip(spec.decoder.layer, decoder_layers, strict=True):
        _self_attention(layer_spec.self_attention, decoder_layer.self_attention, decoder_layer.self_attention_residual)
        _cross_attention(layer_spec.attention, decoder_layer.cross_attention, decoder_layer.cross_attention_residual)
        _feedforward(layer_spec.ffn, decoder_layer.feedforward, decoder_layer.feedforward_residual)
    return spec


def _self_attention(spec: Spec, attention: SelfAttention, residual: Residual) -> None:
    """Query, key and value stand in one matrix, one below the other, in both programs."""
    _linear(spec.linear[0], attention.query_key_value)
    _linear(spec.linear[1], attention.output)
    _norm(spec.layer_norm, residual.norm)


def _cross_attention(spec: Spec, attention: CrossAttention, residual: Residual) -> None:
    """Key and value stand in one matrix in both programs."""
    _linear(spec.linear[0], attention.query)
    _linear(spec.linear[1], attention.key_value)
    _linear(spec.linear[2], attention.output)
    _norm(spec.layer_norm, residual.norm)


def _feedforward(spec: Spec, network: FeedForward, residual: Residual) -> None:
    _linear(spec.linear_0, network.inner)
    _linear(spec.linear_1, network.outer)
    _norm(spec.layer_norm, residual.norm)


def _linear(spec: Spec, layer: nn.Linear) -> None:
    spec.weight, spec.bias = _numbers(layer.weight), _numbers(layer.bias)


def _norm(spec: Spec, layer: nn.Module) -> None:
    assert isinstance(layer, nn.LayerNorm)
    spec.gamma, spec.beta = _numbers(layer.weight), _numbers(layer.bias)


def _positions(positions: Positions, count: int) -> npt.NDArray[np.float32]:
    """What the model adds at each of the first ``count`` positions, [count, dim]."""
    with torch.inference_mode():
        if positions.table is None:
            return _numbers(positions(0, count, torch.device("cpu")))
        return _numbers(positions.table[torch.arange(count).clamp(max=len(positions.table) - 1)])


def _numbers(tensor: Tensor) -> npt.NDArray[np.float32]:
    """A copy: CTranslate2 quantizes in place."""
    return tensor.detach().float().cpu().numpy().copy()
