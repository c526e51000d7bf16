"""A diagnosis: what is looked at, and what each part of it says. Every part is a file of its own beside this one, with
one function from a :class:`Subject` to a :class:`Finding`; ``nmt/diagnose.py`` lists them.

What a part cannot do for a model, or without a file that was not given, is a :class:`LeftOut` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from nmt.alignment import AttentionChoice
from nmt.analysis.gold import GoldFiles
from nmt.checkpoint import Checkpoint
from nmt.config import SearchConfig
from nmt.data.corpus import is_blank
from nmt.data.dataset import PreparedData, prepare
from nmt.device import SearchPrecision
from nmt.engine import TorchEngine
from nmt.tokens import EOS
from nmt.translation import Translation
from nmt.translator import Translator

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class LeftOut(ValueError):  # noqa: N818 (a reason; an error only where the part was asked for by name)
    """A part that this model or these files do not allow; the message says why and what would."""


class Finding(NamedTuple):
    """What one part says."""

    heading: str
    text: str  # Markdown, without the heading
    tree: dict[str, Any]  # every figure of it, as plain values
    figures: Mapping[str, Figure]  # by the name of their files, without an ending
    images: Sequence[str] = ()  # names of those that are for TensorBoard, too
    failure: str | None = None  # what must not be, whatever was trained: the command ends with a status of its own


class Sentence(NamedTuple):
    """A source and the translation the model is led along."""

    source: str
    target: str
    source_ids: list[int]  # without EOS
    target_ids: list[int]  # with EOS, but where a translation was cut


class Pair(NamedTuple):
    """A source and its reference."""

    source: str
    reference: str
    source_ids: list[int]  # with EOS, as the encoder reads it
    target_ids: list[int]  # with EOS


@dataclass(frozen=True)
class Subject:
    """A checkpoint and all that was given with it."""

    checkpoint: Checkpoint
    device: torch.device
    precision: SearchPrecision
    search: SearchConfig  # for translations of its own
    log: Callable[[str], None]
    choice: AttentionChoice = field(default_factory=AttentionChoice)
    reverse: Checkpoint | None = None  # a model of the other direction
    lines: tuple[str, ...] | None = None  # sentences of the user's; None: those of validation
    references: tuple[str, ...] | None = None  # to be led along instead of translations of its own
    gold: GoldFiles | None = None
    sentences: int = 100  # looked at where not all gold is
    maps: int = 3
    seed: int = 1
    output: Path | None = None
    pairs: int = 500  # with their references: what bottleneck and exposure look at
    probe_sentences: int = 10000  # of training, for bottleneck's probes
    probe_updates: int = 300  # of each of them

    @cached_property
    def prepared(self) -> PreparedData:
        """The data of the run, from the cache or made again.

        Raises:
            LeftOut: it cannot be had.
        """
        config = self.checkpoint.config
        given = self.checkpoint.tokenizers if config.init_from is not None else None  # else they follow from the data
        try:
            data = prepare(config.data, self.log, given)
        except (ValueError, OSError) as error:
            raise LeftOut(f"the data of the run cannot be had ({error})") from error
        if data.tokenizers.digest != self.checkpoint.tokenizers.digest:
            raise LeftOut("the data of the run has changed since it was trained: its subwords are others")
        return data

    @property
    def source_lines(self) -> Sequence[str]:
        """The sentences to look at, before blank ones are left out."""
        if self.lines is not None:
            return self.lines
        return self.prepared.validation.sources()

    @cached_property
    def referenced(self) -> list[Pair]:
        """The first ``pairs`` sentences that are not blank, each with its reference.

        Raises:
            LeftOut: there are none.
        """
        if self.lines is not None and self.references is None:
            raise LeftOut("needs references of the sentences: --reference")
        references = self.prepared.validation.references() if self.references is None else self.references
        lines = [
            (" ".join(line.split()), reference)
            for line, reference in zip(self.source_lines, references, strict=True)
            if not is_blank(line) and not is_blank(reference)
        ][: self.pairs]
        if not lines:
            raise LeftOut("no pair of which neither side is blank (--input, --reference)")
        tokenizers = self.checkpoint.tokenizers
        sources = tokenizers.source.encode_batch([source for source, _ in lines])
        targets = tokenizers.target.encode_batch([target for _, target in lines])
        return [
            Pair(source, reference, [*ids, EOS], [*target_ids, EOS])
            for (source, reference), ids, target_ids in zip(lines, sources, targets, strict=True)
        ]

    @cached_property
    def translations(self) -> list[Translation]:
        """The model's own, of each of ``referenced``."""
        engine = TorchEngine([self.checkpoint.model], self.device, self.precision)
        translator = Translator(engine, self.checkpoint.tokenizers, self.search)
        return translator.translate([pair.source for pair in self.referenced])

    def first(self, count: int) -> list[Sentence]:
        """So many sentences that are not blank, each with its reference or a translation by the model.

        Raises:
            LeftOut: there are none.
        """
        references = self.references or ("",) * len(self.source_lines)
        chosen = [
            (" ".join(line.split()), reference)
            for line, reference in zip(self.source_lines, references, strict=True)
            if not is_blank(line) and not (self.references and is_blank(reference))
        ][:count]
        if not chosen:
            raise LeftOut("no sentence that is not blank (--input)")
        tokenizers = self.checkpoint.tokenizers
        sources = tokenizers.source.encode_batch([source for source, _ in chosen])
        if self.references is not None:
            targets = tokenizers.target.encode_batch([target for _, target in chosen])
            return [
                Sentence(source, target, ids, [*target_ids, EOS])
                for (source, target), ids, target_ids in zip(chosen, sources, targets, strict=True)
            ]
        engine = TorchEngine([self.checkpoint.model], self.device, self.precision)
        found = Translator(engine, tokenizers, self.search).translate([source for source, _ in chosen])
        return [
            Sentence(source, each.text, ids, [*each.ids, EOS] if each.finished else each.ids)
            for (source, _), ids, each in zip(chosen, sources, found, strict=True)
            if each.length  # a translation that is cut at once has nothing to be led along
        ]


Part = Callable[[Subject], Finding]


class Diagnosis(NamedTuple):
    """All parts that could be, and why the others could not."""

    findings: dict[str, Finding]
    left_out: dict[str, str]


def diagnose(subject: Subject, parts: Mapping[str, Part], wanted: Sequence[str] | None) -> Diagnosis:
    """Have each part look at the subject.

    Args:
        subject: what to look at.
        parts: all there are, by name.
        wanted: those to have; None: all that can be.

    Raises:
        LeftOut: a part that is wanted by name cannot be.
    """
    found, left_out = {}, {}
    for name in wanted or parts:
        subject.log(f"{name} ...")
        try:
            found[name] = parts[name](subject)
        except LeftOut as reason:
            if wanted:
                raise LeftOut(f"{name} (--parts): {reason}") from reason
            left_out[name] = str(reason)
            subject.log(f"{name}: left out: {reason}")
    return Diagnosis(found, left_out)


def model_name(checkpoint: Checkpoint) -> str:
    """What a picture calls it: ``transformer``, with the run it is of."""
    folder = checkpoint.path.resolve()
    run = folder.parent.parent if folder.parent.name == "checkpoints" else folder
    return f"{checkpoint.config.model.name} ({run.name}, {checkpoint.step:,} updates)"


def require_attention(subject: Subject) -> None:
    """Raises LeftOut for a model that reads one fixed vector."""
    if not subject.checkpoint.model.attends:
        raise LeftOut(
            f"{subject.checkpoint.config.model.name} reads one fixed vector: it has no attention weights to look at"
        )


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; all columns but the first ``left`` are numbers."""
    rule = ["---" if place < left else "--:" for place in range(len(header))]
    return "\n".join("| " + " | ".join(row).replace("\n", " ") + " |" for row in (header, rule, *rows))
