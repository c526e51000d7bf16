"""Draws sentences of the demo grammar: which verbs, nouns and modifiers, within a budget of English words.

A budget is a wish: a sentence comes out a few words shorter or longer, and ``demo.generate`` draws again when it is too
far off. All randomness comes from ``Draw``, which uses nothing but ``random.Random.random``: the one method whose
sequence Python promises to keep.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from nmt.data.demo_clause import Argument, Attached, Clause
from nmt.data.demo_draw import Draw
from nmt.data.demo_frames import PLAIN, fits_person, frames_of, frames_with_argument
from nmt.data.demo_lexicon import adjectives_for
from nmt.data.demo_morphology import Noun
from nmt.data.demo_nouns import nouns_of
from nmt.data.demo_sample_clauses import Wanted, heavy, mentionable, personal
from nmt.data.demo_sample_relatives import RelativeSampler
from nmt.data.demo_sentence import Sentence
from nmt.data.demo_syntax import Interrogative, Nominal, NounPhrase, Pronoun, adverb
from nmt.data.demo_verbs import Frame

# Chances of a second, third ... main clause, from so many words on.
_PARTS = ((10, 0.3), (20, 0.5), (32, 0.7), (45, 0.6))


class Sampler(RelativeSampler):
    """Draws sentences."""

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self.used: list[str] = []  # conjunctions of the sentence so far

    def sentence(self, budget: int) -> Sentence:
        """A sentence of about ``budget`` English words."""
        draw = self.draw
        self.used = []
        if budget <= 18 and draw.chance(0.12 if budget > 3 else 0.05):
            return self._question(budget)
        setting = draw.weighted((("present", 0.42), ("past", 0.45), ("future", 0.13)))
        parts = 1 + sum(budget >= least and draw.chance(chance) for least, chance in _PARTS)
        connectors: list[tuple[str, str]] = []
        while len(connectors) < parts - 1:
            connector = self._connector(setting, parts)
            if connector[0] not in ("so", "for") or connector not in connectors:
                connectors.append(connector)
        clauses = []
        left = budget - (parts - 1)
        for index in range(parts):
            share = left if index == parts - 1 else max(4, int(left / (parts - index) * (0.7 + 0.6 * draw.random())))
            left = max(4, left - share)
            opened = index > 0 and connectors[index - 1][1] == "deshalb"  # its front field is taken
            clauses.append(self.clause(share, Wanted(setting), may_lead=index == 0, may_front=not opened))
        return Sentence(clauses, connectors)

    def _connector(self, setting: str, parts: int) -> tuple[str, str]:
        options = [(("and", "und"), 0.45), (("but", "aber"), 0.3), (("so", "deshalb"), 0.15), (("for", "denn"), 0.06)]
        if setting != "past" and parts == 2:
            options.append((("or", "oder"), 0.05))
        return self.draw.weighted(options)

    def _question(self, budget: int) -> Sentence:
        draw = self.draw
        setting = draw.weighted((("present", 0.5), ("past", 0.35), ("future", 0.15)))
        kind = draw.weighted((("yes/no", 0.45), ("adverb", 0.25), ("subject", 0.12), ("object", 0.18)))
        if kind == "subject" or budget <= 3:
            who = Interrogative(animate=True)
            clause = self.clause(budget, Wanted(setting), subject=who)
            clause.moved = who
            return Sentence([clause], question=True)
        clause = self.clause(budget - (kind != "yes/no"), Wanted(setting, question=True))
        if kind == "adverb":
            self._ask_adverb(clause)
        elif kind == "object":
            self._ask_object(clause)
        return Sentence([clause], question=True)

    def _ask_adverb(self, clause: Clause) -> None:
        word = self.draw.pick((("why", "warum"), ("when", "wann"), ("where", "wo"), ("why", "warum")))
        located = clause.frame is None or clause.frame.placed or clause.frame.flags & {"only", "state"}
        if word[0] == "where" and located:
            word = ("why", "warum")
        asked = {"when": "time", "where": "place", "why": "circumstance"}[word[0]]
        clause.adjuncts = [adjunct for adjunct in clause.adjuncts if adjunct.kind != asked]
        clause.moved = adverb(*word, role="interrogative")

    def _ask_object(self, clause: Clause) -> None:
        """Turns the accusative object, if there is one, into *what* or *which ...*."""
        draw = self.draw
        for argument in clause.arguments:
            complement = argument.complement
            if complement.kind != "object" or complement.case != "acc" or complement.english:
                continue
            if fits_person(complement.nouns) or draw.chance(0.4):
                noun = draw.pick(nouns_of(complement.nouns))
                number = "sg" if noun.tags & {"mass", "single"} or draw.chance(0.7) else "pl"
                asked: NounPhrase | Interrogative = NounPhrase(noun, number, "which")
            else:
                asked = Interrogative(animate=False)
            clause.moved = argument.filler = asked

    # ---- clauses with what is attached to them

    def clause(
        self,
        budget: int,
        wanted: Wanted,
        subject: Nominal | None = None,
        may_lead: bool = False,
        may_front: bool = False,
    ) -> Clause:
        """A clause of about ``budget`` English words.

        ``may_lead`` allows a subordinate clause before it, ``may_front`` an adjunct in the front field.
        """
        draw = self.draw
        place, reserve = "", 0
        divisible = wanted.depth < self.max_depth and not wanted.question and wanted.finite and budget >= 9
        if divisible and draw.chance(0.55 if budget >= 14 else 0.35):
            reserve = draw.between(5, max(5, min(budget - 4, budget * 2 // 3)))
            place = "leading" if may_lead and draw.chance(0.4) else "second" if draw.chance(0.25) else "trailing"
        clause = self.core(budget - reserve, wanted, subject)
        if place == "leading":
            clause.leading = self._attached(clause, reserve, wanted, leading=True)
        elif may_front and draw.chance(0.4):
            options = [adjunct for adjunct in clause.adjuncts if adjunct.kind in ("time", "place", "circumstance")]
            if options:
                clause.fronted = draw.pick(options)
        if heavy(clause):
            times = [adjunct for adjunct in clause.adjuncts if adjunct.kind == "time"]
            if times and may_front and not clause.leading:
                clause.fronted = times[0]
            elif times:
                clause.adjuncts.remove(times[0])
        if place == "second":
            clause.second = self._second(clause, reserve - 1, wanted)
        elif place == "trailing":
            host, depth = clause, wanted
            for argument in clause.arguments:
                if isinstance(argument.filler, Attached):  # it goes to the clause inside
                    host, depth = argument.filler.clause, replace(wanted, depth=wanted.depth + 1)
                    host = host if argument.filler.mode == "finite" and host.second is None else clause
            if host.trailing is None and (host is not clause or not any(_attaches(a) for a in clause.arguments)):
                host.trailing = self._attached(host, reserve, depth, leading=False)
        return clause

    def _second(self, clause: Clause, budget: int, wanted: Wanted) -> tuple[str, str, Clause] | None:
        """*opens the box and gives it to her*: a second verb with the subject of the first."""
        draw, frame, subject = self.draw, clause.frame, clause.subject
        simple = clause.tense in ("present", "past") and not (clause.modal or clause.progressive or clause.negated)
        if not simple or frame is None or frame.clausal or clause.passive or not personal(subject) or heavy(clause):
            return None
        wanted = Wanted(clause.tense, wanted.depth + 1, simple=True, event=True)
        for argument in clause.arguments:
            thing = argument.filler
            if argument.complement.case != "acc" or not isinstance(thing, NounPhrase) or not mentionable(thing):
                continue
            uses = [use for use in _uses(thing.noun) if use[0] is not frame]
            if uses and draw.chance(0.7):
                other, index = draw.pick(uses)
                it = Pronoun(3, thing.number, thing.gender, thing=True)
                return "and", "und", self.with_frame(other, budget, wanted, subject, given={index: it})
        other = draw.pick([other for other in _doings() if other is not frame])
        return "and", "und", self.with_frame(other, budget, wanted, subject)

    def _attached(self, host: Clause, budget: int, wanted: Wanted, *, leading: bool) -> Attached:
        draw = self.draw
        past = wanted.setting == "past" or host.tense in ("past", "pluperfect")
        setting = "past" if past else "present"
        if not leading and draw.chance(0.25):
            found = self._about_object(host, budget, setting)
            if found:
                return found
        dynamic = host.frame is not None and "state" not in host.frame.flags
        if not host.passive and personal(host.subject) and dynamic and draw.chance(0.22):
            return self._purpose(host, budget, wanted, leading)
        english, german = self._conjunction(host, past, leading, dynamic and wanted.depth == 0)
        tense = setting
        if english == "after" or (english in ("because", "although") and draw.chance(0.2)):
            tense = "pluperfect" if past else "perfect"
        event = english not in ("because", "although")
        inner = Wanted(setting, wanted.depth + 1, tense=tense, event=event)
        clause = self.clause(max(3, budget - 1), inner)
        return Attached((english,), german, clause, english_comma=english == "although" and not leading)

    def _conjunction(self, host: Clause, past: bool, leading: bool, dynamic: bool) -> tuple[str, str]:
        options = [(("because", "weil"), 0.3), (("although", "obwohl"), 0.2)]
        if host.tense in ("present", "past", "future") and dynamic:
            options += [(("before", "bevor"), 0.12), (("after", "nachdem"), 0.14), (("while", "während"), 0.1)]
            if not (past and any(adjunct.kind == "frequency" for adjunct in host.adjuncts)):  # usually, when: wenn
                options.append((("when", "als" if past else "wenn"), 0.16))
            if not leading:
                options.append((("until", "bis"), 0.05))
            if not past:
                options.append((("if", "wenn"), 0.18))
        fresh = [option for option in options if option[0][0] not in self.used]
        english, german = self.draw.weighted(fresh or options)
        self.used.append(english)
        return english, german

    def _purpose(self, host: Clause, budget: int, wanted: Wanted, leading: bool) -> Attached:
        kind = "um" if leading else self.draw.weighted((("um", 0.6), ("ohne", 0.25), ("anstatt", 0.15)))
        words = {"um": ("in", "order"), "ohne": ("without",), "anstatt": ("instead", "of")}[kind]
        inner = Wanted(wanted.setting, wanted.depth + 1, finite=False)
        clause = self.clause(max(3, budget - len(words)), inner, subject=host.subject)
        return Attached(words, kind, clause, "infinitive" if kind == "um" else "gerund")

    def _about_object(self, host: Clause, budget: int, setting: str) -> Attached | None:
        """*because it is cheap*, said of the host's object: a pronoun with the gender of its German noun."""
        if host.negated or host.passive:
            return None
        for argument in host.arguments:
            phrase = argument.filler
            if argument.complement.case != "acc" or not isinstance(phrase, NounPhrase) or not mentionable(phrase):
                continue
            options = [other for other in adjectives_for(phrase.noun) if other not in phrase.adjectives]
            if options:
                it = Pronoun(3, phrase.number, phrase.gender, thing=True)
                clause = Clause(it, predicate=self.predicate(self.draw.pick(options), budget > 5), tense=setting)
                english, german = self.draw.pick((("because", "weil"), ("although", "obwohl")))
                return Attached((english,), german, clause, english_comma=english == "although")
        return None


def _attaches(argument: Argument) -> bool:
    return isinstance(argument.filler, Attached)


@cache
def _doings() -> tuple[Frame, ...]:
    """What a person can do."""
    found = (frame for group in PLAIN for frame in frames_of(group))
    unfit = {"state", "accident"}
    return tuple(f for f in found if fits_person(f.subject) and not f.ambiguous and not f.flags & unfit)


@cache
def _uses(noun: Noun) -> tuple[tuple[Frame, int], ...]:
    """What a person can do with a thing: verbs and the index of the object."""
    doings = set(map(id, _doings()))
    return tuple(use for use in frames_with_argument(noun) if id(use[0]) in doings and use[0].kinds[use[1]] == "object")
