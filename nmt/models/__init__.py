"""Three translation models behind one interface (:mod:`nmt.models.base`); :func:`build` makes any of them."""

import torch

from nmt.config import BahdanauConfig, ConfigError, ModelConfig, Seq2SeqConfig, TransformerConfig
from nmt.models.bahdanau import Bahdanau
from nmt.models.base import TranslationModel
from nmt.models.seq2seq import Seq2Seq
from nmt.models.transformer import Transformer

__all__ = ["build", "parameter_count"]


def build(config: ModelConfig, source_vocabulary: int, target_vocabulary: int, seed: int) -> TranslationModel:
    """Make the model that ``config`` describes, float32, on the CPU, in training mode.

    The same seed gives the same parameters whatever else has drawn random numbers, and nothing else's random numbers
    change. Under ``with torch.device("meta")`` the parameters have shapes but no values.

    Args:
        config: which architecture, and its sizes.
        source_vocabulary: number of source subwords, as the tokenizer says.
        target_vocabulary: number of target subwords.
        seed: of the parameters.

    Raises:
        ConfigError: sizes that do not fit together; names the key.
    """
    _check(config)
    wanted = torch.get_default_device()
    with torch.device("meta"):  # so that torch's own initialisation costs nothing and draws nothing
        model = _construct(config, source_vocabulary, target_vocabulary)
    if wanted.type != "meta":
        model.to_empty(device="cpu")
        with torch.no_grad():
            model.initialize(torch.Generator(device="cpu").manual_seed(seed))
    return model


def parameter_count(model: torch.nn.Module) -> int:
    """Numbers that are trained; a shared matrix counts once."""
    return sum(parameter.numel() for parameter in model.parameters())


def _construct(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> Seq2Seq | Bahdanau | Transformer:
    match config:
        case Seq2SeqConfig():
            return Seq2Seq(config, source_vocabulary, target_vocabulary)
        case BahdanauConfig():
            return Bahdanau(config, source_vocabulary, target_vocabulary)
        case TransformerConfig():
            return Transformer(config, source_vocabulary, target_vocabulary)


def _check(config: ModelConfig) -> None:
    """Refuse sizes that cannot be or do nothing, before torch does so in its own words."""
    for key, value in vars(config).items():
        if type(value) is int and value < 1:
            raise ConfigError(f"model.{key}: expected at least 1, found {value}")
        if "dropout" in key and not 0 <= value < 1:
            raise ConfigError(f"model.{key}: expected 0 <= {key} < 1, found {value}")
    if isinstance(config, Seq2SeqConfig) and not config.init_range > 0:
        raise ConfigError(f"model.init_range: expected more than 0, found {config.init_range}")
    if not isinstance(config, TransformerConfig):
        return
    if config.dim % config.heads:
        raise ConfigError(f"model.heads: {config.heads} heads do not divide model.dim={config.dim} evenly")
    if config.positions == "sinusoidal" and config.dim % 2:
        raise ConfigError(f"model.dim: sinusoidal positions need an even size, found {config.dim}")
    if config.positions == "learned" and config.max_positions is None:
        raise ConfigError("model.max_positions: learned positions need the size of their table, found null")
    if config.positions != "learned" and config.max_positions is not None:
        raise ConfigError(
            f"model.max_positions: found {config.max_positions}, but model.positions={config.positions} has no table: "
            "set model.max_positions=null or model.positions=learned"
        )
