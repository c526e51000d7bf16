"""Noun phrases and other constituents of the demo grammar, each of which can say itself in both languages.

``english()`` comes first and remembers the source words it made; ``german()`` links its words to them. Both give lists
of words in which ``None`` marks a clause boundary that is written as a comma (see ``demo_sentence.spell``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from nmt.data.demo_morphology import (
    ADJECTIVE,
    CONTRACTIONS,
    DEFINITE,
    DER_WORD,
    EIN_WORD,
    ENGLISH_PRONOUNS,
    GERMAN_PRONOUNS,
    POSSESSIVES,
    RELATIVE,
    Adjective,
    Noun,
    english_number,
    german_number,
    indefinite_article,
)

if TYPE_CHECKING:
    from nmt.data.demo_clause import Clause


@dataclass(eq=False, slots=True)
class Source:
    """A word of the English sentence."""

    text: str


@dataclass(eq=False, slots=True)
class Word:
    """A word of the German sentence with its links and its analysis (empty strings where a feature does not apply)."""

    text: str
    sources: tuple[Source, ...]
    role: str
    case: str = ""
    gender: str = ""  # m f n
    number: str = ""  # sg pl
    person: int = 0
    clause: Clause | None = None  # the innermost clause that it belongs to
    phrase: Nominal | None = None  # the innermost noun phrase that it belongs to


English = list[Source | None]
German = list[Word | None]
PossessorKey = tuple[int, str, str]  # person, number, gender of a possessor, as in POSSESSIVES


class Constituent(Protocol):
    def english(self) -> English: ...
    def german(self) -> German: ...


class Nominal(Protocol):
    """Whatever can be subject or object."""

    @property
    def person(self) -> int: ...
    @property
    def number(self) -> str: ...
    @property
    def gender(self) -> str: ...
    @property
    def pronominal(self) -> bool: ...
    def english(self, subject: bool = False) -> English: ...
    def german(self, case: str) -> German: ...


def pronoun_key(nominal: Nominal) -> PossessorKey:
    """The row of the pronoun tables that refers to a nominal."""
    bare = nominal.number == "pl" or nominal.person != 3
    return nominal.person, nominal.number, "" if bare else nominal.gender


@dataclass(eq=False, slots=True)
class Pronoun:
    """A personal pronoun. ``english_gender`` differs from ``gender`` for things: *it* is er, sie or es."""

    person: int
    number: str
    gender: str
    thing: bool = False
    pronominal: bool = True
    _source: Source = field(init=False)

    def english(self, subject: bool = False) -> English:
        person, number, gender = pronoun_key(self)
        forms = ENGLISH_PRONOUNS[person, number, "n" if self.thing and number == "sg" else gender]
        self._source = Source(forms[0 if subject else 1])
        return [self._source]

    def german(self, case: str) -> German:
        form = GERMAN_PRONOUNS[pronoun_key(self)][("nom", "acc", "dat").index(case)]
        return [Word(form, (self._source,), "pronoun", case, self.gender, self.number, self.person, phrase=self)]


@dataclass(eq=False, slots=True)
class Name:
    """The name of a person or a town: no article, no ending but the genitive's."""

    text: str
    gender: str
    german_text: str = ""  # where it differs
    person: int = 3
    number: str = "sg"
    pronominal: bool = False
    _source: Source = field(init=False)

    def english(self, subject: bool = False) -> English:
        self._source = Source(self.text)
        return [self._source]

    def german(self, case: str) -> German:
        return [Word(self.german_text or self.text, (self._source,), "name", case, self.gender, "sg", 3, phrase=self)]


@dataclass(eq=False, slots=True)
class Interrogative:
    """*who* or *what*."""

    animate: bool
    person: int = 3
    number: str = "sg"
    gender: str = "m"
    pronominal: bool = False
    _source: Source = field(init=False)

    def english(self, subject: bool = False) -> English:
        self._source = Source(("who" if subject else "whom") if self.animate else "what")
        return [self._source]

    def german(self, case: str) -> German:
        form = {"nom": "wer", "acc": "wen", "dat": "wem"}[case] if self.animate else "was"
        return [Word(form, (self._source,), "interrogative", case, phrase=self)]


@dataclass(eq=False, slots=True)
class RelativePronoun:
    """Gender and number come from the antecedent, case from the relative clause."""

    antecedent: Noun
    number: str
    after_preposition: bool = False
    person: int = 3
    pronominal: bool = False
    _source: Source = field(init=False)

    @property
    def gender(self) -> str:
        return self.antecedent.gender

    @property
    def animate(self) -> bool:
        return "person" in self.antecedent.tags

    def english(self, subject: bool = False) -> English:
        if self.animate:
            word = "who" if subject else "whom"
        else:
            word = "which" if self.after_preposition else "that"
        self._source = Source(word)
        return [self._source]

    def german(self, case: str) -> German:
        form = RELATIVE[case, "p" if self.number == "pl" else self.gender]
        return [Word(form, (self._source,), "relative", case, self.gender, self.number, 3, phrase=self)]


# German determiner stems: inflected like "der" (weak adjectives follow) or like "ein" (mixed adjectives follow).
_DER_STEMS = {"this": "dies", "every": "jed", "which": "welch", "all": "all"}
_UNDECLINED_BEFORE_STRONG = {"many": "viel", "some": "einig", "several": "mehrer"}


@dataclass(eq=False, slots=True)
class NounPhrase:
    """Determiner, numeral, adjectives, noun, then prepositional or genitive modifiers and a relative clause.

    ``determiner``: the, a, this, every, which, all, many, some, several, whose, bare; a possessor's key or name.
    """

    noun: Noun
    number: str = "sg"
    determiner: str | PossessorKey | Name = "the"
    numeral: str = ""  # "" or digits; ``spelled`` says whether it is written as a word
    spelled: bool = True
    adjectives: tuple[Adjective, ...] = ()
    modifiers: list[Constituent] = field(default_factory=list)
    relative: Clause | None = None
    whose: RelativePronoun | None = None  # the possessor, for determiner "whose"
    negation: Source | None = None  # the "not" that German says as kein
    person: int = 3
    pronominal: bool = False
    _determiner: tuple[Source, ...] = ()
    _numeral: tuple[Source, ...] = ()
    _adjectives: tuple[Source, ...] = ()
    _noun: Source = field(init=False)

    @property
    def gender(self) -> str:
        return self.noun.gender

    @property
    def negatable(self) -> bool:
        """Whether a negation of the clause turns into kein on this phrase."""
        return self.determiner in ("a", "bare") and not self.numeral

    @property
    def indefinite(self) -> bool:
        """Whether it is new to the hearer, and so stands late in the German middle field."""
        return self.determiner in ("a", "bare", "many", "some", "several")

    def english(self, subject: bool = False) -> English:
        plural = self.number == "pl"
        self._noun = Source(self.noun.english_plural if plural else self.noun.english)
        self._adjectives = tuple(Source(adjective.english) for adjective in self.adjectives)
        words = english_number(int(self.numeral)) if self.numeral and self.spelled else self.numeral.split()
        self._numeral = tuple(Source(word) for word in words)
        head = [*self._numeral, *self._adjectives, self._noun]
        if self.determiner == "a":
            text = indefinite_article(head[0].text)
        elif isinstance(self.determiner, Name):
            text = self.determiner.text + "'s"
        elif isinstance(self.determiner, tuple):
            text = POSSESSIVES[self.determiner][0]
        elif self.determiner == "this" and plural:
            text = "these"
        else:
            text = "" if self.determiner == "bare" else self.determiner
        self._determiner = (Source(text),) if text else ()
        words_out: English = [*self._determiner, *head]
        for modifier in self.modifiers:
            words_out += modifier.english()
        if self.relative:
            words_out += self.relative.english()
        return words_out

    def german(self, case: str) -> German:
        key = case, "p" if self.number == "pl" else self.gender
        article, declension = self._article(key)
        sources = (*self._determiner, *((self.negation,) if self.negation else ()))
        words: German = []
        if article:
            words.append(self._word(article, sources, self._article_role(), case))
        if self.numeral:
            text = german_number(int(self.numeral)) if self.spelled else self.numeral
            words.append(self._word(text, self._numeral, "numeral", case))
        ending = ADJECTIVE[declension][key]
        for adjective, source in zip(self.adjectives, self._adjectives, strict=True):
            words.append(self._word(adjective.stem + ending, (source,), "adjective", case))
        words.append(self._word(self.noun.form(case, self.number), (self._noun,), "noun", case))
        for modifier in self.modifiers:
            words += modifier.german()
        if self.relative:
            words += [None, *self.relative.german("final"), None]
        return words

    def _word(self, text: str, sources: tuple[Source, ...], role: str, case: str) -> Word:
        return Word(text, sources, role, case, self.gender, self.number, 3, phrase=self)

    def _article_role(self) -> str:
        if self.negation or self.determiner == "a":
            return "kein" if self.negation else "indefinite"
        if isinstance(self.determiner, tuple):
            return "possessive"
        if isinstance(self.determiner, Name):
            return "genitive"
        return {"the": "definite", "whose": "relative"}.get(self.determiner, "determiner")

    def _article(self, key: tuple[str, str]) -> tuple[str, str]:
        """The German determiner and the declension of adjectives after it."""
        if self.negation:
            return "kein" + EIN_WORD[key], "mixed"
        if isinstance(self.determiner, Name):
            return self.determiner.text + "s", "strong"
        if isinstance(self.determiner, tuple):
            return POSSESSIVES[self.determiner][1] + EIN_WORD[key], "mixed"
        if self.determiner == "the":
            return DEFINITE[key], "weak"
        if self.determiner == "a":
            return "ein" + EIN_WORD[key], "mixed"
        if self.determiner in _DER_STEMS:
            return _DER_STEMS[self.determiner] + DER_WORD[key], "weak"
        if self.determiner == "whose":
            assert self.whose is not None
            return RELATIVE["gen", "p" if self.whose.number == "pl" else self.whose.gender], "strong"
        stem = _UNDECLINED_BEFORE_STRONG.get(self.determiner)
        return (stem + DER_WORD[key] if stem else ""), "strong"


@dataclass(eq=False, slots=True)
class Coordination:
    """*A, B and C*, plural as a subject (only with *and*)."""

    members: tuple[Nominal, ...]
    conjunction: tuple[str, str] = ("and", "und")
    person: int = 3
    number: str = "pl"
    gender: str = ""
    pronominal: bool = False
    _conjunction: Source = field(init=False)

    def english(self, subject: bool = False) -> English:
        words: English = []
        for index, member in enumerate(self.members):
            if index == len(self.members) - 1:
                self._conjunction = Source(self.conjunction[0])
                words.append(self._conjunction)
            elif index:
                words.append(None)
            words += member.english(subject)
        return words

    def german(self, case: str) -> German:
        words: German = []
        for index, member in enumerate(self.members):
            if index == len(self.members) - 1:
                words.append(Word(self.conjunction[1], (self._conjunction,), "coordinator", phrase=self))
            elif index:
                words.append(None)
            words += member.german(case)
        return words


@dataclass(eq=False, slots=True)
class Phrase:
    """A preposition and its nominal; ``german_preposition`` may be empty (*of the teacher* -> des Lehrers)."""

    english_preposition: tuple[str, ...]
    german_preposition: str
    case: str
    nominal: Nominal
    _preposition: tuple[Source, ...] = ()

    def english(self) -> English:
        self._preposition = tuple(Source(word) for word in self.english_preposition)
        return [*self._preposition, *self.nominal.english()]

    def german(self) -> German:
        words = self.nominal.german(self.case)
        first = words[0]
        assert first is not None
        if not self.german_preposition:
            first.sources = (*self._preposition, *first.sources)
            return words
        contracted = CONTRACTIONS.get((self.german_preposition, first.text))
        plain = isinstance(self.nominal, NounPhrase) and self.nominal.relative is None
        if contracted and first.role == "definite" and plain:  # but: in dem Haus, das ...; von dem Mann und der Frau
            first.text = contracted
            first.role = "contraction"
            first.sources = (*self._preposition, *first.sources)
            return words
        # An English verb with a plain object may take a German preposition; then it has no source word.
        return [Word(self.german_preposition, self._preposition, "preposition", self.case), *words]


@dataclass(eq=False, slots=True)
class Fixed:
    """A fixed expression: adverbs, times, predicates."""

    english_words: tuple[str, ...]
    german_words: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    role: str = "adverb"
    _sources: tuple[Source, ...] = ()

    def english(self) -> English:
        self._sources = tuple(Source(word) for word in self.english_words)
        return list(self._sources)

    def german(self) -> German:
        return [
            Word(text, tuple(self._sources[i] for i, j in self.links if j == index), self.role)
            for index, text in enumerate(self.german_words)
        ]


def adverb(english: str, german: str, role: str = "adverb") -> Fixed:
    """A one-word adverb."""
    return Fixed((english,), (german,), ((0, 0),), role)
