"""The rate of a model's own matrix products, by themselves: what its training speed is measured against.

For every product of the forward pass with a parameter, x W with x [rows, inner] and W [inner, columns], the three that
training makes of it are timed on random numbers, in the model's number format and with the process's threads:

    forward   x W         [rows, inner] x [inner, columns]
    backward  dy W^T      [rows, columns] x [columns, inner]
    backward  x^T dy      [inner, rows] x [rows, columns], over the rows of all steps of a recurrence at once

at the sizes of a mean batch of the measurement, padding included; the output layer in chunks of as many rows as the
loss projects at once. The rate is (operations of all of them in a step) / (the time that all of them take in a step):
every size weighs as much as the model makes use of it.

Attention's products of two activations are left out of the probe: at a head's sizes they are slow, and one that is
measured against them looks better than it is. Their operations are counted in what the model achieves.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.analysis.cost import Product
from nmt.device import Precision, synchronize
from nmt.training.loss import CHUNK_ROWS

SECONDS = 0.02
"""Each product is repeated for at least this long."""


class Shape(NamedTuple):
    """One product of two matrices, [rows, inner] x [inner, columns]."""

    rows: int
    inner: int
    columns: int

    @property
    def operations(self) -> int:
        """A multiply-add counts as two."""
        return 2 * self.rows * self.inner * self.columns


class Probe:
    """Times the products of a training step.

    Args:
        products: of a forward pass (:func:`nmt.analysis.cost.products`).
        device: where to multiply.
        precision: number format of all factors.
    """

    def __init__(self, products: Iterable[Product], device: torch.device, precision: Precision) -> None:
        self.device = device
        self.dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        self.forward: defaultdict[Shape, float] = defaultdict(float)  # how often in a step
        self.weight_gradient: defaultdict[Shape, float] = defaultdict(float)
        for product in products:
            if product.weight:
                self._add(product)

    def _add(self, product: Product) -> None:
        _, rows, inner, columns, times, _ = product
        if product.part == "output":
            chunk = min(rows, CHUNK_ROWS)
            self.forward[Shape(chunk, inner, columns)] += rows / chunk
            self.weight_gradient[Shape(inner, chunk, columns)] += rows / chunk
        else:
            self.forward[Shape(rows, inner, columns)] += times
            self.weight_gradient[Shape(inner, rows * times, columns)] += 1

    @torch.no_grad()
    def rate(self) -> float:
        """Operations per second, measured now. Takes a second or so."""
        seconds = operations = 0.0
        for shape, times in self.forward.items():
            x, gradient = self._random(shape.rows, shape.inner), self._random(shape.rows, shape.columns)
            weight = self._random(shape.columns, shape.inner)  # as torch keeps it
            seconds += times * (self._time(F.linear, x, weight) + self._time(torch.mm, gradient, weight))
            operations += times * 2 * shape.operations
        for shape, times in self.weight_gradient.items():
            x, gradient = self._random(shape.inner, shape.rows), self._random(shape.inner, shape.columns)
            seconds += times * self._time(torch.mm, gradient.T, x)
            operations += times * shape.operations
        return operations / seconds

    def _random(self, rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, device=self.device).to(self.dtype)

    def _time(self, multiply: Callable[[Tensor, Tensor], Tensor], one: Tensor, other: Tensor) -> float:
        """Seconds of one product, the mean over several."""
        multiply(one, other)  # kernels are chosen and loaded
        seconds = self._run(1, multiply, one, other)
        if seconds >= SECONDS:
            return seconds
        repeats = min(1000, math.ceil(SECONDS / max(seconds, 1e-9)))
        return self._run(repeats, multiply, one, other) / repeats

    def _run(self, repeats: int, multiply: Callable[[Tensor, Tensor], Tensor], one: Tensor, other: Tensor) -> float:
        synchronize(self.device)
        started = time.perf_counter()
        for _ in range(repeats):
            multiply(one, other)
        synchronize(self.device)
        return time.perf_counter() - started
