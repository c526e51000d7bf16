"""The part ``maps``: where the model looked, as pictures.

A row belongs to the target token that was predicted with it, a column to a source token; EOS is among both, and the
source stands in the order of the sentence. The title says whose weights they are.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.alignment import choose
from nmt.analysis.diagnosis import Finding, LeftOut, Sentence, Subject, model_name, require_attention
from nmt.analysis.figures import plain, scripts, shades
from nmt.data.batch import collate
from nmt.data.tokenizer import TokenizerPair
from nmt.device import SearchPrecision, autocast
from nmt.forced import force
from nmt.models.base import TranslationModel
from nmt.tokens import EOS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION = (
    "Each row is a distribution over the source's annotations, used when the row's token was predicted. It is a "
    "coefficient of the computation: an annotation has seen the whole sentence, and a weight is no proof of a reason."
)


class AttentionMap(NamedTuple):
    """Weights of one sentence, ready to be drawn."""

    title: str  # model; layer and head
    model: str  # architecture, which gives the colour
    source: list[str]  # tokens, EOS last
    target: list[str]
    weights: np.ndarray  # [target, source]


def maps(subject: Subject) -> Finding:
    """The part as ``nmt.diagnose`` has it.

    Raises:
        LeftOut: the model has no attention, or nobody would see the pictures.
    """
    require_attention(subject)
    if subject.output is None:
        raise LeftOut("pictures need a place: --output FOLDER, and --tensorboard FOLDER if they are wanted there, too")
    name, kind = model_name(subject.checkpoint), "reference" if subject.references is not None else "own translation"
    figures: dict[str, Figure] = {}
    entries: list[dict[str, Any]] = []
    for number, sentence in enumerate(subject.first(subject.maps), 1):
        attention = forced_attention(subject, sentence)  # [tgt_len, layers, heads, src_len]
        chosen = choose(attention, subject.choice)
        source, target = tokens(subject, sentence)
        model = subject.checkpoint.config.model.name
        made = AttentionMap(f"{name}\n{chosen.title}", model, source, target, chosen.weights.double().numpy())
        figures[f"attention_{number}"] = heat_map(made)
        if chosen.layers * chosen.heads > 1:
            figures[f"attention_{number}_heads"] = heads_map(name, model, attention, source, target)
        entries.append(
            {
                "source": sentence.source,
                "target": sentence.target,
                "target_is": kind,
                "weights_of": chosen.title,
                "source_tokens": source,
                "target_tokens": target,
                "weights": made.weights.round(6).tolist(),
            }
        )
    lines = [f"{n}. *{entry['source']}* - {kind}: *{entry['target']}*" for n, entry in enumerate(entries, 1)]
    text = "\n\n".join([CAPTION, "\n".join(lines)])
    return Finding("Where it looked", text, {"caption": CAPTION, "maps": entries}, figures, tuple(figures))


def forced_attention(subject: Subject, sentence: Sentence) -> Tensor:
    """Weights of every layer and head along the target: [tgt_len, layers, heads, src_len], on the CPU."""
    source = [*sentence.source_ids, EOS]
    return attention_along(subject.checkpoint.model, source, sentence.target_ids, subject.device, subject.precision)


def attention_along(
    model: TranslationModel,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    device: torch.device,
    precision: SearchPrecision,
) -> Tensor:
    """Weights of every layer and head while a model is led along a target: [tgt_len, layers, heads, src_len], on the
    CPU. Both sides with EOS, but for a translation that was cut.
    """
    batch = collate([list(source_ids)], [list(target_ids)], [0]).to(device)
    with autocast(device, precision):
        found = force([model], batch, with_log_probabilities=False, with_attention=True).attention
    assert found is not None
    return found[0].cpu()


def tokens(subject: Subject, sentence: Sentence) -> tuple[list[str], list[str]]:
    """Labels of columns and rows."""
    return labels(subject.checkpoint.tokenizers, [*sentence.source_ids, EOS], sentence.target_ids)


def labels(
    tokenizers: TokenizerPair, source_ids: Sequence[int], target_ids: Sequence[int]
) -> tuple[list[str], list[str]]:
    """Tokens of both sides."""
    return tokenizers.source.pieces(source_ids), tokenizers.target.pieces(target_ids)


def heat_map(made: AttentionMap) -> "Figure":
    """One map, with every token as a label."""
    from matplotlib.figure import Figure

    rows, columns = made.weights.shape
    beside, below = (0.08 * max(map(len, tokens)) for tokens in (made.target, made.source))  # what the labels take
    size = (max(4.0, 1.4 + beside + 0.2 * columns), max(3.6, 1.2 + below + 0.19 * rows))
    figure = Figure(figsize=size, layout="constrained", dpi=150)
    axes = figure.add_subplot()
    image = axes.imshow(made.weights, shades(made.model), vmin=0.0, vmax=1.0, aspect="auto")
    _label(axes, made.source, made.target)
    axes.set_xlabel("source token (the order of the sentence)")
    axes.set_ylabel("target token predicted with the row")
    axes.set_title(plain(made.title), loc="left", fontsize="small")
    figure.colorbar(image, ax=axes, label="weight", fraction=0.03)
    return figure


def heads_map(name: str, model: str, attention: Tensor, source: Sequence[str], target: Sequence[str]) -> "Figure":
    """Every layer (a row of panels) and head (a column) of a sentence; tokens are those of the large map."""
    from matplotlib.figure import Figure

    layers, heads = attention.shape[1:3]
    figure = Figure(figsize=(1.0 + 1.7 * heads, 1.2 + 1.7 * layers), layout="constrained", dpi=150)
    panels = figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True)
    for layer, row in enumerate(panels):
        for head, axes in enumerate(row):
            axes.imshow(attention[:, layer, head].numpy(), shades(model), vmin=0.0, vmax=1.0, aspect="auto")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_title(f"layer {layer + 1}, head {head + 1}", fontsize="x-small")
    figure.supxlabel(plain(f"source tokens: {source[0]} ... {source[-1]}"), fontsize="small")
    figure.supylabel(plain(f"target tokens: {target[0]} ... {target[-1]}, from the top"), fontsize="small")
    figure.suptitle(f"{plain(name)}: every layer and head", fontsize="medium")
    return figure


def _label(axes: "Axes", source: Sequence[str], target: Sequence[str]) -> None:
    family = scripts()
    axes.set_xticks(range(len(source)), map(plain, source), rotation=90, fontsize="small", fontfamily=family)
    axes.set_yticks(range(len(target)), map(plain, target), fontsize="small", fontfamily=family)
