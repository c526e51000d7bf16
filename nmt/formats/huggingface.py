"""``--format huggingface``: a Transformer as a model folder of the ``transformers`` library.

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    batch = tokenizer(["Ein Satz.", "Noch einer."], return_tensors="pt", padding=True)
    print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))

Two of its architectures have our layers: with ``norm: post`` the model is a ``MarianMTModel`` (Junczys-Dowmunt et al.
2018), with ``norm: pre`` a ``PegasusForConditionalGeneration`` (Zhang et al. 2020), Marian's layers with the
normalisation of Xiong et al. (2020). Both compute sinusoidal positions for themselves, all sines before all cosines,
where ours alternate: the axis of the residual stream is therefore reordered in every matrix that reads it or writes
it, which renames the numbers of the stream and leaves the function as it is.

What is the same: logits (to rounding), greedy translations, subword ids of ordinary text. What is not:

- ``generate`` has one length limit for all sentences (``max_length``, the one that our search has for the longest
  training sentence), not one by source length, and positions end at ``max_position_embeddings``;
- ``num_beams`` above 1 ranks by log p / |y|^``length_penalty``, which is our ``simple``, with other rules for stopping;
- ``MarianTokenizer`` takes ``>>...<<`` at the beginning of a line for one language code, leaves control characters and
  line breaks to the normaliser (with ``normalization: identity`` they stay; we drop them, or make them spaces), and
  with ``skip_special_tokens`` drops ``<unk>``, which we write as U+2047. It appends EOS by itself, as we do.

Only ``json`` and ``safetensors`` are needed to write the folder.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import safetensors.torch
import torch
from torch import Tensor, nn

from nmt.checkpoint import Checkpoint
from nmt.config import ModelConfig, TrainConfig, TransformerConfig
from nmt.data.tokenizer import TokenizerPair
from nmt.formats import ExportError, Options
from nmt.models.attention import CrossAttention, SelfAttention
from nmt.models.transformer import DecoderLayer, EncoderLayer, FeedForward, Transformer, sinusoids
from nmt.tokens import BOS, EOS, PAD

LEAST_POSITIONS = 1024
"""Positions that an exported model has at least; each costs two rows of ``dim`` numbers."""

Named = Iterator[tuple[str, Tensor]]


def export(checkpoint: Checkpoint, folder: Path, options: Options) -> None:
    """Write the model of a checkpoint, its configuration and its tokenizer into an empty folder.

    Raises:
        ExportError: the architecture has no equal there; names the key and the value that it would need. Or an option
            that this format does not have.
    """
    if options.quantization is not None:
        raise ExportError(f"--quantization: found {options.quantization}, but --format huggingface writes float32 only")
    config = checkpoint.config
    architecture = architecture_of(config.model)
    named = _tensors(cast(Transformer, checkpoint.model), _positions(config))
    tensors = {name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in named}
    facts = {"format": "pt", "step": str(checkpoint.step), "tokenizers": checkpoint.tokenizers.digest}
    (folder / "model.safetensors").write_bytes(safetensors.torch.save(tensors, facts))
    _write_tokenizer(checkpoint.tokenizers, config, folder)
    _write_json(folder / "config.json", _model_config(architecture, checkpoint))
    _write_json(folder / "generation_config.json", _generation_config(config))


def architecture_of(config: ModelConfig) -> str:
    """Name of the class of ``transformers`` that computes the same function.

    Raises:
        ExportError: there is none; says which key would have to have which value.
    """
    what = "--format huggingface"
    if not isinstance(config, TransformerConfig):
        raise ExportError(
            f"model.name: {config.name} has no equal in the transformers library: {what} needs model=transformer; "
            "--format torch-export takes every model"
        )
    if config.positions != "sinusoidal":
        raise ExportError(
            f"model.positions: found {config.positions}; {what} needs sinusoidal: MarianMT and Pegasus compute theirs"
        )
    if config.norm == "post":
        return "MarianMTModel"
    if config.tie_embeddings != "three-way":
        raise ExportError(
            f"model.tie_embeddings: found {config.tie_embeddings} with model.norm=pre; {what} needs three-way there: "
            "Pegasus, the architecture with that normalisation, has one table (or model.norm=post, as MarianMT has it)"
        )
    return "PegasusForConditionalGeneration"


# --- configuration ----------------------------------------------------------------------------------------------------


def _length_limit(config: TrainConfig) -> int:
    """Most subwords, EOS counted, that our search allows for the longest sentence that was trained on."""
    search = config.search
    return max(int(search.max_length_a * config.data.max_length + search.max_length_b), search.min_length + 1)


def _positions(config: TrainConfig) -> int:
    return max(LEAST_POSITIONS, config.data.max_length, _length_limit(config))


def _model_config(architecture: str, checkpoint: Checkpoint) -> dict[str, Any]:
    config = cast(TransformerConfig, checkpoint.config.model)
    source, target = checkpoint.tokenizers
    tree: dict[str, Any] = {
        "architectures": [architecture],
        "model_type": "marian" if architecture == "MarianMTModel" else "pegasus",
        "is_encoder_decoder": True,
        "vocab_size": source.vocabulary_size,
        "d_model": config.dim,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.feedforward_dim,
        "decoder_ffn_dim": config.feedforward_dim,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "activation_dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "max_position_embeddings": _positions(checkpoint.config),
        "scale_embedding": True,
        "tie_word_embeddings": config.tie_embeddings != "none",
        "dtype": "float32",
        **_special_ids(),
    }
    if architecture == "MarianMTModel":
        tree["decoder_vocab_size"] = target.vocabulary_size
        tree["share_encoder_decoder_embeddings"] = config.tie_embeddings == "three-way"
    return tree


def _special_ids() -> dict[str, int | None]:
    ids = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}
    return {**ids, "forced_eos_token_id": None}  # a sentence at the length limit is cut, not ended


def _generation_config(config: TrainConfig) -> dict[str, Any]:
    """Greedy search as ours: PAD and BOS are never produced."""
    return {
        **_special_ids(),
        "suppress_tokens": [PAD, BOS],
        "num_beams": 1,
        "do_sample": False,
        "max_length": 1 + _length_limit(config),  # BOS counted there
    }


def _write_tokenizer(tokenizers: TokenizerPair, config: TrainConfig, folder: Path) -> None:
    """What ``MarianTokenizer`` reads: both SentencePiece models and the id of every piece."""
    sides = {"source.spm": tokenizers.source, "target.spm": tokenizers.target}
    for name, tokenizer in sides.items():
        (folder / name).write_bytes(tokenizer.model_bytes)
    vocabularies = {"vocab.json": tokenizers.source}
    if not tokenizers.joint:
        vocabularies["target_vocab.json"] = tokenizers.target
    for name, tokenizer in vocabularies.items():
        pieces = tokenizer.pieces(range(tokenizer.vocabulary_size))
        _write_json(folder / name, {piece: number for number, piece in enumerate(pieces)})
    pad, unk, bos, eos = tokenizers.target.pieces(range(4))
    tree = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": config.data.source,
        "target_lang": config.data.target,
        "separate_vocabs": not tokenizers.joint,
        "pad_token": pad,
        "unk_token": unk,
        "bos_token": bos,
        "eos_token": eos,
        "split_special_tokens": True,  # a typed </s> is text
        "clean_up_tokenization_spaces": False,
        "model_max_length": _positions(config),
    }
    _write_json(folder / "tokenizer_config.json", tree)


def _write_json(path: Path, tree: dict[str, Any]) -> None:
    path.write_text(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


# --- weights ----------------------------------------------------------------------------------------------------------


def _tensors(model: Transformer, positions: int) -> Named:
    """Every tensor under its name there, the residual stream's axis in the order of its positions.

    The functions below say which axis that is: a ``reader`` multiplies what comes from the stream, a ``writer`` makes
    what is added to it. The positions are stored although they could be computed: from_pretrained is faster so, and a
    Pegasus without them is reported as incomplete.
    """
    embeddings = model.embeddings
    dim = embeddings.target_table.size(1)
    order = torch.cat([torch.arange(0, dim, 2), torch.arange(1, dim, 2)])  # sines, then cosines
    if embeddings.source_table is None:
        yield "model.shared.weight", embeddings.target_table[:, order]
    else:
        yield "model.encoder.embed_tokens.weight", embeddings.source_table[:, order]
        yield "model.decoder.embed_tokens.weight", embeddings.target_table[:, order]
    if embeddings.output_table is not None:
        yield "lm_head.weight", embeddings.output_table[:, order]
    yield "final_logits_bias", torch.zeros(1, embeddings.target_table.size(0))
    for side in ("encoder", "decoder"):
        yield f"model.{side}.embed_positions.weight", sinusoids(torch.arange(positions), dim)[:, order]
    for number, layer in enumerate(model.encoder_layers):
        yield from _encoder_layer(f"model.encoder.layers.{number}.", cast(EncoderLayer, layer), order)
    for number, layer in enumerate(model.decoder_layers):
        yield from _decoder_layer(f"model.decoder.layers.{number}.", cast(DecoderLayer, layer), order)
    for side, norm in (("encoder", model.encoder_norm), ("decoder", model.decoder_norm)):
        if isinstance(norm, nn.LayerNorm):
            yield from _norm(f"model.{side}.layer_norm.", norm, order)


def _encoder_layer(prefix: str, layer: EncoderLayer, order: Tensor) -> Named:
    yield from _self_attention(f"{prefix}self_attn.", layer.self_attention, order)
    yield from _norm(f"{prefix}self_attn_layer_norm.", layer.self_attention_residual.norm, order)
    yield from _feedforward(prefix, layer.feedforward, order)
    yield from _norm(f"{prefix}final_layer_norm.", layer.feedforward_residual.norm, order)


def _decoder_layer(prefix: str, layer: DecoderLayer, order: Tensor) -> Named:
    yield from _self_attention(f"{prefix}self_attn.", layer.self_attention, order)
    yield from _norm(f"{prefix}self_attn_layer_norm.", layer.self_attention_residual.norm, order)
    yield from _cross_attention(f"{prefix}encoder_attn.", layer.cross_attention, order)
    yield from _norm(f"{prefix}encoder_attn_layer_norm.", layer.cross_attention_residual.norm, order)
    yield from _feedforward(prefix, layer.feedforward, order)
    yield from _norm(f"{prefix}final_layer_norm.", layer.feedforward_residual.norm, order)


def _self_attention(prefix: str, attention: SelfAttention, order: Tensor) -> Named:
    names = [f"{prefix}{name}_proj." for name in "qkv"]
    yield from _readers(names, attention.query_key_value, order)
    yield from _writer(f"{prefix}out_proj.", attention.output, order)


def _cross_attention(prefix: str, attention: CrossAttention, order: Tensor) -> Named:
    yield from _readers([f"{prefix}q_proj."], attention.query, order)
    yield from _readers([f"{prefix}k_proj.", f"{prefix}v_proj."], attention.key_value, order)
    yield from _writer(f"{prefix}out_proj.", attention.output, order)


def _feedforward(prefix: str, network: FeedForward, order: Tensor) -> Named:
    yield from _readers([f"{prefix}fc1."], network.inner, order)
    yield from _writer(f"{prefix}fc2.", network.outer, order)


def _readers(prefixes: list[str], linear: nn.Linear, order: Tensor) -> Named:
    """Projections of the stream that are one matrix here and several there."""
    for part, prefix in enumerate(prefixes):
        yield f"{prefix}weight", linear.weight.chunk(len(prefixes))[part][:, order]
        yield f"{prefix}bias", linear.bias.chunk(len(prefixes))[part]


def _writer(prefix: str, linear: nn.Linear, order: Tensor) -> Named:
    yield f"{prefix}weight", linear.weight[order]
    yield f"{prefix}bias", linear.bias[order]


def _norm(prefix: str, norm: nn.LayerNorm, order: Tensor) -> Named:
    yield f"{prefix}weight", norm.weight[order]
    yield f"{prefix}bias", norm.bias[order]
