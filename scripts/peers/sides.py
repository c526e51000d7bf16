"""What is compared: the two models in every toolkit's own terms, and the commands that train them.

T is a Transformer of width 256 with 4 heads, 3 + 3 layers and 1,024 feed-forward units, pre-norm, all embeddings tied.
R is Bahdanau's model: a bidirectional GRU of 512 units per direction, a decoder GRU of 512, embeddings of 256, additive
attention. The recipe is the same everywhere: Adam (0.9, 0.98), a learning rate that rises to 5e-4 in 300 updates and
then falls with the root of their number, gradient norm clipped to 1, label smoothing 0.1, loss by tokens, at most 4,096
tokens a batch, padding included.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import yaml

from .corpus import Corpus

Model = Literal["T", "R"]
Toolkit = Literal["joeynmt", "opennmt", "nmt"]

BATCH_TOKENS = 4096
LEARNING_RATE = 5e-4
WARM_UP_UPDATES = 300
SMOOTHING = 0.1
DROPOUT = {"T": 0.1, "R": 0.2}
NEVER = 1_000_000  # updates until a validation or a checkpoint
RUNNER = Path(__file__).with_name("runner.py")


@dataclass(frozen=True)
class Side:
    """One row of the table."""

    name: str
    toolkit: Toolkit
    arguments: Callable[[Corpus, Path], list[str]]  # of the training command, given the data and a fresh folder
    processes: int = 1

    def command(self, python: str, log: Path, threads: int, arguments: list[str]) -> list[str]:
        """The whole command line, with ``threads`` in each process."""
        start = [python]
        if self.processes > 1:
            start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.processes}"]
        return [*start, str(RUNNER), self.toolkit, str(log), str(threads), *arguments]


def sides(model: Model, extra: list[str]) -> list[Side]:
    """All sides of a model, the peers first; ours as one process, and as two that share its batches.

    Args:
        model: T or R.
        extra: overrides for all of our own runs.
    """
    rows = [Side("JoeyNMT 2.3.0", "joeynmt", partial(joeynmt, model))]
    if model == "T":
        rows += [Side("OpenNMT-py 3.5.1", "opennmt", partial(opennmt, model, 256))]
    else:
        # Its encoder gives half of hidden_size to each direction: at 512 that is half of R's width. At 568 (a multiple
        # of 8) it has R's number of parameters.
        rows += [
            Side(f"OpenNMT-py 3.5.1, hidden {size}", "opennmt", partial(opennmt, model, size)) for size in (512, 568)
        ]
    for processes in (1, 2):
        note = f", {processes} processes" if processes > 1 else ""
        rows += [
            Side(f"nmt {name}{note}", "nmt", partial(nmt, model, name, extra), processes) for name in ("fp32", "bf16")
        ]
    return rows


# --- JoeyNMT ----------------------------------------------------------------------------------------------------------


def joeynmt(model: Model, corpus: Corpus, folder: Path) -> list[str]:
    """Arguments of ``joeynmt train``. It has no length bucketing and, on a CPU, no bf16."""
    side = {"level": "word", "voc_file": str(corpus.folder / "vocabulary.txt"), "lowercase": False, "max_length": -1}
    tree = {
        "name": f"peers_{model}",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "normalization": "tokens",
        "data": {
            "train": str(corpus.folder / "train"),
            "dev": str(corpus.folder / "val"),  # it insists on it
            "dataset_type": "plain",
            "src": {"lang": corpus.source, **side},
            "trg": {"lang": corpus.target, **side},
        },
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": LEARNING_RATE,
            "learning_rate_min": 1e-9,
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": WARM_UP_UPDATES,
            "normalization": "tokens",
            "label_smoothing": SMOOTHING,
            "clip_grad_norm": 1.0,
            "batch_size": BATCH_TOKENS,
            "batch_type": "token",
            "epochs": NEVER,
            "shuffle": True,
            "validation_freq": NEVER,
            "logging_freq": 10,
            "overwrite": True,
        },
        "testing": {},
        "model": _joeynmt_transformer() if model == "T" else _joeynmt_recurrent(),
    }
    return [_write(folder / "joeynmt.yaml", tree), "--skip-test"]


def _joeynmt_transformer() -> dict[str, Any]:
    half = {
        "type": "transformer",
        "num_layers": 3,
        "num_heads": 4,
        "embeddings": {"embedding_dim": 256, "scale": True, "dropout": DROPOUT["T"]},
        "hidden_size": 256,
        "ff_size": 1024,
        "dropout": DROPOUT["T"],
        "layer_norm": "pre",
        "activation": "relu",
    }
    return {
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": half,
        "decoder": half,
    }


def _joeynmt_recurrent() -> dict[str, Any]:
    half = {
        "rnn_type": "gru",
        "num_layers": 1,
        "embeddings": {"embedding_dim": 256, "scale": False, "dropout": DROPOUT["R"]},
        "hidden_size": 512,
        "dropout": DROPOUT["R"],
    }
    decoder = {
        "type": "recurrent",
        "attention": "bahdanau",
        "hidden_dropout": DROPOUT["R"],
        "init_hidden": "bridge",
        "input_feeding": True,  # without it the recurrence would not see what was attended to
    }
    return {
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "tied_embeddings": False,
        "tied_softmax": False,
        "encoder": {**half, "type": "recurrent", "bidirectional": True},
        "decoder": {**half, **decoder},
    }


# --- OpenNMT-py -------------------------------------------------------------------------------------------------------


def opennmt(model: Model, hidden_size: int, corpus: Corpus, folder: Path) -> list[str]:
    """Arguments of ``onmt_train``. Its bucket is the whole training set, as is ours: the least padding."""
    vocabulary = str(corpus.folder / "vocabulary.txt")
    text = {
        "path_src": str(corpus.folder / f"train.{corpus.source}"),
        "path_tgt": str(corpus.folder / f"train.{corpus.target}"),
        "transforms": [],
        "weight": 1,
    }
    tree = {
        "data": {"corpus": text},
        "src_vocab": vocabulary,
        "tgt_vocab": vocabulary,
        "share_vocab": True,
        "save_model": str(folder / "model"),
        "world_size": 1,
        "gpu_ranks": [],
        "seed": 1,
        "train_steps": NEVER,
        "valid_steps": NEVER,
        "save_checkpoint_steps": NEVER,
        "report_every": 10,
        "bucket_size": corpus.pairs,
        "num_workers": 0,  # worker processes would share the cores that compute
        "batch_size": BATCH_TOKENS,
        "batch_type": "tokens",
        "normalization": "tokens",
        "accum_count": [1],
        "optim": "adam",
        "adam_beta1": 0.9,
        "adam_beta2": 0.98,
        "learning_rate": LEARNING_RATE * math.sqrt(hidden_size * WARM_UP_UPDATES),  # its formula divides by that
        "decay_method": "noam",
        "warmup_steps": WARM_UP_UPDATES,
        "max_grad_norm": 1.0,
        "label_smoothing": SMOOTHING,
        "dropout": [DROPOUT[model]],
        "attention_dropout": [0.0],
        "word_vec_size": 256,
        "hidden_size": hidden_size,
        **(_OPENNMT_TRANSFORMER if model == "T" else _OPENNMT_RECURRENT),
    }
    return ["-config", _write(folder / "opennmt.yaml", tree)]


_OPENNMT_TRANSFORMER = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "layers": 3,
    "heads": 4,
    "transformer_ff": 1024,
    "add_qkvbias": True,
    "add_ffnbias": True,
    "position_encoding": True,
    "share_embeddings": True,
    "share_decoder_embeddings": True,
    "param_init": 0.0,
    "param_init_glorot": True,
}
_OPENNMT_RECURRENT = {
    "encoder_type": "brnn",
    "decoder_type": "rnn",
    "rnn_type": "GRU",
    "layers": 1,
    "global_attention": "mlp",
    "input_feed": 1,  # without it the recurrence would not see what was attended to
}


def _write(path: Path, tree: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return str(path)


# --- this project -----------------------------------------------------------------------------------------------------

_NMT_MODEL = {
    "T": (
        "model=transformer",
        "model.dim=256",
        "model.heads=4",
        "model.encoder_layers=3",
        "model.decoder_layers=3",
        "model.feedforward_dim=1024",
        "model.attention_dropout=0.0",
        "model.norm=pre",
        "model.tie_embeddings=three-way",
    ),
    "R": (
        "model=bahdanau",
        "model.embedding_dim=256",
        "model.hidden_dim=512",
        "model.attention_dim=512",
        "model.maxout_dim=256",
        "model.tie_embeddings=none",
    ),
}


def nmt(model: Model, precision: str, extra: list[str], corpus: Corpus, folder: Path) -> list[str]:
    """Arguments of ``nmt.train``."""
    return [
        *_NMT_MODEL[model],
        *corpus.overrides,
        f"model.dropout={DROPOUT[model]}",
        f"runs={folder}",
        "tag=peers",
        "seed=1",
        "search=greedy",
        "optim/schedule=inverse_sqrt",
        f"optim.schedule.warmup_steps={WARM_UP_UPDATES}",
        f"optim.optimizer.learning_rate={LEARNING_RATE}",
        "optim.optimizer.beta1=0.9",
        "optim.optimizer.beta2=0.98",
        "optim.clip_norm=1.0",
        f"optim.label_smoothing={SMOOTHING}",
        f"training.batch_tokens={BATCH_TOKENS}",
        f"training.precision={precision}",
        "training.device=cpu",
        f"training.max_steps={NEVER}",
        f"training.validate_every={NEVER}",
        "training.patience=null",
        *extra,
    ]
