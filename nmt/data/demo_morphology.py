"""Inflection for the demo grammar: German declension and conjugation, English inflection, numerals in both.

Everything here works on one word at a time and knows nothing of sentences. German features are short strings:
case ``nom acc dat gen``; gender ``m f n``, with ``p`` for every plural (German has one plural paradigm).
"""

from __future__ import annotations

from dataclasses import dataclass

CASES = ("nom", "acc", "dat", "gen")

# Endings by case, in the order m f n p.
_DEFINITE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den", "gen": "des der des der"}
_DER_WORD = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "es er es er"}
_EIN_WORD = {"nom": "- e - e", "acc": "en e - e", "dat": "em er em en", "gen": "es er es er"}
_ADJECTIVE = {
    # after der, dieser, jeder, alle
    "weak": {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en", "gen": "en en en en"},
    # after ein, kein and the possessives
    "mixed": {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en", "gen": "en en en en"},
    # with no article, and after numerals, viele, einige
    "strong": {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "en er en er"},
}
_RELATIVE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem denen", "gen": "dessen deren " * 2}

CONTRACTIONS = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
    ("in", "das"): "ins",
}


def _flat(table: dict[str, str]) -> dict[tuple[str, str], str]:
    flat = {}
    for case, row in table.items():
        for gender, ending in zip("mfnp", row.split(), strict=True):
            flat[case, gender] = "" if ending == "-" else ending
    return flat


DEFINITE = _flat(_DEFINITE)
DER_WORD = _flat(_DER_WORD)
EIN_WORD = _flat(_EIN_WORD)
ADJECTIVE = {name: _flat(table) for name, table in _ADJECTIVE.items()}
RELATIVE = _flat(_RELATIVE)

# Personal pronouns: (person, number, gender) -> nom acc dat; gender "" where it does not matter.
GERMAN_PRONOUNS = {
    (1, "sg", ""): ("ich", "mich", "mir"),
    (2, "sg", ""): ("du", "dich", "dir"),
    (3, "sg", "m"): ("er", "ihn", "ihm"),
    (3, "sg", "f"): ("sie", "sie", "ihr"),
    (3, "sg", "n"): ("es", "es", "ihm"),
    (1, "pl", ""): ("wir", "uns", "uns"),
    (3, "pl", ""): ("sie", "sie", "ihnen"),
}
ENGLISH_PRONOUNS = {
    (1, "sg", ""): ("I", "me"),
    (2, "sg", ""): ("you", "you"),
    (3, "sg", "m"): ("he", "him"),
    (3, "sg", "f"): ("she", "her"),
    (3, "sg", "n"): ("it", "it"),
    (1, "pl", ""): ("we", "us"),
    (3, "pl", ""): ("they", "them"),
}
POSSESSIVES = {
    (1, "sg", ""): ("my", "mein"),
    (2, "sg", ""): ("your", "dein"),
    (3, "sg", "m"): ("his", "sein"),
    (3, "sg", "f"): ("her", "ihr"),
    (1, "pl", ""): ("our", "unser"),
    (3, "pl", ""): ("their", "ihr"),
}
REFLEXIVE = {(1, "sg"): "mich", (2, "sg"): "dich", (3, "sg"): "sich", (1, "pl"): "uns", (3, "pl"): "sich"}


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun of both languages; ``tags`` are the semantic classes that verbs select by."""

    english: str
    english_plural: str
    german: str
    gender: str
    genitive: str
    plural: str
    weak: bool
    tags: frozenset[str]

    def form(self, case: str, number: str) -> str:
        """The German form. Weak masculines take their ending in every case but the nominative."""
        if number == "pl":
            return self.plural + "n" if case == "dat" and self.plural[-1] not in "ns" else self.plural
        if case == "gen" or (self.weak and case != "nom"):
            return self.genitive
        return self.german


@dataclass(frozen=True, slots=True)
class Adjective:
    english: str
    german: str
    stem: str  # before an ending: teuer -> teur-
    tags: frozenset[str]


@dataclass(frozen=True, slots=True)
class GermanVerb:
    """A German verb. ``infinitive`` and all forms are those of the base; a separable ``prefix`` stands apart."""

    infinitive: str
    prefix: str
    first: str
    second: str
    third: str
    plural: str  # first and third person
    past: str
    participle: str
    auxiliary: str  # haben or sein

    def finite(self, past: bool, person: int, number: str) -> str:
        if past:
            return _german_past(self.past, person, number)
        if number == "pl":
            return self.plural
        return (self.first, self.second, self.third)[person - 1]


@dataclass(frozen=True, slots=True)
class EnglishVerb:
    """An English verb; ``particles`` are the words that belong to it and follow it (``up`` in *get up*)."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    particles: tuple[str, ...]

    def finite(self, past: bool, person: int, number: str) -> str:
        if past:
            return self.past
        return self.third if person == 3 and number == "sg" else self.base


def _german_past(form: str, person: int, number: str) -> str:
    if form.endswith("e"):  # weak verbs, the modals, wurde
        ending = {(2, "sg"): "st"}.get((person, number), "n" if number == "pl" else "")
    elif number == "pl":
        ending = "en"
    elif person == 2:
        ending = "est" if form[-1] in "td" else "t" if form[-1] in "sßz" else "st"
    else:
        ending = ""
    return form + ending


_UNSTRESSED = ("be", "ge", "er", "ver", "zer", "ent", "emp", "miss", "über", "unter", "wider", "durch")


def german_verb(text: str) -> GermanVerb:
    """Reads ``prefix|infinitive [third past participle] [+sein] [+ich=form] [+du=form]``; a bare infinitive is weak."""
    parts = [part for part in text.split() if not part.startswith("+")]
    options = dict(part[1:].partition("=")[::2] for part in text.split() if part.startswith("+"))
    prefix, _, infinitive = parts[0].rpartition("|")
    if len(parts) == 4:
        third, past, participle = parts[1:]
    elif len(parts) == 1:
        stem = infinitive.removesuffix("n") if infinitive[-2] in "lr" else infinitive.removesuffix("en")
        link = "e" if stem.endswith(("t", "d", "fn", "chn", "gn")) else ""
        third, past = stem + link + "t", stem + link + "te"
        bare = infinitive.startswith(_UNSTRESSED) or infinitive.endswith("ieren")
        participle = ("" if bare else "ge") + stem + link + "t"
    else:
        raise ValueError(f"German verb {text!r}: expected an infinitive alone or with three more forms")
    stem = third[:-1]
    second = options.get("du") or (third if stem[-1] in "sßzx" else stem + "st")
    first = options.get("ich") or _first_person(infinitive, third)
    auxiliary = "sein" if "sein" in options else "haben"
    plural = options.get("wir", infinitive)
    return GermanVerb(infinitive, prefix, first, second, third, plural, past, participle, auxiliary)


def _first_person(infinitive: str, third: str) -> str:
    if third[-1] not in "td":  # weiß, and the modals
        return third
    if infinitive.endswith("eln"):
        return infinitive[:-3] + "le"
    return infinitive[:-1] + ("e" if infinitive.endswith("rn") else "")


_DOUBLED = {"swim", "run", "get", "put", "sit", "cut", "stop", "forget", "begin", "let", "plan", "travel", "rob", "win"}
_DOUBLED |= {"knit", "spot", "hit", "pat", "beg", "chat", "hug", "quarrel", "label", "jog", "wrap", "cancel"}


def english_verb(text: str) -> EnglishVerb:
    """Reads ``base[+particle...] [past participle]``; a bare base is regular."""
    first, *forms = text.split()
    base, *particles = first.split("+")
    if forms:
        past, participle = forms
    else:
        past = participle = _english_suffix(base, "ed")
    third = {"have": "has", "be": "is"}.get(base) or english_plural(base)
    return EnglishVerb(base, third, past, participle, _english_suffix(base, "ing"), tuple(particles))


def _english_suffix(base: str, suffix: str) -> str:
    if base.endswith("ie") and suffix == "ing":
        return base[:-2] + "ying"
    if base.endswith("e") and not (base.endswith("ee") and suffix == "ing"):
        return base[:-1] + suffix
    if base in _DOUBLED:
        return base + base[-1] + suffix
    if suffix == "ed" and base.endswith("y") and base[-2] not in "aeou":
        return base[:-1] + "ied"
    return base + suffix


def english_plural(word: str) -> str:
    """The regular plural of a noun, which is also the third person of a verb."""
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in ("go", "do"):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeou":
        return word[:-1] + "ies"
    return word + "s"


_LIKE_CONSONANT = ("uni", "use", "euro", "one")
_LIKE_VOWEL = ("honest", "hour", "8", "11", "18")


def indefinite_article(following: str) -> str:
    """``a`` or ``an``, by the sound of the next word."""
    word = following.lower()
    if word.startswith(_LIKE_VOWEL):
        return "an"
    return "an" if word[0] in "aeiou" and not word.startswith(_LIKE_CONSONANT) else "a"


_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_ENGLISH_SMALL = [*_ONES.split(), "seventeen", "eighteen", "nineteen"]
_ENGLISH_TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_GERMAN_SMALL = [
    "null",
    "eins",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
]
_GERMAN_TENS = ["-", "-", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]


def english_number(value: int) -> list[str]:
    """The words of a number from 2 to 999: 247 -> two hundred and forty-seven."""
    hundreds, rest = divmod(value, 100)
    words = [_ENGLISH_SMALL[hundreds], "hundred"] if hundreds else []
    if hundreds and rest:
        words.append("and")
    if 0 < rest < 20:
        words.append(_ENGLISH_SMALL[rest])
    elif rest:
        tens, ones = divmod(rest, 10)
        words.append(_ENGLISH_TENS[tens] + (f"-{_ENGLISH_SMALL[ones]}" if ones else ""))
    return words


def german_number(value: int) -> str:
    """The word of a number from 2 to 999: 247 -> zweihundertsiebenundvierzig."""
    hundreds, rest = divmod(value, 100)
    word = ("ein" if hundreds == 1 else _GERMAN_SMALL[hundreds]) + "hundert" if hundreds else ""
    if 0 < rest < 20:
        return word + _GERMAN_SMALL[rest]
    if rest:
        tens, ones = divmod(rest, 10)
        unit = "ein" if ones == 1 else _GERMAN_SMALL[ones]
        return word + (f"{unit}und" if ones else "") + _GERMAN_TENS[tens]
    return word
