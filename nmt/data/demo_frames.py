"""Which verbs of the demo grammar fit which nouns."""

from __future__ import annotations

from functools import cache

from nmt.data.demo_morphology import Noun
from nmt.data.demo_verbs import Frame, frames

GROUPS = (("accusative", 0.4), ("dative", 0.14), ("prepositional", 0.13), ("placed", 0.17), ("intransitive", 0.16))
PLAIN = tuple(name for name, _ in GROUPS)


def _group(frame: Frame) -> str:
    kinds = {complement.kind for complement in frame.complements}
    if kinds & {"that", "whether"}:
        return "clausal"
    if kinds & {"inf", "inf_object"}:
        return "infinitive"
    if kinds & {"dir", "loc", "put", "on", "city"}:
        return "placed"
    if "prepositional" in kinds:
        return "prepositional"
    if not kinds:
        return "intransitive"
    return "dative" if any(complement.case == "dat" for complement in frame.complements) else "accusative"


@cache
def frames_of(group: str) -> tuple[Frame, ...]:
    return tuple(frame for frame in frames() if _group(frame) == group)


@cache
def fitting_frames(group: str, subject: Noun | str, unfit: str) -> tuple[Frame, ...]:
    """The frames of a group for a subject (a noun, "person", or "" for any), without flagged ones.

    ``unfit`` "state" leaves out states, "accident" also what nobody plans.
    """
    found = frames_of(group)
    if subject:
        name = subject if isinstance(subject, str) else ""
        found = tuple(f for f in found if (fits_person(f.subject) if name else fits(subject, f.subject)))  # type: ignore[arg-type]
    flags = {"": set(), "state": {"state", "negative"}, "accident": {"state", "negative", "accident"}}[unfit]
    return tuple(frame for frame in found if not frame.flags & flags)


def fits(noun: Noun, classes: str) -> bool:
    return any(name in noun.tags for name in classes.split("+"))


def fits_person(classes: str) -> bool:
    """Whether persons (who, names, pronouns) are among the classes."""
    return "person" in classes.split("+")


@cache
def frames_with_subject(noun: Noun) -> tuple[Frame, ...]:
    plain = (frame for group in PLAIN for frame in frames_of(group))
    return tuple(frame for frame in plain if fits(noun, frame.subject))


@cache
def frames_with_argument(noun: Noun) -> tuple[tuple[Frame, int], ...]:
    """Frames and the index of the complement that a noun can be."""
    return tuple(
        (frame, index)
        for group in ("accusative", "dative", "prepositional")
        for frame in frames_of(group)
        for index, complement in enumerate(frame.complements)
        if complement.nouns and fits(noun, complement.nouns) and not ("mass" in noun.tags and index)
    )
