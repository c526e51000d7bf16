"""Files that can only be read from their beginnings (JSON Lines and their like): one after the other, or mixed.

A sample of such files is taken from all of them in turn and through a buffer: it holds their first pairs only, mixed.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Record = dict[str, Any]

BUFFER = 10_000
"""Records among which the next one is drawn."""


def one_after_the_other(streams: Sequence[Callable[[], Iterator[Record]]]) -> Iterator[tuple[Record, int]]:
    """Records of every stream, and the place of the stream."""
    for place, opened in enumerate(streams):
        for record in opened():
            yield record, place


def in_shuffled_order(streams: Sequence[Callable[[], Iterator[Record]]], seed: int) -> Iterator[tuple[Record, int]]:
    """Records of all streams, taken from each in turn, each drawn from a buffer that holds :data:`BUFFER` of them."""
    draw = random.Random(seed)
    buffer: list[tuple[Record, int]] = []
    for item in _in_turn(streams):
        if len(buffer) < BUFFER:
            buffer.append(item)
            continue
        place = int(draw.random() * len(buffer))
        yield buffer[place]
        buffer[place] = item
    keys = [draw.random() for _ in buffer]
    for place in sorted(range(len(buffer)), key=keys.__getitem__):
        yield buffer[place]


def _in_turn(streams: Sequence[Callable[[], Iterator[Record]]]) -> Iterator[tuple[Record, int]]:
    running = {place: opened() for place, opened in enumerate(streams)}
    while running:
        for place in list(running):
            record = next(running[place], None)
            if record is None:
                del running[place]
            else:
                yield record, place
