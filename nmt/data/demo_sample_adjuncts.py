"""Draws adverbs, times, places and circumstances of the demo grammar."""

from __future__ import annotations

from nmt.data.demo_clause import Adjunct, Clause
from nmt.data.demo_lexicon import (
    CIRCUMSTANCES,
    CITIES,
    FREQUENCY,
    MANNER,
    MONTHS,
    PUNCTUAL,
    SEASONS,
    SO_FAR,
    WEEKDAYS,
    adjectives_for,
    times,
)
from nmt.data.demo_morphology import Noun, english_number, german_number
from nmt.data.demo_nouns import nouns_of, places
from nmt.data.demo_sample_nouns import NounSampler
from nmt.data.demo_syntax import Fixed, Name, NounPhrase, Phrase, adverb

SURFACES = {
    "on": (("on",), "auf"),
    "in": (("in",), "in"),
    "under": (("under",), "unter"),
    "next to": (("next", "to"), "neben"),
    "behind": (("behind",), "hinter"),
    "in front of": (("in", "front", "of"), "vor"),
}


class AdjunctSampler(NounSampler):
    """Draws what says when, where, how and why."""

    def adjunct(self, kind: str, clause: Clause, spare: int) -> Adjunct | None:
        """An adjunct, or None where the one drawn does not fit the verb."""
        draw = self.draw
        assert clause.frame is not None
        if kind == "time":
            return Adjunct("time", self._time(clause))
        if kind == "frequency":
            if clause.progressive or clause.negated:
                return None
            if clause.tense == "perfect":
                return Adjunct("so far", adverb(*draw.pick(SO_FAR)))
            return Adjunct("frequency", adverb(*draw.pick(FREQUENCY)))
        if kind == "manner":
            english, german = draw.pick(MANNER[clause.frame.manner])
            if english in PUNCTUAL:
                return None if clause.progressive or clause.passive else Adjunct("point", adverb(english, german))
            return Adjunct("manner", adverb(english, german))
        if kind == "place":
            return Adjunct("place", self.where(clause, extra=1 if spare > 4 and draw.chance(0.4) else 0))
        if kind == "company":
            noun = draw.pick(nouns_of("kin"))
            number = "pl" if draw.chance(0.3) and "single" not in noun.tags else "sg"
            phrase = NounPhrase(noun, number, self.owner(clause))
            return Adjunct("company", Phrase(("with",), "mit", "dat", phrase))
        words, german, *nouns = draw.pick(CIRCUMSTANCES)
        english_noun, german_noun, gender, genitive = draw.pick(nouns)
        noun = Noun(english_noun, english_noun, german_noun, "m" if gender == "p" else gender, genitive, german_noun,
                    False, frozenset())  # fmt: skip
        return Adjunct("circumstance", Phrase(words, german, "gen", NounPhrase(noun, "pl" if gender == "p" else "sg")))

    def where(self, clause: Clause, extra: int = 0, classes: str = "place") -> Phrase:
        draw = self.draw
        if draw.chance(0.15):
            english, german = draw.pick(CITIES)
            return Phrase(("in",), "in", "dat", Name(english, "n", german))
        noun = draw.pick(nouns_of(classes))
        english, german, *_ = places()[noun]
        return Phrase((english,), german, "dat", self._place_phrase(noun, extra))

    def _place_phrase(self, noun: Noun, extra: int, depth: int = 9) -> NounPhrase:
        draw = self.draw
        determiner = draw.weighted((("the", 0.8), ("a", 0.12), ("this", 0.08)))
        phrase = NounPhrase(noun, "sg", determiner)
        if extra and adjectives_for(noun):
            phrase.adjectives = (draw.pick(adjectives_for(noun)),)
        if extra >= 5 and depth < self.max_depth:
            phrase.relative = self.relative(noun, "sg", extra - 1, "present", depth + 1)
        return phrase

    def _time(self, clause: Clause) -> Fixed:
        draw = self.draw
        tense = "now" if clause.progressive and clause.tense == "present" else clause.tense
        if clause.modal and tense == "present" and draw.chance(0.5):
            tense = "future"
        kind = draw.random()
        if tense == "now" or kind < 0.5:
            return Fixed(*draw.pick(times(tense)), "time")
        if kind < 0.62:
            day, german = draw.pick(WEEKDAYS)
            if tense == "present":
                return Fixed(("on", day + "s"), (german.lower() + "s",), ((0, 0), (1, 0)), "time")
            return Fixed(("on", day), ("am", german), ((0, 0), (1, 1)), "time")
        if kind < 0.74:
            name, german = draw.pick(MONTHS if draw.chance(0.6) else SEASONS)
            return Fixed(("in", name), ("im", german), ((0, 0), (1, 1)), "time")
        if kind < 0.84:
            hour = draw.between(2, 12)
            words = ("at", english_number(hour)[0], "o'clock")
            return Fixed(words, ("um", german_number(hour), "Uhr"), ((0, 0), (1, 1), (2, 2)), "time")
        if tense == "past" and kind < 0.92:
            year = str(draw.between(1950, 2023))
            return Fixed(("in", year), ("im", "Jahr", year), ((0, 0), (0, 1), (1, 2)), "time")
        if tense in ("past", "future"):
            number = draw.between(2, 12)
            english, german = draw.pick(
                (("days", "Tagen"), ("weeks", "Wochen"), ("months", "Monaten"), ("years", "Jahren"))
            )
            count = english_number(number)[0]
            if tense == "past":
                words = (count, english, "ago")
                return Fixed(words, ("vor", german_number(number), german), ((2, 0), (0, 1), (1, 2)), "time")
            return Fixed(
                ("in", count, english), ("in", german_number(number), german), ((0, 0), (1, 1), (2, 2)), "time"
            )
        return Fixed(*draw.pick(times(tense)), "time")

    def whereto(self, clause: Clause, extra: int, depth: int) -> Phrase | Fixed:
        draw = self.draw
        choice = draw.random()
        if choice < 0.1:
            return Fixed(("home",), ("nach", "Hause"), ((0, 0), (0, 1)), "adverb")
        if choice < 0.2:
            english, german = draw.pick(CITIES)
            return Phrase(("to",), "nach", "dat", Name(english, "n", german))
        noun = draw.pick(nouns_of("place"))
        _, _, english, german, case = places()[noun]
        if english == "into" and clause.frame is not None and clause.frame.english.base not in ("go", "run", "drive"):
            english = "to"
        return Phrase((english,), german, case, self._place_phrase(noun, extra, depth))
