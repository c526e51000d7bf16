"""Clauses of the demo grammar: verb groups, word order and subordination in both languages.

German clauses follow the field model: *front field - finite verb - middle field - right bracket - end field*. The order
inside the middle field is fixed: reflexive (before a noun; after a pronoun), subject, accusative pronoun, dative
pronoun, time, circumstance, agent, definite objects, frequency (before an accusative that has a dative before it or a
relative clause in it), company, ``nicht``, manner, place, indefinite objects, and last what belongs closest to the
verb: prepositional objects, places that the verb asks for, predicates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nmt.data.demo_auxiliaries import BE_FORMS, BE_VERB, HABEN, MODALS, SEIN, WERDEN
from nmt.data.demo_morphology import REFLEXIVE, EnglishVerb, GermanVerb
from nmt.data.demo_syntax import Constituent, Coordination, English, German, Nominal, NounPhrase, Phrase, Source, Word
from nmt.data.demo_verbs import Complement, Frame


@dataclass(eq=False, slots=True)
class Argument:
    complement: Complement
    filler: Nominal | Phrase | Constituent | Attached


@dataclass(eq=False, slots=True)
class Adjunct:
    kind: str  # time frequency circumstance agent company manner place
    filler: Constituent


@dataclass(eq=False, slots=True)
class Attached:
    """A subordinate clause with its introduction; ``mode`` is finite, infinitive or gerund (in English)."""

    conjunction: tuple[str, ...]
    german_conjunction: str
    clause: Clause
    mode: str = "finite"
    english_comma: bool = False
    _sources: tuple[Source, ...] = ()

    def english(self) -> English:
        self._sources = tuple(Source(word) for word in self.conjunction)
        comma: English = [None] if self.english_comma else []
        return [*comma, *self._sources, *self.clause.english("statement" if self.mode == "finite" else self.mode)]

    def german(self) -> German:
        words: German = [None]
        if self.german_conjunction:
            words.append(Word(self.german_conjunction, self._sources, "subjunction", clause=self.clause))
        return [*words, *self.clause.german("final" if self.mode == "finite" else "infinitive"), None]


@dataclass(eq=False, slots=True)
class Clause:
    """A clause of either a verb frame or the copula with a ``predicate``.

    ``moved`` is the subject, an argument's filler or an adjunct's filler that opens the clause in both languages (a
    relative or interrogative phrase); ``fronted`` is the adjunct that opens a main clause.
    """

    subject: Nominal
    frame: Frame | None = None
    predicate: Nominal | Constituent | None = None
    tense: str = "present"  # present past perfect pluperfect future
    modal: str = ""
    progressive: bool = False
    negated: bool = False
    passive: bool = False
    finite: bool = True
    arguments: list[Argument] = field(default_factory=list)
    adjuncts: list[Adjunct] = field(default_factory=list)
    fronted: Adjunct | None = None
    moved: object = None
    leading: Attached | None = None
    trailing: Attached | None = None
    second: tuple[str, str, Clause] | None = None  # conjunction in both languages, and what shares the subject
    realised: str = ""  # how german() was called: main question final infinitive
    elliptic: bool = False  # without its subject, which the clause before it has
    _finite: tuple[Source, ...] = ()
    _main: tuple[Source, ...] = ()
    _particles: tuple[Source, ...] = ()
    _to: Source | None = None
    _been: Source | None = None
    _not: Source | None = None
    _second: Source | None = None
    _prepositions: dict[int, Source] = field(default_factory=dict)

    # ---- English

    def english(self, mode: str = "statement") -> English:
        """``mode``: statement, question, infinitive, gerund, or gap (no subject)."""
        words: English = []
        if self.leading:
            words += [*self.leading.english(), None]
        if self.fronted:
            phrase = self.fronted.filler.english()
            words += phrase
            if len(phrase) >= 3:
                words.append(None)
        moved_subject = self.moved is self.subject
        if self.moved is not None:
            words += self._english_moved()
        subject = self.subject.english(True) if mode in ("statement", "question") and not moved_subject else []
        group = self._english_verbs(mode, inverted=mode == "question" and not moved_subject)
        if mode == "question" and not moved_subject:
            words += [group[0], *subject, *group[1:]]
        else:
            words += [*subject, *group]
        words += self._english_rest()
        if self.second:
            self._second = Source(self.second[0])
            words += [self._second, *self.second[2].english("gap")]
        if self.trailing:
            words += self.trailing.english()
        return words

    def _english_moved(self) -> English:
        if self.moved is self.subject:
            return self.subject.english(True)
        for index, argument in enumerate(self.arguments):
            if argument.filler is self.moved:
                pied = argument.complement.kind == "object" and argument.complement.case == "dat"
                before: English = self._preposition(index, argument.complement.english) if pied else []
                return before + argument.filler.english()
        return self.moved.english()  # type: ignore[attr-defined, no-any-return]  # an adjunct's filler

    def _preposition(self, index: int, text: str) -> English:
        if not text:
            return []
        self._prepositions[index] = Source(text)
        return [self._prepositions[index]]

    def _english_verbs(self, mode: str, inverted: bool) -> list[Source]:
        """Auxiliaries, *not*, frequency adverb and verb; remembers which German word each belongs to."""
        verb = self.frame.english if self.frame else BE_VERB
        chain = [(Source(text), slot) for text, slot in self._english_chain(verb, mode, inverted)]
        self._finite = tuple(source for source, slot in chain if slot in ("finite", "both"))
        self._main = tuple(source for source, slot in chain if slot in ("main", "both"))
        self._to = next((source for source, slot in chain if slot == "to"), None)
        self._been = next((source for source, slot in chain if slot == "been"), None)
        group = [source for source, _ in chain]
        if self.negated:
            self._not = Source("not")
            if group[0].text == "can" and not inverted:
                group[0].text = "cannot"
                self._not = group[0]
            else:
                group.insert(1, self._not)
        for adjunct in self.adjuncts:
            if adjunct.kind in ("frequency", "so far", "point"):
                place = int(len(group) > 1 or self.frame is None)
                if adjunct.kind == "point":
                    place = len(group) - 1
                group[place:place] = [word for word in adjunct.filler.english() if word]
        return group

    def _english_chain(self, verb: EnglishVerb, mode: str, inverted: bool) -> list[tuple[str, str]]:
        person, number = self.subject.person, self.subject.number
        past = self.tense in ("past", "pluperfect")
        be = BE_FORMS["past" if past else "present"][2 if number == "pl" or person == 2 else 1 if person == 3 else 0]
        third = person == 3 and number == "sg"
        if mode == "infinitive":
            return [("to", "to"), (verb.base, "main")]
        if mode == "gerund":
            return [(verb.gerund, "main")]
        if self.modal:
            modal = MODALS[self.modal]
            words = modal.singular if number == "sg" and person != 2 else modal.other
            if self.modal == "want" and not third:
                words = modal.other
            return [*((word, "finite") for word in words), (verb.base, "main")]
        if self.tense == "future":
            return [("will", "finite"), (verb.base, "main")]
        if self.tense in ("perfect", "pluperfect"):
            have = "had" if past else "has" if third else "have"
            if self.passive:
                return [(have, "finite"), ("been", "been"), (verb.participle, "main")]
            return [(have, "finite"), (verb.participle, "main")]
        if self.passive:
            return [(be, "finite"), (verb.participle, "main")]
        if self.progressive:
            return [(be, "both"), (verb.gerund, "both")]
        if self.frame is None:
            return [(be, "both")]
        if self.negated or inverted:
            return [("did" if past else "does" if third else "do", "both"), (verb.base, "both")]
        return [(verb.finite(past, person, number), "both")]

    def _english_rest(self) -> English:
        """What follows the verb group."""
        words: English = []
        particles = [Source(text) for text in self.frame.english.particles] if self.frame else []
        objects: English = []
        arguments = list(enumerate(self.arguments))
        if self._english_dative_last():
            arguments.reverse()
        late = bool(self.arguments) and self.arguments[0].complement.english == ""
        late = late and getattr(self.arguments[0].filler, "pronominal", False) and self._kind(0) == "object"
        for index, argument in arguments:
            complement, filler = argument.complement, argument.filler
            preposition = complement.english if complement.kind == "object" else ""
            if self._english_dative_last() and complement.case == "dat":
                preposition = "to"
            if preposition and complement.case == "acc":  # looks *at* the picture: part of the verb
                particles.append(Source(preposition))
                objects.append(particles[-1])
            elif preposition and filler is not self.moved:
                objects += self._preposition(index, preposition)
            if filler is not self.moved and filler is not self.subject:
                objects += filler.english()
        verbal: English = [*particles[: len(self.frame.english.particles)]] if self.frame else []
        if late and self.arguments[0].filler is not self.moved:
            words += [*objects[:1], *verbal, *objects[1:]]
        else:
            words += [*verbal, *objects]
        self._particles = tuple(particles)
        if self.predicate:
            words += self.predicate.english()
        for kind in ("agent", "manner", "place", "company", "circumstance", "time"):
            for adjunct in self.adjuncts:
                if adjunct.kind == kind and adjunct is not self.fronted and adjunct.filler is not self.moved:
                    words += adjunct.filler.english()
        return words

    def _kind(self, index: int) -> str:
        return self.arguments[index].complement.kind

    def _english_dative_last(self) -> bool:
        """*gives it to him*, where with a noun it is *gives him the book*."""
        if len(self.arguments) != 2 or [a.complement.case for a in self.arguments] != ["dat", "acc"]:
            return False
        return getattr(self.arguments[1].filler, "pronominal", False) and not self.arguments[0].complement.english

    # ---- German

    def german(self, order: str, opener: Word | None = None, elliptic: bool = False) -> German:
        """``order``: main (verb second), question (verb first or after the question word), final, infinitive."""
        self.realised, self.elliptic = order, elliptic
        finite, right = self._german_verbs(order)
        front = self._front(order, opener, elliptic)
        subject_in_middle = not elliptic and order != "infinitive" and self.moved is not self.subject
        if order == "main":
            subject_in_middle = subject_in_middle and bool(front)
            if not front and not elliptic:
                front = self.subject.german("nom")
        middle = self._middle(subject_in_middle)
        words: German = [*front, *finite, *middle, *right] if order in ("main", "question") else []
        if not words:
            words = [*front, *middle, *right, *finite]
        for word in words:
            if word is not None and word.clause is None:
                word.clause = self
        for argument in self.arguments:
            if isinstance(argument.filler, Attached):
                words += argument.filler.german()
        if self.second:
            assert self._second is not None
            words.append(Word(self.second[1], (self._second,), "coordinator", clause=self))
            words += self.second[2].german(order, elliptic=True)
        if self.trailing:
            words += self.trailing.german()
        return words

    def _front(self, order: str, opener: Word | None, elliptic: bool) -> German:
        if opener:
            return [opener]
        if self.leading and order == "main":
            return self.leading.german()[1:]  # no comma before it
        if self.fronted and order == "main":
            return self.fronted.filler.german()
        if self.moved is None:
            return []
        if self.moved is self.subject:
            return self.subject.german("nom")
        for index, argument in enumerate(self.arguments):
            if argument.filler is self.moved:
                return self._object(index) if argument.complement.kind == "object" else argument.filler.german()  # type: ignore[call-arg]
        return self.moved.german()  # type: ignore[attr-defined, no-any-return]

    def _object(self, index: int) -> German:
        argument = self.arguments[index]
        words = argument.filler.german(argument.complement.case)  # type: ignore[call-arg]
        if index in self._prepositions:  # *to the teacher* -> dem Lehrer
            first = words[0]
            assert first is not None
            first.sources = (self._prepositions[index], *first.sources)
        return words

    def _middle(self, with_subject: bool) -> German:
        fields: dict[str, German] = {name: [] for name in _MIDDLE}
        if with_subject:
            fields["subject"] = self.subject.german("nom")
        if self.frame and self.frame.reflexive:
            person, number = self.subject.person, self.subject.number
            reflexive = Word(REFLEXIVE[person, number], self._main, "reflexive", "acc", "", number, person)
            fields["acc pronoun" if self.subject.pronominal else "reflexive"].append(reflexive)
        negation = self._not if self.negated else None
        datives_first = sorted(enumerate(self.arguments), key=lambda item: item[1].complement.case != "dat")
        for index, argument in datives_first:
            filler, complement = argument.filler, argument.complement
            if filler is self.moved or filler is self.subject or isinstance(filler, Attached):
                continue
            if complement.kind != "object":
                fields["last"] += filler.german()  # type: ignore[call-arg]
                continue
            if negation and isinstance(filler, NounPhrase) and filler.negatable:
                filler.negation, negation = negation, None
            kind = " pronoun" if getattr(filler, "pronominal", False) else " indefinite" if _indefinite(filler) else ""
            if complement.case == "acc" and not kind and (fields["dat"] or getattr(filler, "relative", None)):
                kind = " late"
            fields[complement.case + kind] += self._object(index)
        for adjunct in self.adjuncts:
            if adjunct is not self.fronted and adjunct.filler is not self.moved:
                fields["manner" if adjunct.kind == "point" else adjunct.kind] += adjunct.filler.german()
        if negation:
            fields["negation"] = [Word("nicht", (negation,), "negation")]
        if self.predicate:
            is_noun = isinstance(self.predicate, NounPhrase)
            fields["last"] += self.predicate.german("nom") if is_noun else self.predicate.german()  # type: ignore[call-arg]
        return [word for name in _MIDDLE for word in fields[name]]

    def _german_verbs(self, order: str) -> tuple[German, German]:
        """The finite verb (in an infinitive clause: none) and the right bracket."""
        verb = self.frame.german if self.frame else SEIN
        person, number = self.subject.person, self.subject.number
        past = self.tense in ("past", "pluperfect")

        def finite(helper: GermanVerb, past: bool, sources: tuple[Source, ...]) -> Word:
            return Word(helper.finite(past, person, number), sources, "finite", "", "", number, person)

        whole = (*self._main, *self._particles)
        participle = Word(verb.prefix + verb.participle, whole, "participle")
        infinitive = Word(verb.prefix + verb.infinitive, whole, "infinitive")
        if order == "infinitive":
            to = (self._to,) if self._to else self._main
            if verb.prefix:
                joined = tuple(dict.fromkeys((*to, *whole)))
                return [], [Word(f"{verb.prefix}zu{verb.infinitive}", joined, "zu infinitive")]
            return [], [Word("zu", to, "zu"), infinitive]
        if self.modal:
            modal = MODALS[self.modal]
            return [finite(modal.german, modal.past_form, self._finite)], [infinitive]
        if self.tense == "future":
            return [finite(WERDEN, False, self._finite)], [infinitive]
        if self.passive:
            if self.tense in ("perfect", "pluperfect"):
                been = (self._been,) if self._been else ()
                return [finite(SEIN, past, self._finite)], [participle, Word("worden", been, "participle")]
            return [finite(WERDEN, past, self._finite)], [participle]
        if self.tense in ("perfect", "pluperfect"):
            helper = SEIN if verb.auxiliary == "sein" else HABEN
            return [finite(helper, past, self._finite)], [participle]
        word = finite(verb, past, self._finite)
        if not verb.prefix:
            word.sources = (*self._finite, *self._particles)
            return [word], []
        if order == "final":
            word.text = verb.prefix + word.text
            word.sources = (*self._finite, *self._particles)
            return [word], []
        return [word], [Word(verb.prefix, self._particles or self._main[-1:], "prefix")]


def _indefinite(filler: object) -> bool:
    if isinstance(filler, Coordination):
        return _indefinite(filler.members[0])
    return isinstance(filler, NounPhrase) and filler.indefinite


_MIDDLE = (
    *(
        "reflexive",
        "subject",
        "acc pronoun",
        "dat pronoun",
        "time",
        "circumstance",
        "agent",
        "dat",
        "acc",
        "frequency",
        "acc late",
        "so far",
    ),
    *("company", "negation", "manner", "place", "dat indefinite", "acc indefinite", "last"),
)
