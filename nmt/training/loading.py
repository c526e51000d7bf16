"""The batches that a run trains on."""

from nmt.config import TrainConfig
from nmt.data.dataset import PreparedData
from nmt.data.loader import Loader
from nmt.data.regularization import SubwordSampler


def training_loader(config: TrainConfig, prepared: PreparedData) -> Loader:
    """Of the training split, with the weights of its parts and the subwords that the configuration asks for.

    Raises:
        DataError: pairs are to be cut anew, and the prepared data keeps no text.
    """
    training, rate = config.training, config.data.tokenizer.subword_regularization
    sampler = None
    if rate is not None:
        longest = min(config.data.max_length, training.batch_tokens)  # no model has a table of fewer positions
        kind = config.data.tokenizer.kind
        sampler = SubwordSampler(prepared.train, prepared.tokenizers, kind, rate, config.seed, longest)
    return Loader(
        prepared.train,
        training.batch_tokens,
        training.batch_sentences,
        seed=config.seed,
        shuffle=True,
        parts=prepared.parts,
        sampler=sampler,
    )


def validation_loader(config: TrainConfig, prepared: PreparedData) -> Loader:
    """Of the validation split, as it is stored."""
    return Loader(prepared.validation, config.training.batch_tokens, None, seed=config.seed, shuffle=False)
