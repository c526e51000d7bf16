"""The models as modules that ``torch.export`` can trace: tensors in, tensors out, every length a variable.

:class:`Encode` and :class:`Step` are the interface of :mod:`nmt.models.base` with each tree as a tuple of tensors, and
with as many rows in the memory as in the state: that one is a multiple of the other is no shape a program can have.
:class:`Parts` is what the three models differ in.

The recurrent encoders pack their input, which depends on the data in a way that a program cannot. Here they are loops
over the positions (``scan``) in which a row whose sentence is over, or for the backward direction has not begun, keeps
its state: what packing computes, one position at a time.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from nmt.models.attention import KeysValues
from nmt.models.bahdanau import Bahdanau
from nmt.models.base import State, TranslationModel
from nmt.models.memory import FixedVector, Memory, MemoryTable
from nmt.models.reversal import reverse_words
from nmt.models.seq2seq import Seq2Seq
from nmt.models.transformer import Transformer

Tensors = tuple[Tensor, ...]

Axes = tuple[str, ...]
"""What each axis of a tensor is; ``rows``, ``src_len`` and ``tgt_len`` are free, all others are the model's."""


class Parts(nn.Module):
    """One model's encoder, and its trees as tuples of named tensors."""

    model: TranslationModel

    memory_axes: dict[str, Axes]
    """Name and axes of each tensor of the memory, in order."""

    state_axes: dict[str, Axes]
    """Name and axes of each tensor of the state, in order."""

    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        """As the model's own."""
        raise NotImplementedError

    def memory_tensors(self, memory: Memory) -> Tensors:
        """What the step reads of a memory."""
        raise NotImplementedError

    def memory(self, tensors: Tensors, state: State) -> Memory:
        """The inverse of :meth:`memory_tensors`."""
        raise NotImplementedError

    def state_tensors(self, state: State) -> Tensors:
        """The tensors of a state, [rows, ...] each."""
        raise NotImplementedError

    def state(self, tensors: Tensors) -> State:
        """The inverse of :meth:`state_tensors`."""
        raise NotImplementedError


class Encode(nn.Module):
    """(source [batch, src_len], lengths [batch]) -> (memory, the state before the first target token)."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, source: Tensor, lengths: Tensor) -> tuple[Tensors, Tensors]:
        """int64 both, EOS counted."""
        memory = self.parts.encode(source, lengths)
        state = self.parts.model.init_state(memory)
        return self.parts.memory_tensors(memory), self.parts.state_tensors(state)


class Step(nn.Module):
    """(previous [rows], state, memory) -> (log probabilities [rows, vocabulary], state)."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, previous: Tensor, state: Tensors, memory: Tensors) -> tuple[Tensor, Tensors]:
        """Natural logarithms, float32."""
        start = self.parts.state(state)
        features, new, _ = self.parts.model.step(previous, start, self.parts.memory(memory, start))
        return self.parts.model.project(features).float().log_softmax(dim=-1), self.parts.state_tensors(new)


def parts_of(model: TranslationModel) -> Parts:
    """The parts of one of the three models."""
    match model:
        case Seq2Seq():
            return Seq2SeqParts(model)
        case Bahdanau():
            return BahdanauParts(model)
        case Transformer():
            return TransformerParts(model)
    raise AssertionError(type(model).__name__)


# --- the three --------------------------------------------------------------------------------------------------------


class Seq2SeqParts(Parts):
    """The fixed vector is the first state; nothing else is left to read."""

    model: Seq2Seq

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model
        self.memory_axes = {}
        self.state_axes = dict.fromkeys(("hidden", "cell"), ("rows", "layers", "dim"))

    def encode(self, source: Tensor, lengths: Tensor) -> FixedVector:
        """As the model's own."""
        if self.model.reverse_source:
            source = reverse_words(source, lengths)
        real = real_positions(source, lengths)
        x = self.model.embeddings.source(source).transpose(0, 1)  # [src_len, batch, dim]
        ends = []
        for layer in range(self.model.encoder.num_layers):
            x, end = lstm_layer(self.model.encoder, layer, x, real)
            ends.append(end)
        hidden, cell = (torch.stack(part, dim=1) for part in zip(*ends, strict=True))  # [batch, layers, dim]
        return FixedVector(hidden, cell)

    def memory_tensors(self, memory: Memory) -> Tensors:
        """None."""
        return ()

    def memory(self, tensors: Tensors, state: State) -> FixedVector:
        """Never looked at."""
        return cast(FixedVector, state)

    def state_tensors(self, state: State) -> Tensors:
        """Hidden, cell."""
        return tuple(state)

    def state(self, tensors: Tensors) -> FixedVector:
        """The same."""
        return FixedVector(*tensors)


class BahdanauParts(Parts):
    """The table, and s_t."""

    model: Bahdanau

    def __init__(self, model: Bahdanau) -> None:
        super().__init__()
        self.model = model
        self.memory_axes = {
            "keys": ("rows", "src_len", "dim"),
            "values": ("rows", "src_len", "dim"),
            "mask": ("rows", "src_len"),
        }
        self.state_axes = {"hidden": ("rows", "dim")}

    def encode(self, source: Tensor, lengths: Tensor) -> MemoryTable:
        """As the model's own."""
        if self.model.reverse_source:
            source = reverse_words(source, lengths)
        real = real_positions(source, lengths)
        x = self.model.embeddings.source(source).transpose(0, 1)  # [src_len, batch, embedding_dim]
        directions = [gru_direction(self.model.encoder, backward, x, real) for backward in (False, True)]
        annotations = torch.cat(directions, dim=2).transpose(0, 1)  # [batch, src_len, annotation_dim]
        if self.model.reverse_source:
            annotations = reverse_words(annotations, lengths)
        return self.model.reader.table(annotations, real.transpose(0, 1))

    def memory_tensors(self, memory: Memory) -> Tensors:
        """Keys, values, mask."""
        return tuple(cast(MemoryTable, memory))

    def memory(self, tensors: Tensors, state: State) -> MemoryTable:
        """The same."""
        return MemoryTable(*tensors)

    def state_tensors(self, state: State) -> Tensors:
        """s_t."""
        return (state,)

    def state(self, tensors: Tensors) -> Tensor:
        """s_t."""
        return tensors[0]


class TransformerParts(Parts):
    """Keys and values of every decoder layer: of the source, behind one mask, and of the target so far."""

    model: Transformer

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model
        layers = [f"{part}_{layer}" for layer in range(len(model.decoder_layers)) for part in ("keys", "values")]
        mask: dict[str, Axes] = {"mask": ("rows", "src_len")}
        self.memory_axes = mask | dict.fromkeys(layers, ("rows", "heads", "src_len", "head_dim"))
        self.state_axes = dict.fromkeys(layers, ("rows", "heads", "tgt_len", "head_dim"))

    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        """The model's own."""
        return self.model.encode(source, lengths)

    def memory_tensors(self, memory: Memory) -> Tensors:
        """The mask, then keys and values of each layer."""
        tables = cast(tuple[MemoryTable, ...], memory)
        return (tables[0].mask, *(part for table in tables for part in (table.keys, table.values)))

    def memory(self, tensors: Tensors, state: State) -> Memory:
        """One table for each layer."""
        mask, *rest = tensors
        return tuple(MemoryTable(keys, values, mask) for keys, values in pairs(rest))

    def state_tensors(self, state: State) -> Tensors:
        """Keys and values of each layer."""
        return tuple(part for cache in state for part in (cache.keys, cache.values))

    def state(self, tensors: Tensors) -> State:
        """One cache for each layer."""
        return tuple(KeysValues(keys, values) for keys, values in pairs(tensors))


def pairs(tensors: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Neighbours in twos."""
    return list(zip(tensors[::2], tensors[1::2], strict=True))


# --- recurrence -------------------------------------------------------------------------------------------------------


def real_positions(source: Tensor, lengths: Tensor) -> Tensor:
    """[src_len, batch] bool."""
    return torch.arange(source.size(1), device=source.device)[:, None] < lengths


Cell = Callable[[Tensor, Tensors, Tensor, Tensor], Tensors]
"""(gates from the input, state, recurrent matrix, its bias) -> new state; its first tensor is the output."""


def run(cell: Cell, start: Tensors, inputs: Tensor, real: Tensor, weights: Tensors) -> tuple[Tensors, Tensor]:
    """The state after the last position of each row, and the outputs [src_len, batch, dim], zero at padding."""

    def move(*tensors: Tensor) -> list[Tensor]:
        state, (gates, here), own = tensors[: len(start)], tensors[len(start) : -2], tensors[-2:]
        moved = zip(cell(gates, state, *own), state, strict=True)
        new = [torch.where(here[:, None], after, before) for after, before in moved]
        return [*new, new[0] * here[:, None]]

    # Not public yet, hence here. Its wrapper ``scan`` compiles the step at every call: seconds, and the same program.
    from torch._higher_order_ops.scan import scan_op

    *end, outputs = scan_op(move, list(start), [inputs, real], additional_inputs=weights)
    return tuple(end), outputs


def lstm_layer(lstm: nn.LSTM, layer: int, x: Tensor, real: Tensor) -> tuple[Tensor, Tensors]:
    """One layer over x [src_len, batch, dim]: its outputs, and (hidden, cell) [batch, dim] after each row's last token.

    i, f, o = sigmoid(...), g = tanh(...) of W x + U h + b; c' = f c + i g; h' = o tanh(c'): torch.nn.LSTM.
    """

    def cell(gates: Tensor, state: Tensors, weight: Tensor, bias: Tensor) -> Tensors:
        hidden, memory = state
        i, f, g, o = (gates + nn.functional.linear(hidden, weight, bias)).chunk(4, dim=1)
        memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
        return o.sigmoid() * memory.tanh(), memory

    inputs, weights = from_inputs(lstm, f"l{layer}", x)
    zeros = x.new_zeros(x.size(1), lstm.hidden_size)
    end, outputs = run(cell, (zeros, zeros.clone()), inputs, real, weights)
    return outputs, end


def gru_direction(gru: nn.GRU, backward: bool, x: Tensor, real: Tensor) -> Tensor:
    """One direction over x [src_len, batch, dim]: its outputs.

    r, z = sigmoid(...), n = tanh(W x + b + r (U h + b')), h' = (1 - z) n + z h: torch.nn.GRU.
    """

    def cell(gates: Tensor, state: Tensors, weight: Tensor, bias: Tensor) -> Tensors:
        (hidden,) = state
        r, z, n = gates.chunk(3, dim=1)
        recurrent_r, recurrent_z, recurrent_n = nn.functional.linear(hidden, weight, bias).chunk(3, dim=1)
        candidate = torch.tanh(n + (r + recurrent_r).sigmoid() * recurrent_n)
        return (candidate + (z + recurrent_z).sigmoid() * (hidden - candidate),)

    if backward:
        x, real = x.flip(0), real.flip(0)
    inputs, weights = from_inputs(gru, "l0_reverse" if backward else "l0", x)
    _, outputs = run(cell, (x.new_zeros(x.size(1), gru.hidden_size),), inputs, real, weights)
    return outputs.flip(0) if backward else outputs


def from_inputs(network: nn.RNNBase, suffix: str, x: Tensor) -> tuple[Tensor, Tensors]:
    """What the inputs add to all gates of a layer, at every position, and its recurrent matrix and bias."""
    weight, bias, own_weight, own_bias = (
        getattr(network, f"{name}_{suffix}") for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    )
    return nn.functional.linear(x, weight, bias), (own_weight, own_bias)
