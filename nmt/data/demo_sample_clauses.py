"""Draws single clauses of the demo grammar: verb, tense, complements, and how a budget of words is spent on them."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.data.demo_auxiliaries import MODALS
from nmt.data.demo_clause import Adjunct, Argument, Attached, Clause
from nmt.data.demo_frames import GROUPS, fitting_frames
from nmt.data.demo_lexicon import CITIES, COUNTRIES, adjective_rank, adjectives, adjectives_for
from nmt.data.demo_morphology import Adjective, Noun
from nmt.data.demo_nouns import nouns_of
from nmt.data.demo_sample_adjuncts import SURFACES, AdjunctSampler
from nmt.data.demo_syntax import (
    Coordination,
    Fixed,
    Name,
    Nominal,
    NounPhrase,
    Phrase,
    Pronoun,
    adverb,
)
from nmt.data.demo_verbs import Complement, Frame


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the surroundings of a clause ask of it."""

    setting: str  # present, past or future: the time that is spoken of
    depth: int = 0  # clauses around it
    finite: bool = True
    question: bool = False
    tense: str = ""  # when it is fixed
    simple: bool = False  # no auxiliary and no negation: the second of two verbs
    event: bool = False  # something that happens: no state, no negation, no progressive


NOBODY = Pronoun(3, "sg", "m")  # until the subject is drawn
_LEAST = {"object": 2, "prepositional": 3, "dir": 3, "loc": 3, "put": 3, "on": 3, "inf": 3, "inf_object": 3, "that": 4}
_COST = {"time": 2, "frequency": 1, "manner": 1, "circumstance": 3, "company": 3, "place": 3}
_BEFORE_OBJECT = ("frequency", "so far", "point")
# What an adjunct rules out, itself included.
_EXCLUDED = {
    "time": {"time", "frequency"},
    "frequency": {"time", "frequency", "manner", "company", "circumstance"},
    "manner": {"manner", "frequency"},
    "place": {"place", "company", "circumstance"},
    "company": {"place", "company", "circumstance", "frequency"},
    "circumstance": {"place", "company", "circumstance", "frequency"},
}
_MODALS_OF = {
    (past, question): tuple(
        name for name, modal in MODALS.items() if modal.past == past and (modal.inverts or not question)
    )
    for past in (False, True)
    for question in (False, True)
}


def _subject_key(subject: Nominal | None) -> Noun | str:
    if subject is None:
        return ""
    return subject.noun if isinstance(subject, NounPhrase) else "person"


def _given(complement: Complement, filler: Nominal) -> Argument:
    if complement.kind == "prepositional":
        before = (complement.english,) if complement.english else ()
        return Argument(complement, Phrase(before, complement.german, complement.case, filler))
    return Argument(complement, filler)


def _passivise(clause: Clause) -> None:
    """Turns subject and object round, if both are nouns or names."""
    agent, patient = clause.subject, clause.arguments[0].filler
    if isinstance(patient, NounPhrase) and isinstance(agent, NounPhrase | Name | Coordination):
        clause.subject, clause.arguments = patient, []
        clause.adjuncts.append(Adjunct("agent", Phrase(("by",), "von", "dat", agent)))
    else:
        clause.passive = False


def _tell_past_from_present(clause: Clause) -> None:
    """*they put* may be both: its past becomes *they were putting*, of a state *they did not cost*."""
    frame, subject = clause.frame, clause.subject
    assert frame is not None
    auxiliary = clause.modal or clause.passive or clause.progressive or clause.negated
    third = subject.person == 3 and subject.number == "sg"
    if clause.finite and clause.tense == "past" and frame.ambiguous and not auxiliary and not third:
        clause.negated = "stative" in frame.flags
        clause.progressive = not clause.negated


def heavy(clause: Clause) -> bool:
    """Whether a complement contains a relative clause."""
    return any(map(_heavy, (argument.filler for argument in clause.arguments)))


def _heavy(filler: object) -> bool:
    if isinstance(filler, Phrase):
        return _heavy(filler.nominal)
    if isinstance(filler, Coordination):
        return any(map(_heavy, filler.members))
    return isinstance(filler, NounPhrase) and filler.relative is not None


def personal(subject: Nominal) -> bool:
    """Whether a subject certainly is one or more persons."""
    if isinstance(subject, Coordination):
        return all(personal(member) for member in subject.members)
    if isinstance(subject, NounPhrase):
        return "person" in subject.noun.tags
    return isinstance(subject, Name) or (isinstance(subject, Pronoun) and not subject.thing)


def mentionable(phrase: NounPhrase) -> bool:
    """Whether *it* or *them* can take a noun phrase up without doubt."""
    return not phrase.noun.tags & {"person", "mass", "animal"} and phrase.determiner not in ("every", "whose", "which")


PERSON_ADJECTIVES = tuple(adjective for adjective in adjectives() if "person" in adjective.tags)


class ClauseSampler(AdjunctSampler):
    """Draws a clause without what is attached to it."""

    def core(self, budget: int, wanted: Wanted, subject: Nominal | None) -> Clause:
        """A clause without what is attached to it, of a verb that fits the subject and the budget."""
        draw = self.draw
        while True:
            group = draw.weighted(GROUPS)
            inner = wanted.depth < self.max_depth and wanted.finite
            if inner and budget >= 9 and draw.chance(0.22):
                group = "clausal"
            elif inner and budget >= 7 and draw.chance(0.12):
                group = "infinitive"
            elif wanted.finite and not wanted.event and draw.chance(0.12):
                return self._copula(budget, wanted, subject)
            elif budget <= 3 and draw.chance(0.6):
                group = "intransitive"
            unfit = "accident" if not wanted.finite else "state" if wanted.event else ""
            options = fitting_frames(group, _subject_key(subject), unfit)
            if options:
                return self.with_frame(draw.pick(options), budget, wanted, subject)

    def with_frame(
        self,
        frame: Frame,
        budget: int,
        wanted: Wanted,
        subject: Nominal | None = None,
        given: dict[int, Nominal] | None = None,
    ) -> Clause:
        """A clause of a given verb; ``given`` are fillers by complement index."""
        given = given or {}
        clause = Clause(subject or NOBODY, frame=frame, finite=wanted.finite)
        self._tense(clause, wanted, budget, open_subject=subject is None and not given)
        own_subject = subject is None and wanted.finite
        spare = budget - self._least(clause, own_subject, given)
        if frame.clausal:
            shares, kinds = [0] * len(frame.complements) + [spare], list[str]()
            if own_subject and spare > 2 and self.draw.chance(0.5):
                shares[0], shares[-1] = 1, spare - 1
        else:
            shares, kinds = self._spend(clause, spare, wanted, own_subject, given)
        if subject is None:
            clause.subject = self.nominal(frame.subject, shares[0], wanted.setting, wanted.depth, subject=True)
        _tell_past_from_present(clause)
        for kind in kinds:
            adjunct = self.adjunct(kind, clause, spare)
            if adjunct:
                clause.adjuncts.append(adjunct)
        for index, complement in enumerate(frame.complements):
            filler = given.get(index)
            if filler is None:
                extra = max(0, shares[index + 1])
                if index < len(frame.complements) - 1:
                    extra = min(extra, 3)  # no relative clause before another complement
                clause.arguments.append(self._argument(clause, complement, extra, wanted))
            else:
                clause.arguments.append(_given(complement, filler))
        if clause.passive:
            _passivise(clause)
            _tell_past_from_present(clause)
        if heavy(clause):
            # What follows a relative clause would seem to belong to it.
            kept = _BEFORE_OBJECT if wanted.depth else (*_BEFORE_OBJECT, "time")  # a main clause may front its time
            clause.adjuncts = [adjunct for adjunct in clause.adjuncts if adjunct.kind in kept]
        return clause

    def _least(self, clause: Clause, own_subject: bool, given: dict[int, Nominal]) -> int:
        """The fewest English words that the clause can have, roughly."""
        assert clause.frame is not None
        words = 1 + own_subject + clause.progressive + clause.passive + len(clause.frame.english.particles)
        words += 2 * (clause.negated and not clause.modal) + (clause.tense not in ("present", "past"))
        words += len(MODALS[clause.modal].other) if clause.modal else 0
        for index, complement in enumerate(clause.frame.complements):
            words += 0 if index in given else _LEAST.get(complement.kind, 2)
        return words

    def _tense(self, clause: Clause, wanted: Wanted, budget: int, open_subject: bool) -> None:
        """Tense, modal, progressive, passive and negation."""
        draw, frame = self.draw, clause.frame
        assert frame is not None
        state = "state" in frame.flags
        tense = wanted.tense or wanted.setting
        if state and tense in ("perfect", "pluperfect"):
            tense = "past" if tense == "pluperfect" else "present"
        clause.tense = tense if wanted.finite else "present"
        if not wanted.finite or wanted.simple:
            return
        clause.negated = "negative" in frame.flags and not wanted.question
        if wanted.tense in ("perfect", "pluperfect", "future"):
            return
        if tense == "present" and not state and draw.chance(0.25):
            clause.tense = "perfect"
        elif tense == "future":
            pass
        elif budget >= 4 and not state and draw.chance(0.2):
            options = _MODALS_OF[tense == "past", wanted.question]
            clause.modal = draw.pick(options)
        elif budget >= 4 and not wanted.event and "stative" not in frame.flags and draw.chance(0.4):
            clause.progressive = True
        elif tense == "past" and budget >= 7 and "passive" in frame.flags and draw.chance(0.35):
            clause.passive = open_subject and not wanted.question
        negatable = not clause.passive and (not clause.modal or clause.modal in ("can", "could", "should"))
        if budget >= 4 and negatable and not wanted.question and not wanted.event and draw.chance(0.13):
            clause.negated = True

    def _spend(
        self, clause: Clause, spare: int, wanted: Wanted, own_subject: bool, given: dict[int, Nominal]
    ) -> tuple[list[int], list[str]]:
        """Spends ``spare`` words: shares of subject and complements, and kinds of adjuncts."""
        draw, frame = self.draw, clause.frame
        assert frame is not None
        shares = [0] * (len(frame.complements) + 1)
        slots = [0] if own_subject else []
        for index, complement in enumerate(frame.complements, start=1):
            if index - 1 not in given and complement.kind not in ("price", "instrument"):
                slots.append(index)
        options = self._adjunct_kinds(clause, wanted)
        if slots:
            options.append(("noun", 1.0))
        kinds: list[str] = []
        while spare > 0 and options:
            kind = draw.weighted(options)
            if kind == "noun":
                most = min(spare, 14)
                words = 1 if draw.chance(0.5) and spare < 8 else draw.between(1, most)
                slot = draw.pick(slots)
                if slot == 0 and given:  # a relative clause's own subject stays light: no clause inside
                    words = min(words, 2)
                    slots = slots[1:]
                shares[slot] += words
                spare -= words
                if not slots:
                    options = [option for option in options if option[0] != "noun"]
                continue
            if _COST[kind] > spare:
                options = [option for option in options if option[0] != kind]
                continue
            kinds.append(kind)
            spare -= _COST[kind]
            excluded = _EXCLUDED[kind]
            options = [option for option in options if option[0] not in excluded]
        return shares, kinds

    def _adjunct_kinds(self, clause: Clause, wanted: Wanted) -> list[tuple[str, float]]:
        """What adjuncts the clause may have, with weights."""
        frame = clause.frame
        assert frame is not None
        state, simple = "state" in frame.flags, not (clause.modal or clause.progressive or clause.passive)
        options: list[tuple[str, float]] = []
        if wanted.finite and not state and clause.tense in ("present", "past", "future"):
            options.append(("time", 0.5))
        if wanted.finite and not (state or clause.negated or wanted.event) and simple:
            options += [("frequency", 0.3)] * (clause.tense in ("present", "past", "perfect"))
        if clause.negated or frame.flags & {"only", "state"}:
            return options
        if frame.manner:
            options.append(("manner", 0.35))
        options.append(("circumstance", 0.1))
        active = not frame.flags & {"stative", "accident"}
        if active and frame.subject == "person" and not clause.passive and len(frame.complements) < 2:
            options.append(("company", 0.15))
        if not frame.placed:
            options.append(("place", 0.5 if active else 0.1))
        return options

    def _argument(self, clause: Clause, complement: Complement, extra: int, wanted: Wanted) -> Argument:
        draw, kind, setting, depth = self.draw, complement.kind, wanted.setting, wanted.depth
        plain = clause.negated
        if kind in ("that", "whether", "inf", "inf_object"):
            return Argument(complement, self._clausal(clause, kind, extra, wanted))
        if kind == "object":
            other = any(
                argument.complement.case == "dat" and not argument.complement.english for argument in clause.arguments
            )
            filler = self.nominal(
                complement.nouns, extra, setting, depth, host=clause, plain=plain, allow_pronoun=not other
            )
            if complement.case == "dat" and isinstance(filler, NounPhrase) and filler.determiner == "bare":
                filler.determiner = "the"
            if complement.case == "dat" and plain and isinstance(filler, NounPhrase) and filler.negatable:
                filler.determiner = "the"  # not: keinem König
            return Argument(complement, filler)
        if kind == "prepositional":
            filler = self.nominal(complement.nouns, extra, setting, depth, host=clause, plain=True)
            before = (complement.english,) if complement.english else ()
            return Argument(complement, Phrase(before, complement.german, complement.case, filler))
        if kind == "dir":
            return Argument(complement, self.whereto(clause, extra, depth))
        if kind == "loc":
            assert clause.frame is not None
            classes = "forest+island+mountain" if clause.frame.german.infinitive == "leben" else "place"
            if clause.frame.german.infinitive == "wohnen":
                classes = "house+castle+hotel+village+city+island+farm"
            return Argument(complement, self.where(clause, extra, classes))
        if kind == "city":
            english, german = draw.pick((*CITIES, *COUNTRIES))
            return Argument(complement, Phrase(("to",), "nach", "dat", Name(english, "n", german)))
        if kind == "price":
            price = str(draw.between(2, 999))
            return Argument(complement, Fixed((price, "euros"), (price, "Euro"), ((0, 0), (1, 1)), "noun"))
        if kind == "instrument":
            noun = draw.pick(nouns_of("instrument"))
            return Argument(complement, Fixed(("the", noun.english), (noun.german,), ((0, 0), (1, 0)), "noun"))
        case = "acc" if kind == "put" else "dat"
        noun = draw.pick(nouns_of("on"))
        name = draw.weighted((("on", 0.6), ("under", 0.15), ("next to", 0.15), ("behind", 0.1)))
        if draw.chance(0.3):
            noun, name = draw.pick(nouns_of("in")), "in"
        english_words, preposition = SURFACES[name]
        phrase = NounPhrase(noun, "sg", draw.weighted((("the", 0.8), ("a", 0.1), ("this", 0.1))))
        self.decorate(phrase, extra, setting, depth)
        return Argument(complement, Phrase(english_words, preposition, case, phrase))

    def _clausal(self, clause: Clause, kind: str, extra: int, wanted: Wanted) -> Attached:
        """The clause that a verb of saying or wanting takes."""
        depth = wanted.depth + 1
        if kind in ("that", "whether"):
            past = clause.tense in ("past", "pluperfect")
            tense = wanted.setting if wanted.setting != "future" else "present"
            if self.draw.chance(0.25):
                tense = "pluperfect" if past else "perfect"
            inner = Wanted("past" if wanted.setting == "past" else "present", depth, tense=tense)
            said = self.clause(extra + 4, inner)
            return Attached((kind,), "dass" if kind == "that" else "ob", said)
        doer = clause.arguments[0].filler if kind == "inf_object" else clause.subject
        done = self.clause(extra + 3, Wanted(wanted.setting, depth, finite=False), subject=doer)  # type: ignore[arg-type]
        return Attached((), "", done, "infinitive")

    def clause(self, budget: int, wanted: Wanted, subject: Nominal | None = None) -> Clause:
        """A clause with what is attached to it; the sampler of sentences knows how."""
        raise NotImplementedError

    def predicate(self, adjective: Adjective, degree: bool) -> Fixed:
        english, german = adjective.english, adjective.german
        if degree and adjective_rank(adjective) < 3:
            more = self.draw.pick((("very", "sehr"), ("too", "zu"), ("quite", "ziemlich")))
            return Fixed((more[0], english), (more[1], german), ((0, 0), (1, 1)), "predicate")
        return adverb(english, german, "predicate")

    def _copula(self, budget: int, wanted: Wanted, subject: Nominal | None) -> Clause:
        """*is* or *was* and an adjective."""
        draw = self.draw
        tense = "past" if wanted.setting == "past" else "present"
        degree = budget > 4 and draw.chance(0.4)
        options = PERSON_ADJECTIVES
        while subject is None:
            classes = draw.weighted((("person", 0.6), ("thing", 0.25), ("place", 0.1), ("animal", 0.1)))
            subject = self.nominal(classes, budget - 4 - degree, wanted.setting, wanted.depth, subject=True)
            if isinstance(subject, NounPhrase):
                if subject.determiner == "a":
                    subject.determiner = "the"
                subject.adjectives = ()
            if (isinstance(subject, Coordination) and classes != "person") or (
                isinstance(subject, NounPhrase) and not adjectives_for(subject.noun)
            ):
                subject = None
        if isinstance(subject, NounPhrase):
            options = adjectives_for(subject.noun) or options
        clause = Clause(subject, predicate=self.predicate(draw.pick(options), degree), tense=tense)
        clause.negated = not degree and draw.chance(0.12)
        return clause
