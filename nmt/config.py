"""Dataclasses of every configuration; ``parse`` turns a resolved YAML tree into them.

Defaults live in ``configs/*.yaml`` only: no field here has one, so that a value is written in exactly one place. What a
field means stands as a comment beside its key in the YAML file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nmt.parse import ConfigError as ConfigError
from nmt.parse import parse as parse
from nmt.parse import to_tree as to_tree


def _find_configs() -> Path:
    installed = Path(__file__).parent / "configs"  # packed into the wheel
    return installed if installed.is_dir() else Path(__file__).parent.parent / "configs"


CONFIG_DIR = _find_configs()
"""Folder of the YAML files, in a checkout and in an installed wheel alike."""


# --- data -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TokenizerConfig:
    """How SentencePiece is trained (``configs/data/*.yaml``, key ``tokenizer``)."""

    kind: Literal["bpe", "unigram"]
    vocabulary_size: int
    source_vocabulary_size: int | None
    joint: bool
    character_coverage: float
    normalization: Literal["identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"]
    byte_fallback: bool
    sample_sentences: int
    num_threads: int
    subword_regularization: float | None


@dataclass(frozen=True)
class FilterConfig:
    """Which training pairs are left out (``configs/data/filters/*.yaml``); what each means stands in
    ``nmt/data/filters.py``. Validation and test lose none."""

    max_words: int | None
    max_ratio: float | None
    max_word_length: int | None
    identical: bool
    duplicates: Literal["keep", "pair", "source", "target", "either"]
    held_out: Literal["keep", "pair", "source", "target", "either"]
    foreign_letters: float | None
    numbers: bool
    language: bool
    quarantine: bool


@dataclass(frozen=True)
class DemoData:
    """The embedded English-German grammar."""

    kind: Literal["demo"]
    name: str
    source: str
    target: str
    seed: int
    train_pairs: int
    validation_pairs: int
    test_pairs: int
    word_order: Literal["german", "monotone", "reversed"]
    min_words: int
    max_words: int
    mean_words: float
    max_length: int
    tokenizer: TokenizerConfig
    cache: str


@dataclass(frozen=True)
class FilePair:
    """Two line-aligned files."""

    source: str
    target: str


@dataclass(frozen=True)
class WeightedCorpus:
    """A part of a mixture: where it lies, as an entry of ``train``, and how often a pair of it occurs in an epoch."""

    path: str | FilePair
    weight: float


@dataclass(frozen=True)
class FilesData:
    """The user's own line-aligned text."""

    kind: Literal["files"]
    name: str
    source: str
    target: str
    train: tuple[str | FilePair, ...] | None
    corpora: tuple[WeightedCorpus, ...] | None
    validation: tuple[str | FilePair, ...]
    test: tuple[str | FilePair, ...] | None
    max_pairs: int | None
    sample_seed: int | None
    max_length: int
    filters: FilterConfig
    tokenizer: TokenizerConfig
    cache: str


@dataclass(frozen=True)
class SplitNames:
    """What the three splits are called by their publisher; null where there is none such."""

    train: str
    validation: str | None
    test: str | None


@dataclass(frozen=True)
class HubData:
    """A public data set on the Hugging Face Hub, or a local copy of its text."""

    kind: Literal["hub"]
    name: str
    source: str
    target: str
    dataset: str
    pair: str | None
    revision: str | None
    column: str | None
    splits: SplitNames
    held_out_pairs: int | None
    folder: str | None
    folder_splits: SplitNames
    max_pairs: int | None
    sample_seed: int | None
    timeout: float
    max_length: int
    filters: FilterConfig
    tokenizer: TokenizerConfig
    cache: str


DataConfig = DemoData | FilesData | HubData


# --- models -----------------------------------------------------------------------------------------------------------

Tying = Literal["none", "two-way", "three-way"]


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Sutskever, Vinyals and Le (2014)."""

    name: Literal["seq2seq"]
    embedding_dim: int
    hidden_dim: int
    layers: int
    dropout: float
    reverse_source: bool
    tie_embeddings: Tying
    init_range: float


@dataclass(frozen=True)
class BahdanauConfig:
    """Bahdanau, Cho and Bengio (2014)."""

    name: Literal["bahdanau"]
    embedding_dim: int
    hidden_dim: int
    attention_dim: int
    maxout_dim: int
    dropout: float
    reverse_source: bool
    tie_embeddings: Tying
    initialization: Literal["paper", "xavier"]


@dataclass(frozen=True)
class TransformerConfig:
    """Vaswani et al. (2017)."""

    name: Literal["transformer"]
    dim: int
    heads: int
    encoder_layers: int
    decoder_layers: int
    feedforward_dim: int
    dropout: float
    attention_dropout: float
    norm: Literal["pre", "post"]
    activation: Literal["relu", "gelu"]
    positions: Literal["sinusoidal", "learned", "none"]
    max_positions: int | None
    tie_embeddings: Tying


ModelConfig = Seq2SeqConfig | BahdanauConfig | TransformerConfig


# --- optimisation -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AdamConfig:
    """Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019: decoupled weight decay)."""

    name: Literal["adam", "adamw"]
    learning_rate: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float


@dataclass(frozen=True)
class SGDConfig:
    """Plain stochastic gradient descent."""

    name: Literal["sgd"]
    learning_rate: float
    momentum: float


@dataclass(frozen=True)
class AdadeltaConfig:
    """Adadelta (Zeiler 2012)."""

    name: Literal["adadelta"]
    learning_rate: float
    rho: float
    epsilon: float


@dataclass(frozen=True)
class ConstantSchedule:
    """Linear warm-up, then constant."""

    name: Literal["constant"]
    warmup_steps: int


@dataclass(frozen=True)
class InverseSqrtSchedule:
    """Linear warm-up, then proportional to step^-0.5 (Vaswani et al. 2017, equation 3)."""

    name: Literal["inverse_sqrt"]
    warmup_steps: int


@dataclass(frozen=True)
class LinearSchedule:
    """Linear warm-up, then linear to zero behind update ``total_steps`` (Devlin et al. 2019, appendix A.2)."""

    name: Literal["linear"]
    warmup_steps: int
    total_steps: int


@dataclass(frozen=True)
class PlateauSchedule:
    """Linear warm-up, then cut by ``factor`` after ``patience`` validations without improvement."""

    name: Literal["plateau"]
    warmup_steps: int
    factor: float
    patience: int
    min_learning_rate: float


@dataclass(frozen=True)
class HalvingSchedule:
    """Constant for ``start_epoch`` epochs, then halved every ``every_epochs`` (Sutskever et al. 2014, section 3.4)."""

    name: Literal["halving"]
    start_epoch: float
    every_epochs: float


@dataclass(frozen=True)
class OptimConfig:
    """One training recipe: optimizer, schedule, clipping, smoothing."""

    optimizer: AdamConfig | SGDConfig | AdadeltaConfig
    schedule: ConstantSchedule | InverseSqrtSchedule | LinearSchedule | PlateauSchedule | HalvingSchedule
    clip_norm: float | None
    label_smoothing: float
    normalize: Literal["tokens", "sentences"]


# --- search and training ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchConfig:
    """Beam search; the formulas stand in ``nmt/lengths.py``, what is barred in ``nmt/constraints.py``."""

    beam_size: int
    length_penalty: Literal["gnmt", "simple", "none"]
    alpha: float
    min_length: int
    max_length_a: float
    max_length_b: int
    patience: float | None
    no_repeat_ngram: int
    forbid_unk: bool
    batch_tokens: int


@dataclass(frozen=True)
class Sampling:
    """Drawing translations instead of searching for the best; options of a command, with no group of their own. What
    each does stands in ``nmt/sampling.py``."""

    temperature: float
    top_k: int
    top_p: float
    seed: int


@dataclass(frozen=True)
class TrainingConfig:
    """The loop: batches, when to validate, when to stop, what to keep."""

    batch_tokens: int
    batch_sentences: int | None
    accumulate: int
    max_steps: int | None
    max_epochs: float | None
    max_minutes: float | None
    precision: Literal["auto", "fp32", "bf16"]
    device: str
    validate_every: int
    validation_sentences: int | None
    metric: Literal["bleu", "chrf", "perplexity", "loss"]
    patience: int | None
    keep_last: int
    average_last: int
    max_bad_steps: int
    log_every: int
    timeout: float
    tf32: bool
    compile: bool
    reset_optimizer: bool
    reset_schedule: bool


@dataclass(frozen=True)
class TrainConfig:
    """Everything a run is made of: what ``configs/train.yaml`` composes."""

    tag: str
    seed: int
    runs: str
    init_from: str | None
    data: DataConfig
    model: ModelConfig
    optim: OptimConfig
    search: SearchConfig
    training: TrainingConfig

    @property
    def run_dir(self) -> Path:
        """Folder of this run."""
        return Path(self.runs).expanduser() / f"{self.tag}_s{self.seed}"
