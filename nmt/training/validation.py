"""Validation: likelihood of the references, translations by search, and something to look at.

Each of several processes makes a share (:func:`validate`); :func:`combine` makes the shares into what one process would
have found.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from nmt.alignment import AttentionChoice, choose
from nmt.config import TrainConfig
from nmt.data.batch import Batch, collate
from nmt.data.dataset import PreparedData
from nmt.data.loader import Loader
from nmt.engine import TorchEngine
from nmt.evaluation.likelihood import Likelihood, evaluate_likelihood
from nmt.evaluation.metrics import Score, bleu, chrf
from nmt.forced import force
from nmt.models.base import TranslationModel
from nmt.tokens import EOS
from nmt.training.distributed import Processes
from nmt.training.loading import validation_loader
from nmt.translation import Translation
from nmt.translator import Translator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST_SHOWN = 60
"""Rows of an attention map: a translation that never ends would make a picture of any size."""

SAMPLES = 5
"""Translations shown per validation, spread over the split."""


class Sample(NamedTuple):
    """One sentence to look at."""

    source: str
    reference: str
    text: str  # the translation
    ids: list[int]  # its target subwords, without EOS


@dataclass(frozen=True)
class Validation:
    """Result on the validation split."""

    loss: float  # mean NLL per target token, EOS included, no smoothing
    perplexity: float
    bleu: Score
    chrf: Score
    whole: bool  # False: bleu and chrf are of a subset
    samples: list[Sample]
    seconds: float

    def metric(self, name: str) -> float:
        """The value of ``training.metric``."""
        return {"bleu": self.bleu.value, "chrf": self.chrf.value, "perplexity": self.perplexity, "loss": self.loss}[
            name
        ]

    def values(self) -> dict[str, float | int | str | bool | None]:
        """What ``metrics.jsonl`` holds."""
        return {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "bleu": self.bleu.value,
            "chrf": self.chrf.value,
            "sentences": self.bleu.sentences,
            "subset": not self.whole,
            "length_ratio": self.bleu.length_ratio,
            "brevity_penalty": self.bleu.brevity_penalty,
            "bleu_signature": self.bleu.signature,
            "chrf_signature": self.chrf.signature,
        }

    def line(self) -> str:
        """For people."""
        of = f" (subset of {self.bleu.sentences} sentences)" if not self.whole else ""
        return (
            f"loss {self.loss:.3f} | ppl {self.perplexity:.2f} | BLEU {self.bleu.value:.2f} | "
            f"chrF {self.chrf.value:.2f}{of} | length ratio {self.bleu.length_ratio:.3f} | {self.seconds:.0f} s"
        )

    def markdown(self) -> str:
        """The samples for TensorBoard."""
        return "\n\n".join(
            f"source: {sample.source}  \nreference: {sample.reference}  \ntranslation: **{sample.text}**"
            for sample in self.samples
        )


class Share(NamedTuple):
    """A process's part of a validation."""

    likelihood: Likelihood  # of its batches
    translations: list[Translation]  # of every so manieth sentence, in order


def validate(
    model: TranslationModel, prepared: PreparedData, config: TrainConfig, device: torch.device, processes: Processes
) -> Share:
    """Score a share of the validation split; the model's mode and the random generators are left as they were.

    In float32 whatever training multiplies in, so that ``nmt.evaluate`` finds the same figures.
    """
    split = prepared.validation
    training = model.training
    model.eval()
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):  # whatever a search may draw, training goes on as if it had not
        loader = validation_loader(config, prepared)
        batches = _Every(loader, processes.rank, processes.size)
        likelihood = Likelihood(0.0, 0)
        if processes.rank < loader.batches_in_epoch(0):
            likelihood = evaluate_likelihood(model, batches, device, "fp32")
        translator = Translator(TorchEngine([model], device, "fp32"), prepared.tokenizers, config.search)
        sources = split.sources()[: config.training.validation_sentences][processes.rank :: processes.size]
        translations = translator.translate(sources)
    model.train(training)
    return Share(likelihood, translations)


class _Every(NamedTuple):
    """Every ``size``-th batch of a loader, from number ``rank`` on."""

    loader: Loader
    rank: int
    size: int

    def batches(self, epoch: int) -> Iterator[Batch]:
        return self.loader.batches(epoch, self.rank, self.size)


def combine(shares: Sequence[Share], prepared: PreparedData, config: TrainConfig, seconds: float) -> Validation:
    """What one process would have found.

    Args:
        shares: of every process, by rank.
        prepared: the data.
        config: of the run.
        seconds: that it took.
    """
    split, limit = prepared.validation, config.training.validation_sentences
    sources, references = split.sources()[:limit], split.references()[:limit]
    best = [shares[i % len(shares)].translations[i // len(shares)] for i in range(len(sources))]
    likelihood = Likelihood(
        sum(share.likelihood.nll for share in shares), sum(share.likelihood.tokens for share in shares)
    )
    translations = [translation.text for translation in best]
    shown = sorted({i * len(sources) // SAMPLES for i in range(SAMPLES)})
    return Validation(
        loss=likelihood.nll / likelihood.tokens,
        perplexity=likelihood.perplexity,
        bleu=bleu(translations, references),
        chrf=chrf(translations, references),
        whole=len(sources) == len(split),
        samples=[Sample(sources[i], references[i], best[i].text, best[i].ids) for i in shown],
        seconds=seconds,
    )


def attention_figure(model: TranslationModel, prepared: PreparedData, sample: Sample, device: torch.device) -> "Figure":
    """Where the model looked while it wrote a translation, made in eval mode.

    Rows are the first :data:`LONGEST_SHOWN` target tokens predicted, EOS included; columns are the source tokens, EOS
    included, in original order.
    """
    source, target = prepared.tokenizers
    source_ids, target_ids = [*source.encode(sample.source), EOS], [*sample.ids, EOS][:LONGEST_SHOWN]
    batch = collate([source_ids], [target_ids], [0]).to(device)
    weights = force([model], batch, with_log_probabilities=False, with_attention=True).attention
    assert weights is not None  # [1, tgt_len, layers, heads, src_len]
    chosen = choose(weights[0], AttentionChoice())

    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 + 0.35 * len(source_ids), 1.5 + 0.35 * len(target_ids)), layout="tight")
    axes = figure.add_subplot()
    axes.imshow(chosen.weights.cpu().numpy(), cmap="Greys", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(source_ids)), source.pieces(source_ids), rotation=90)
    axes.set_yticks(range(len(target_ids)), target.pieces(target_ids))
    axes.set_xlabel("source token")
    axes.set_ylabel("target token predicted")
    axes.set_title(f"attention, {chosen.title}", fontsize="small")
    return figure
