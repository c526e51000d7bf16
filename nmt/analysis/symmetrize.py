"""Two directions of alignment as one: Och and Ney (2003), section 4; grow-diag and its ends as Koehn et al. (2005).

Each direction links every word of its target to one word at most. What both found is surer than what one of them found,
so that the intersection is precise, the union complete, and growing from the one towards the other lies between.
"""

from collections.abc import Callable, Iterable

Link = tuple[int, int]
"""(source word, target word), counted from 0."""

Links = frozenset[Link]

_AROUND = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def union(forward: Links, backward: Links) -> Links:
    """What either direction found."""
    return forward | backward


def intersection(forward: Links, backward: Links) -> Links:
    """What both directions found."""
    return forward & backward


def grow_diag(forward: Links, backward: Links) -> Links:
    """The intersection, and again and again what touches it (also at a corner), is in the union, and links a word that
    had no link on its side. Target words are gone through in order and, for each, source words."""
    either = forward | backward
    grown = set(forward & backward)
    sources, targets = {source for source, _ in grown}, {target for _, target in grown}
    added = True
    while added:
        added = False
        for source, target in sorted(grown, key=lambda link: link[::-1]):
            for down, right in _AROUND:
                new = (source + down, target + right)
                if new in either and new not in grown and (new[0] not in sources or new[1] not in targets):
                    grown.add(new)
                    sources.add(new[0])
                    targets.add(new[1])
                    added = True
    return frozenset(grown)


def grow_diag_final(forward: Links, backward: Links) -> Links:
    """:func:`grow_diag`, then of each direction what links a word that has no link yet on its side."""
    return _final(grow_diag(forward, backward), (forward, backward))


def _final(grown: Links, directions: Iterable[Links]) -> Links:
    found = set(grown)
    sources, targets = {source for source, _ in found}, {target for _, target in found}
    for links in directions:
        for source, target in sorted(links, key=lambda link: link[::-1]):
            if source not in sources or target not in targets:
                found.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(found)


METHODS: dict[str, Callable[[Links, Links], Links]] = {
    "union": union,
    "intersection": intersection,
    "grow-diag": grow_diag,
    "grow-diag-final": grow_diag_final,
}
