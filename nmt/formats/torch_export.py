"""``--format torch-export``: any of the three models as two programs that torch alone can load.

    python exported/translate.py < in.txt > out.txt         # an example in the folder; needs torch and sentencepiece

    encode = torch.export.load("exported/encode.pt2").module()
    step = torch.export.load("exported/step.pt2").module()
    memory, state = encode(source, lengths)                   # int64 [rows, src_len] (EOS at the end, then 0), [rows]
    log_probabilities, state = step(previous, state, memory)  # int64 [rows] (BOS at first); float32 [rows, vocabulary]

``memory`` and ``state`` are tuples of tensors with one row each; ``nmt.json`` names them and their axes. The number of
rows, the source's length and, in the state of a Transformer, the target's so far are free, from 1 (the last from 0) on.
Unlike in the models here the memory has a row for each hypothesis, not for each sentence: a beam of k repeats it k
times. Nothing is forbidden: a search must not choose PAD (0) and BOS (2).

Each file holds all parameters. The programs compute in float32, on the CPU. They are torch's own format: load them with
the version of torch that ``nmt.json`` names, or a newer one.
"""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from nmt.checkpoint import Checkpoint
from nmt.formats import ExportError, Options, write_description
from nmt.formats.torch_programs import Axes, Encode, Step, Tensors, parts_of
from nmt.models.base import TranslationModel
from nmt.tokens import BOS, EOS, PAD, UNK

EXAMPLE = Path(__file__).with_name("torch_example.py")
"""Becomes ``translate.py`` in the folder."""

SMALLEST = {"rows": 1, "src_len": 1, "tgt_len": 0}
"""The free axes, and how short they may be."""

TRACED = {"rows": 11, "src_len": 13, "tgt_len": 17}
"""Their sizes while tracing: no model's own, with which a tracer could take them for the same."""


def export(checkpoint: Checkpoint, folder: Path, options: Options) -> None:
    """Write ``encode.pt2``, ``step.pt2``, ``nmt.json``, the tokenizers and an example into an empty folder.

    Raises:
        ExportError: an option that this format does not have.
    """
    if options.quantization is not None:
        raise ExportError(
            f"--quantization: found {options.quantization}, but --format torch-export writes float32 only"
        )
    programs = trace(checkpoint.model)
    for name, program in programs.items():
        torch.export.save(program.traced, folder / f"{name}.pt2")
    (folder / "translate.py").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    tokenizers, search = checkpoint.tokenizers, checkpoint.config.search
    names = ("tokenizer.model",) * 2 if tokenizers.joint else ("source.model", "target.model")
    facts = {
        "torch": torch.__version__,
        "model": checkpoint.config.model.name,
        "ids": {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS},
        "sentencepiece": dict(zip(("source", "target"), names, strict=True)),
        "vocabulary": {"source": tokenizers.source.vocabulary_size, "target": tokenizers.target.vocabulary_size},
        "search": {name: getattr(search, name) for name in ("max_length_a", "max_length_b", "min_length")},
        "smallest": SMALLEST,
        "programs": {
            name: {"file": f"{name}.pt2", "inputs": program.inputs, "outputs": program.outputs}
            for name, program in programs.items()
        },
    }
    write_description(folder, checkpoint, "torch-export", facts)


class Program(NamedTuple):
    """A traced program, and the tensors (a list: a tuple of them) that go into it and come out."""

    traced: ExportedProgram
    inputs: list[Any]
    outputs: list[Any]


def trace(model: TranslationModel) -> dict[str, Program]:
    """Both programs of a model in eval mode on the CPU.

    They are traced as training would run: where gradients are recorded, the models neither write in place nor choose
    among kernels by length.
    """
    parts = parts_of(model)
    encode, step = Encode(parts), Step(parts)
    source = torch.full((TRACED["rows"], TRACED["src_len"]), UNK)
    lengths, previous = torch.full((TRACED["rows"],), TRACED["src_len"]), torch.full((TRACED["rows"],), BOS)
    with torch.no_grad():
        memory, state = encode(source, lengths)
        for _ in range(TRACED["tgt_len"]):
            log_probabilities, state = step(previous, state, memory)
    axes: dict[str, Axes] = {"source": ("rows", "src_len"), "lengths": ("rows",), "previous": ("rows",)}
    state_axes, memory_axes = tuple(parts.state_axes.values()), tuple(parts.memory_axes.values())
    states, memories = _described(parts.state_axes, state), _described(parts.memory_axes, memory)
    source_, lengths_, previous_ = _described(axes, (source, lengths, previous))
    return {
        "encode": Program(
            _export(encode, (source, lengths), (axes["source"], axes["lengths"])),
            inputs=[source_, lengths_],
            outputs=[memories, states],
        ),
        "step": Program(
            _export(step, (previous, state, memory), (axes["previous"], state_axes, memory_axes)),
            inputs=[previous_, states, memories],
            outputs=[*_described({"log_probabilities": ("rows", "vocabulary")}, (log_probabilities,)), states],
        ),
    }


def _export(module: nn.Module, inputs: tuple[Any, ...], axes: tuple[Any, ...]) -> ExportedProgram:
    """Trace ``module``; ``axes`` is a tree like ``inputs`` with the :data:`Axes` of each tensor."""
    free = {name: Dim(name, min=smallest) for name, smallest in SMALLEST.items()}

    def dynamic(tree: Any) -> Any:
        if tree and isinstance(tree[0], str):
            return {place: free[name] for place, name in enumerate(tree) if name in free}
        return tuple(dynamic(part) for part in tree)

    with torch.enable_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The tensor attributes", UserWarning)  # what nn.LSTM keeps besides parameters
        return torch.export.export(module, inputs, dynamic_shapes=dynamic(axes))


def _described(axes: dict[str, Axes], tensors: Tensors) -> list[dict[str, Any]]:
    """Name, number format and shape of each tensor, free axes by name."""
    return [
        {
            "name": name,
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": [axis if axis in SMALLEST else size for axis, size in zip(places, tensor.shape, strict=True)],
        }
        for (name, places), tensor in zip(axes.items(), tensors, strict=True)
    ]
