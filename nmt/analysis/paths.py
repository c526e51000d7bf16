"""How far a source word is from a target word: found in a model's own gradients, not typed in.

**Path length.** Every time that information is handed from one position to another, it is multiplied by a small number
e: the state that a recurrent layer passes to its next position, the state that the encoder passes to the decoder, and
the context that an attention reads. A path with k such hand-overs then contributes to the gradient in proportion to
e^k, so that for small e the shortest path decides, and

    k = log(|g(e)| / |g(e / 2)|) / log 2                     with g the gradient of the features at target position t
                                                             with respect to the word vector at position j

is the number of hand-overs on it. Whatever stays at its position (a layer, a residual connection, a gate) is none.

**Serial depth.** The longest chain of operations of which each needs the one before, from the word vectors to the
features of the last target position: the part of a training pass that no number of processors shortens. It is counted
in nodes of torch's graph; what tells is by how many it grows for one more token a side.

Both are traced on tiny random models whose recurrent layers are run one position at a time (as one kernel they have no
inside); a test holds those against the kernels.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from nmt.config import ModelConfig
from nmt.models import build
from nmt.models.attention import AdditiveAttention, CrossAttention, Reading, SelfAttention
from nmt.models.bahdanau import Bahdanau, SplitGRUCell
from nmt.models.base import TranslationModel
from nmt.tokens import BOS, EOS

FIRST_WORD = 4  # the ids before are reserved
SMALL = 1e-3
"""e; with e^10 still a float32 number, and e against 1 small enough for a whole k."""


class Paths(NamedTuple):
    """Hand-overs on the shortest path; None where there is no path at all."""

    from_source: list[list[int | None]]  # [target position][source position], words, without EOS
    from_target: list[list[int | None]]  # [target position][earlier target word]


class Depth(NamedTuple):
    """Operations in a row of a training pass over pairs of these lengths."""

    short: int  # tokens a side
    long: int
    of_short: int  # operations
    of_long: int

    @property
    def per_token(self) -> float:
        """By how many it grows for one more token a side."""
        return (self.of_long - self.of_short) / (self.long - self.short)


def trace_paths(config: ModelConfig, source_words: int, target_words: int, seed: int = 1) -> Paths:
    """Path lengths to every target position from every source word and every target word before it.

    Args:
        config: of the model; its sizes do not matter, small ones are faster.
        source_words: without EOS.
        target_words: without BOS; position t is where word t is chosen, so it has read the t - 1 words before it.
        seed: of the model's parameters.

    Raises:
        ValueError: more positions than float32 has room for.
    """
    if source_words + target_words > 10:
        raise ValueError(f"{source_words} + {target_words} words: expected at most 10 in all, e^k becomes too small")
    words = list(range(FIRST_WORD, FIRST_WORD + source_words + target_words))
    source, target = words[:source_words], words[source_words:]
    model = _tiny(config, max(words) + 1, seed)
    at_large, at_small = (_gradients(model, source, target, scale) for scale in (SMALL, SMALL / 2))
    orders = [
        [_order(large, small) for large, small in zip(*rows, strict=True)]
        for rows in zip(at_large, at_small, strict=True)
    ]
    return Paths([row[:source_words] for row in orders], [row[source_words:-1] for row in orders])


def trace_depth(config: ModelConfig, short: int = 4, long: int = 8, seed: int = 1) -> Depth:
    """Serial depth of a training pass over pairs of ``short`` and of ``long`` tokens a side."""
    model = _tiny(config, FIRST_WORD + long, seed)
    depths = []
    for length in (short, long):
        words = list(range(FIRST_WORD, FIRST_WORD + length))
        with handing_over(model, 1.0):
            depths.append(_longest_chain(_features(model, words, words)[-1].sum()))
    return Depth(short, long, *depths)


def _tiny(config: ModelConfig, vocabulary: int, seed: int) -> TranslationModel:
    return build(config, vocabulary, vocabulary, seed).eval()  # without dropout


def _features(model: TranslationModel, source: list[int], target: list[int]) -> Tensor:
    """[target positions, dim] of one pair, teacher-forced; the last target word is predicted, never read."""
    ids = torch.tensor([[*source, EOS]])
    features: Tensor = model(ids, torch.tensor([ids.size(1)]), torch.tensor([[BOS, *target[:-1]]]))
    return features[0]


def _gradients(model: TranslationModel, source: list[int], target: list[int], scale: float) -> list[list[float]]:
    """Size of the gradient at every target position by every word, those of the source first."""
    tables = [model.embeddings.source_table, model.embeddings.target_table]  # type: ignore[union-attr]
    tables = [tables[1] if tables[0] is None else tables[0], tables[1]]
    rows = []
    with handing_over(model, scale):
        features = _features(model, source, target)
        weights = torch.linspace(0.5, 1.5, features.size(1))  # no sum that a normalisation would make constant
        for position in features:
            of_tables = torch.autograd.grad(position @ weights, cast(Any, tables), retain_graph=True, allow_unused=True)
            sides = zip(of_tables, (source, target), strict=True)
            rows.append([0.0 if grad is None else _norm(grad[word]) for grad, words in sides for word in words])
    return rows


def _norm(row: Tensor) -> float:
    return float(row.double().norm())


def _order(large: float, small: float) -> int | None:
    """k of e^k.

    Raises:
        AssertionError: not a whole number: the gradients are no powers of e.
    """
    if large == 0.0 or small == 0.0:
        return None
    order = math.log2(large / small)
    assert abs(order - round(order)) < 0.1, f"path length {order}: expected a whole number"
    return round(order)


def _longest_chain(result: Tensor) -> int:
    """Nodes of the graph on the longest way from a result down to a parameter."""
    lengths: dict[Any, int] = {}
    stack: list[Any] = [result.grad_fn]
    while stack:
        node = stack[-1]
        below = [each for each, _ in node.next_functions if each is not None]
        missing = [each for each in below if each not in lengths]
        if missing:
            stack += missing
        else:
            lengths[stack.pop()] = 1 + max((lengths[each] for each in below), default=0)
    return lengths[result.grad_fn]


# --- hand-overs -------------------------------------------------------------------------------------------------------


@contextmanager
def handing_over(model: TranslationModel, scale: float) -> Iterator[None]:
    """While inside, whatever this model hands from one position to another is multiplied by ``scale``."""
    handles, replaced = [], []
    for module in model.modules():
        match module:
            case nn.LSTM() | nn.GRU():
                module.forward = _stepped(module, scale)  # type: ignore[method-assign]
                replaced.append(module)
            case SplitGRUCell():  # its new state goes to the next position
                handles.append(module.register_forward_hook(lambda _module, _inputs, state: state * scale))
            case AdditiveAttention():
                handles.append(module.register_forward_hook(_scaled_reading(scale)))
            case SelfAttention() | CrossAttention():  # the context, before its output layer
                handles.append(module.output.register_forward_pre_hook(lambda _module, inputs: (inputs[0] * scale,)))
    if isinstance(model, Bahdanau):  # the encoder's last state goes to the decoder
        handles.append(model.initial.register_forward_pre_hook(lambda _module, inputs: (inputs[0] * scale,)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for module in replaced:
            del module.forward  # the class has its own


def _scaled_reading(scale: float) -> Callable[[nn.Module, Any, Reading], Reading]:
    return lambda _module, _inputs, reading: reading._replace(context=reading.context * scale)


def _stepped(module: nn.LSTM | nn.GRU, scale: float) -> Callable[..., Any]:
    """The layer's ``forward``, one position at a time, its state times ``scale`` before each but a first without one.

    For one sentence, packed or not; for several layers in one direction or one layer in both.
    """
    whole: Callable[..., Any] = type(module).forward

    def run(inputs: Any, state: Any = None) -> Any:
        packed = isinstance(inputs, PackedSequence)
        x = pad_packed_sequence(inputs, batch_first=True)[0] if packed else inputs  # [1, length, dim]
        positions = list(x.split(1, dim=1))
        if not module.bidirectional:
            output, state = _sweep(positions, state)
        else:
            assert module.num_layers == 1, "a second layer would read both directions of the first"
            there, _ = _sweep(positions, None)
            back, _ = _sweep(positions[::-1], None)
            halves = [each.chunk(2, dim=-1)[half] for half, each in enumerate((there, back.flip(1)))]
            output = torch.cat(halves, dim=-1)
        lengths = torch.tensor([output.size(1)])
        return pack_padded_sequence(output, lengths, batch_first=True) if packed else output, state

    def _sweep(positions: list[Tensor], state: Any) -> tuple[Tensor, Any]:
        outputs = []
        for x in positions:
            if state is not None:
                state = state * scale if isinstance(state, Tensor) else tuple(part * scale for part in state)
            with torch.backends.mkldnn.flags(enabled=False, allow_tf32=None):  # whose kernels are one node each
                output, state = whole(module, x, state)
            outputs.append(output)
        return torch.cat(outputs, dim=1), state

    return run
