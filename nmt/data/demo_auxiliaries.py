"""Auxiliary and modal verbs of the demo grammar, in both languages."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.data.demo_morphology import GermanVerb, english_verb, german_verb

HABEN = german_verb("haben hat hatte gehabt +du=hast")
SEIN = german_verb("sein ist war gewesen +sein +ich=bin +du=bist +wir=sind")
WERDEN = german_verb("werden wird wurde worden +sein +du=wirst")

BE_VERB = english_verb("be was been")
BE_FORMS = {"present": ("am", "is", "are"), "past": ("was", "was", "were")}
"""*be* by tense: with I, with the third person singular, with all others."""


@dataclass(frozen=True, slots=True)
class Modal:
    """An English modal (its words for the third person singular, and for the rest) and its German verb."""

    singular: tuple[str, ...]
    other: tuple[str, ...]
    german: GermanVerb
    past_form: bool  # of the German verb
    past: bool  # in meaning

    @property
    def inverts(self) -> bool:
        """Whether a question or a negation needs no *do* (and we use it there)."""
        return self.singular[0] in ("can", "could", "should", "must", "may", "would")


_KOENNEN = german_verb("können kann konnte gekonnt +du=kannst")
_MUESSEN = german_verb("müssen muss musste gemusst +du=musst")
_SOLLEN = german_verb("sollen soll sollte gesollt +du=sollst")
_WOLLEN = german_verb("wollen will wollte gewollt +du=willst")
_DUERFEN = german_verb("dürfen darf durfte gedurft +du=darfst")
_MOEGEN = german_verb("mögen mag möchte gemocht +du=magst")
MODALS = {
    "can": Modal(("can",), ("can",), _KOENNEN, False, False),
    "must": Modal(("must",), ("must",), _MUESSEN, False, False),
    "should": Modal(("should",), ("should",), _SOLLEN, True, False),
    "may": Modal(("may",), ("may",), _DUERFEN, False, False),
    "want": Modal(("wants", "to"), ("want", "to"), _WOLLEN, False, False),
    "would like": Modal(("would", "like", "to"), ("would", "like", "to"), _MOEGEN, True, False),
    "could": Modal(("could",), ("could",), _KOENNEN, True, True),
    "wanted": Modal(("wanted", "to"), ("wanted", "to"), _WOLLEN, True, True),
    "had": Modal(("had", "to"), ("had", "to"), _MUESSEN, True, True),
    "allowed": Modal(("was", "allowed", "to"), ("were", "allowed", "to"), _DUERFEN, True, True),
}
