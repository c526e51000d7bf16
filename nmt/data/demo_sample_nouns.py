"""Draws noun phrases, names, pronouns and lists of the demo grammar."""

from __future__ import annotations

from nmt.data.demo_clause import Clause
from nmt.data.demo_draw import Draw
from nmt.data.demo_lexicon import CITIES, MEN, WOMEN, adjective_rank, adjectives_for
from nmt.data.demo_morphology import POSSESSIVES, Noun
from nmt.data.demo_nouns import nouns_of
from nmt.data.demo_syntax import Coordination, Name, Nominal, NounPhrase, Phrase, PossessorKey, Pronoun, pronoun_key

_WORN = "coat+hat+jacket+scarf+sweater+suitcase+bag+umbrella+dog+basket"


class NounSampler:
    """Draws nominals. ``depth`` counts the clauses around them, ``extra`` is a wish of words beyond the first two."""

    max_depth = 3

    def __init__(self, draw: Draw) -> None:
        self.draw = draw

    def nominal(
        self,
        classes: str,
        extra: int,
        setting: str,
        depth: int,
        *,
        subject: bool = False,
        host: Clause | None = None,
        plain: bool = False,
        allow_pronoun: bool = True,
    ) -> Nominal:
        """A noun phrase, name, pronoun or list of one of the classes, of about 2 + ``extra`` words."""
        draw = self.draw
        extra = max(0, extra)
        if "person" in classes.split("+") and extra < 3 and draw.chance(0.55 if extra == 0 else 0.2):
            if allow_pronoun and draw.chance(0.5):
                pronoun = self._pronoun(subject, host)
                if pronoun:
                    return pronoun
            if extra < 2 or draw.chance(0.5):
                return self._name()
            names = self._name(), self._name()
            return Coordination(names) if extra == 2 and names[0].text != names[1].text else names[0]
        first = self._noun_phrase(classes, 0, setting, depth, host, plain, subject)
        if extra >= 3 and not plain and draw.chance(0.15):
            members: list[Nominal] = [first, self._noun_phrase(classes, 0, setting, depth, host, plain, subject)]
            if extra >= 6 and draw.chance(0.6):
                members.append(self._noun_phrase(classes, extra - 5, setting, depth, host, plain, subject))
            either = not subject and draw.chance(0.2)
            nouns = [member.noun for member in members if isinstance(member, NounPhrase)]
            if len(set(nouns)) == len(nouns):
                return Coordination(tuple(members), ("or", "oder") if either else ("and", "und"))
        self.decorate(first, extra, setting, depth)
        return first

    def _name(self) -> Name:
        return Name(self.draw.pick(MEN), "m") if self.draw.chance(0.5) else Name(self.draw.pick(WOMEN), "f")

    def _pronoun(self, subject: bool, host: Clause | None) -> Pronoun | None:
        options = (((3, "sg", "m"), 0.27), ((3, "sg", "f"), 0.27), ((3, "pl", ""), 0.16), ((1, "sg", ""), 0.14))
        person, number, gender = self.draw.weighted((*options, ((1, "pl", ""), 0.1), ((2, "sg", ""), 0.06)))
        if person == 2 and (subject is False or self.draw.chance(0.5)):
            person, number, gender = 3, "sg", "f"
        if host is not None and person == host.subject.person != 3:
            return None
        if host is not None and person == 1 and host.subject.person == 1:
            return None
        return Pronoun(person, number, gender)

    def _noun_phrase(
        self, classes: str, extra: int, setting: str, depth: int, host: Clause | None, plain: bool, subject: bool
    ) -> NounPhrase:
        draw = self.draw
        noun = draw.pick(nouns_of(classes))
        if host is not None and isinstance(host.subject, NounPhrase) and noun is host.subject.noun:
            noun = draw.pick(nouns_of(classes))
        if "mass" in noun.tags:
            bare = draw.chance(0.55) and not (host and host.frame and host.frame.manner == "never")
            phrase = NounPhrase(noun, "sg", "bare" if bare else "the")
        else:
            number = "pl" if draw.chance(0.27) and "single" not in noun.tags else "sg"
            phrase = NounPhrase(noun, number, self._determiner(noun, number, host, plain, subject))
            if phrase.determiner == "number":
                self._number(phrase)
        if extra:
            self.decorate(phrase, extra, setting, depth)
        return phrase

    def _determiner(
        self, noun: Noun, number: str, host: Clause | None, plain: bool, subject: bool
    ) -> str | PossessorKey | Name:
        draw = self.draw
        options: list[tuple[str, float]] = [("the", 0.5), ("this", 0.07)]
        options.append(("bare" if number == "pl" and not subject else "a" if number == "sg" else "the", 0.25))
        if number == "pl" and not plain:
            options += [("number", 0.2), ("many", 0.05), ("some", 0.05), ("several", 0.04)]
        if number == "sg" and subject and "person" in noun.tags:
            options.append(("every", 0.02))
        if "kin" in noun.tags:
            options = [("the", 0.2), ("possessive", 0.65), ("name", 0.15)]
        elif noun.tags & {"owned", "pet"} and host is not None:
            options += [("possessive", 0.3), ("name", 0.06)]
        choice = draw.weighted(options)
        if choice == "possessive":
            return (
                self.owner(host) if host else draw.pick(((1, "sg", ""), (3, "sg", "m"), (3, "sg", "f"), (1, "pl", "")))
            )
        if choice == "name":
            return self._name()
        return choice

    def owner(self, clause: Clause) -> PossessorKey:
        """Who a possessive points to: mostly the subject."""
        subject = clause.subject
        person = isinstance(subject, Pronoun | Name) or (
            isinstance(subject, NounPhrase) and bool(subject.noun.tags & {"person"}) and subject.noun.gender != "n"
        )
        key = pronoun_key(subject) if person else (1, "sg", "")
        return key if key in POSSESSIVES and self.draw.chance(0.85) else self.draw.pick(((1, "sg", ""), (1, "pl", "")))

    def _number(self, phrase: NounPhrase) -> None:
        draw = self.draw
        phrase.determiner = "bare" if draw.chance(0.85) else "the"
        if draw.chance(0.75):
            phrase.numeral = str(draw.between(2, 12))
        elif draw.chance(0.5):
            phrase.numeral = str(draw.between(13, 99))
        else:
            value = draw.between(13, 999)
            if value % 100 == 1:
                value += 1
            phrase.numeral, phrase.spelled = str(value), draw.chance(0.3)

    def decorate(self, phrase: NounPhrase, extra: int, setting: str, depth: int) -> None:
        """Adjectives, a modifier or a relative clause for ``extra`` words."""
        draw, noun = self.draw, phrase.noun
        unique = "kin" in noun.tags and not isinstance(phrase.determiner, str)  # not: my mother who sleeps
        if extra >= 4 and not unique and depth < self.max_depth and draw.chance(0.8):
            if draw.chance(0.3):
                phrase.adjectives = self._adjectives(noun, 1)
                extra -= 1
            phrase.relative = self.relative(noun, phrase.number, extra, setting, depth + 2)
            if phrase.relative.frame is None:
                phrase.adjectives = ()  # not: the old man who is old
            return
        if extra >= 3 and draw.chance(0.75) and self._modify(phrase):
            extra -= 3
        if extra:
            phrase.adjectives = self._adjectives(noun, min(extra, 2))

    def _adjectives(self, noun: Noun, count: int) -> tuple:  # type: ignore[type-arg]
        options = adjectives_for(noun)
        if not options:
            return ()
        first = self.draw.pick(options)
        second = self.draw.pick(options)
        ranks = adjective_rank(first), adjective_rank(second)
        if count == 1 or ranks[0] == ranks[1]:
            return (first,)
        return (first, second) if ranks[0] < ranks[1] else (second, first)

    def _modify(self, phrase: NounPhrase) -> bool:
        draw, noun = self.draw, phrase.noun
        if noun.tags & {"person"} and not noun.tags & {"kin"}:
            if draw.chance(0.6):
                worn = NounPhrase(draw.pick(nouns_of(_WORN)), phrase.number, "the")
                if draw.chance(0.4):
                    worn.determiner = "a" if phrase.number == "sg" else "bare"
                if draw.chance(0.4):
                    worn.adjectives = self._adjectives(worn.noun, 1)
                phrase.modifiers.append(Phrase(("with",), "mit", "dat", worn))
            else:
                english, german = draw.pick(CITIES)
                phrase.modifiers.append(Phrase(("from",), "aus", "dat", Name(english, "n", german)))
            return True
        if noun.tags & {"kin", "owned", "pet", "topic", "building"} and phrase.determiner == "the":
            owner = NounPhrase(draw.pick(nouns_of("person")), "pl" if draw.chance(0.2) else "sg")
            phrase.modifiers.append(Phrase(("of",), "", "gen", owner))
            return True
        if noun.tags & {"text", "lecture", "film"}:
            topic = NounPhrase(draw.pick(nouns_of("topic+animal")), "sg", "a" if draw.chance(0.4) else "the")
            phrase.modifiers.append(Phrase(("about",), "über", "acc", topic))
            return True
        return False

    def relative(self, noun: Noun, number: str, budget: int, setting: str, depth: int) -> Clause:
        """A relative clause on a noun; the sampler of clauses knows how."""
        raise NotImplementedError
