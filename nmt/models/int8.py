"""Models whose matrix products run in eight bits: for translating on a CPU.

A linear layer y = W x + b becomes integer products of two roundings,

    W_o ~ w_o Q_o,   Q_o in {-63 ... 63},    w_o = max_i |W_oi| / 63      one scale for each output, made once
    x   ~ s q,       q   in {-127 ... 127},  s   = max_i |x_i| / 127      one scale for each row, made at every call

whose sums are exact in 32 bits. A row's result depends on that row alone: unlike bfloat16, whose rounding follows the
shape of the product, it is the same whatever the batch around it. Weights have seven bits because processors without
VNNI add two products of eight bits in sixteen, which would overflow with eight.

Word vectors, normalisation, softmax, the attention's own products and the recurrent encoders stay in float32.
"""

import copy

import torch
from torch import Tensor, nn

from nmt.models.base import TranslationModel
from nmt.models.embedding import Embeddings

WEIGHT_LEVELS = 63
INPUT_LEVELS = 127
ZERO = 128  # of the inputs, which the kernel takes as unsigned numbers
SMALLEST = 1 << 17
"""Layers with fewer weights stay in float32: scaling the rows would cost more than it saves."""


def quantized(model: TranslationModel) -> TranslationModel:
    """A copy of the model for translating on a CPU, every linear layer and the output layer in eight bits."""
    model = copy.deepcopy(model).eval().requires_grad_(False)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and child.weight.numel() >= SMALLEST:
                setattr(parent, name, Int8Linear(child.weight, child.bias))
            elif isinstance(child, nn.LSTM) and name == "decoder":
                setattr(parent, name, Int8LSTM(child))
        if isinstance(parent, Embeddings):
            parent.output = Int8Linear(parent.output_matrix, parent.output_bias)
    return model


class Int8Linear(nn.Module):
    """A linear layer, rounded as the module says; takes and gives float32.

    Args:
        weight: [outputs, inputs] float32.
        bias: [outputs], or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        scales = (weight.detach().abs().amax(dim=1) / WEIGHT_LEVELS).clamp(min=torch.finfo(torch.float32).tiny)
        self.levels = (weight.detach() / scales[:, None]).round().to(torch.int8)  # Q_o: [outputs, inputs]
        self.scales = scales  # w_o: [outputs]
        self.bias = None if bias is None else bias.detach().clone()
        self._pack()

    def _pack(self) -> None:
        """The weights as the kernel wants them."""
        self.packed = torch.ops.onednn.qlinear_prepack(self.levels, None)
        # The kernel takes unsigned inputs, q + 128; what that adds to every sum is the same for all rows.
        self.excess = self.levels.float().sum(dim=1) * self.scales * (-ZERO / INPUT_LEVELS)
        self.zeros = torch.zeros(self.scales.size(0), dtype=torch.int32)

    def forward(self, x: Tensor) -> Tensor:
        """[..., inputs] -> [..., outputs]."""
        rows = x.reshape(-1, x.size(-1))
        largest = rows.abs().amax(dim=1, keepdim=True).clamp_(min=torch.finfo(torch.float32).tiny)  # [rows, 1]
        # Conversion to integers cuts off: with a half before it, it rounds.
        levels = (rows * (INPUT_LEVELS / largest)).add_(ZERO + 0.5).to(torch.uint8)  # [rows, inputs]
        y: Tensor = torch.ops.onednn.qlinear_pointwise(  # sum_i q_i Q_oi w_o / 127: only the row's scale is missing
            levels, 1 / INPUT_LEVELS, 0, self.packed, self.scales, self.zeros, self.excess, 1.0, 0, torch.float32,
            "none", [], "",
        )  # fmt: skip
        y.mul_(largest)
        if self.bias is not None:
            y.add_(self.bias)
        return y.view(*x.shape[:-1], -1)

    def outputs(self, chosen: Tensor) -> "Int8Linear":
        """The same layer with some of its outputs, [chosen] int64."""
        part = copy.copy(self)
        part.levels, part.scales = self.levels[chosen], self.scales[chosen]
        part.bias = None if self.bias is None else self.bias[chosen]
        part._pack()
        return part


class Int8LSTM(nn.Module):
    """An LSTM as ``torch.nn.LSTM`` with ``batch_first``, its products in eight bits; the state stays in float32.

    Args:
        lstm: one direction, any number of layers.
    """

    def __init__(self, lstm: nn.LSTM) -> None:
        super().__init__()
        self.inputs, self.recurrences = nn.ModuleList(), nn.ModuleList()
        for layer in range(lstm.num_layers):
            weights = (getattr(lstm, f"{kind}_{part}_l{layer}") for part in ("ih", "hh") for kind in ("weight", "bias"))
            of_input, input_bias, of_state, state_bias = weights
            self.inputs.append(Int8Linear(of_input, input_bias + state_bias))
            self.recurrences.append(Int8Linear(of_state, None))

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x [batch, length, dim], hidden and cell [layers, batch, dim]: outputs [batch, length, dim], last state."""
        last_hidden, last_cell = [], []
        for inputs, recurrence, hidden, cell in zip(self.inputs, self.recurrences, *state, strict=True):
            outputs = []
            for gates in inputs(x).unbind(dim=1):
                i, f, g, o = (gates + recurrence(hidden)).chunk(4, dim=-1)  # torch's order
                cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
                hidden = torch.sigmoid(o) * torch.tanh(cell)
                outputs.append(hidden)
            x = torch.stack(outputs, dim=1)
            last_hidden.append(hidden)
            last_cell.append(cell)
        return x, (torch.stack(last_hidden), torch.stack(last_cell))
