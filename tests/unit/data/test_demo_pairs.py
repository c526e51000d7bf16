"""Whole sentences of the demo grammar, built by hand and checked by hand: English, German, links."""

from __future__ import annotations

import pytest

from nmt.data.corpus import pharaoh
from nmt.data.demo import to_pair
from nmt.data.demo_clause import Adjunct, Argument, Attached, Clause
from nmt.data.demo_lexicon import adjectives
from nmt.data.demo_nouns import nouns
from nmt.data.demo_sentence import Sentence
from nmt.data.demo_syntax import Fixed, Interrogative, Name, NounPhrase, Phrase, Pronoun, RelativePronoun, adverb
from nmt.data.demo_verbs import frames


def he():
    return Pronoun(3, "sg", "m")


def she():
    return Pronoun(3, "sg", "f")


def they():
    return Pronoun(3, "pl", "")


def noun(english):
    return next(noun for noun in nouns() if noun.english == english)


def np(english, determiner="the", number="sg", adjective=None, **options):
    chosen = tuple(entry for entry in adjectives() if entry.english == adjective)
    return NounPhrase(noun(english), number, determiner, adjectives=chosen, **options)


def it(english):
    return Pronoun(3, "sg", noun(english).gender, thing=True)


def be(subject, adjective, **options):
    german = next(entry.german for entry in adjectives() if entry.english == adjective)
    return Clause(subject, predicate=adverb(adjective, german, "predicate"), **options)


def do(subject, german, *fillers, kinds=None, **options):
    """A clause of the verb with this German infinitive, with fillers for its complements in English order."""
    frame = next(
        frame
        for frame in frames()
        if frame.german.prefix + frame.german.infinitive == german
        and len(frame.complements) == len(fillers)
        and kinds in (None, frame.kinds)
    )
    arguments = []
    for complement, filler in zip(frame.complements, fillers, strict=True):
        if complement.kind == "prepositional":
            before = (complement.english,) if complement.english else ()
            filler = Phrase(before, complement.german, complement.case, filler)
        arguments.append(Argument(complement, filler))
    return Clause(subject, frame=frame, arguments=arguments, **options)


def move(clause, filler):
    """Marks the filler (or its prepositional phrase) as what opens the clause."""
    fillers = [clause.subject, *(argument.filler for argument in clause.arguments)]
    clause.moved = next(entry for entry in fillers if entry is filler or getattr(entry, "nominal", None) is filler)
    return clause


def whom(english, number="sg"):
    return RelativePronoun(noun(english), number)


def yesterday():
    return Adjunct("time", adverb("yesterday", "gestern"))


def place(english, german, english_noun, case="dat", **options):
    return Phrase(tuple(english.split()), german, case, np(english_noun, **options))


def fronted(clause, adjunct):
    clause.adjuncts.append(adjunct)
    clause.fronted = adjunct
    return clause


def relative(english, make, **options):
    """A noun phrase with the relative clause that ``make`` builds around its pronoun."""
    pronoun = whom(english)
    return np(english, relative=move(make(pronoun), pronoun), **options)


def whose_dog():
    owner = whom("woman")
    dog = np("dog", "whose", whose=owner)
    clause = do(dog, "bellen")
    clause.moved = dog
    return np("woman", "a", relative=clause)


def asking(clause, word, german):
    clause.moved = adverb(word, german, "interrogative")
    return clause


def rain():
    return Adjunct("circumstance", Phrase(("because", "of"), "wegen", "gen", NounPhrase(RAIN)))


RAIN = type(noun("man"))("rain", "rain", "Regen", "m", "Regens", "Regen", False, frozenset())


def statement(*clauses, connectors=()):
    return Sentence(list(clauses), list(connectors))


def question(clause):
    return Sentence([clause], question=True)


def straight(length):
    return " ".join(f"{index}-{index}" for index in range(length))


PAIRS = [
    (
        lambda: statement(do(np("man"), "lesen", np("book"))),
        "The man reads the book.",
        "Der Mann liest das Buch.",
        straight(5),
    ),
    (
        lambda: statement(do(np("man"), "lesen", np("book"), tense="perfect")),
        "The man has read the book.",
        "Der Mann hat das Buch gelesen.",
        "0-0 1-1 2-2 3-5 4-3 5-4",
    ),
    (
        lambda: statement(do(she(), "aufmachen", np("door"))),
        "She opens the door.",
        "Sie macht die Tür auf.",
        "0-0 1-1 1-4 2-2 3-3",
    ),
    (lambda: statement(do(he(), "aufstehen")), "He gets up.", "Er steht auf.", "0-0 1-1 2-2"),
    (
        lambda: question(do(np("boy"), "aufstehen")),
        "Does the boy get up?",
        "Steht der Junge auf?",
        "0-0 1-1 2-2 3-0 4-3",
    ),
    (
        lambda: statement(do(Name("Anna", "f"), "kaufen", np("car", "a"), negated=True)),
        "Anna does not buy a car.",
        "Anna kauft kein Auto.",
        "0-0 1-1 2-2 3-1 4-2 5-3",
    ),
    (
        lambda: statement(do(np("child"), "schlafen", progressive=True, negated=True)),
        "The child is not sleeping.",
        "Das Kind schläft nicht.",
        "0-0 1-1 2-2 3-3 4-2",
    ),
    (
        lambda: statement(fronted(do(np("teacher"), "helfen", np("boy"), tense="past"), yesterday())),
        "Yesterday the teacher helped the boy.",
        "Gestern half der Lehrer dem Jungen.",
        "0-0 1-2 2-3 3-1 4-4 5-5",
    ),
    (
        lambda: statement(do(she(), "geben", np("child"), np("apple", "a"))),
        "She gives the child an apple.",
        "Sie gibt dem Kind einen Apfel.",
        straight(6),
    ),
    (
        lambda: statement(do(she(), "geben", np("child"), it("apple"))),
        "She gives it to the child.",
        "Sie gibt ihn dem Kind.",
        "0-0 1-1 2-2 3-3 4-3 5-4",
    ),
    (
        lambda: statement(
            do(she(), "wissen", Attached(("that",), "dass", do(he(), "aufmachen", np("window"), tense="past")))
        ),
        "She knows that he opened the window.",
        "Sie weiß, dass er das Fenster aufmachte.",
        "0-0 1-1 2-2 3-3 4-6 5-4 6-5",
    ),
    (
        lambda: statement(be(relative("woman", lambda who: do(np("man"), "sehen", who)), "tired")),
        "The woman whom the man sees is tired.",
        "Die Frau, die der Mann sieht, ist müde.",
        straight(8),
    ),
    (
        lambda: statement(do(relative("boy", lambda who: do(she(), "helfen", who)), "lachen")),
        "The boy whom she helps laughs.",
        "Der Junge, dem sie hilft, lacht.",
        straight(6),
    ),
    (
        lambda: statement(do(he(), "warten", place("in", "in", "garden"), kinds=("loc",), progressive=True)),
        "He is waiting in the garden.",
        "Er wartet im Garten.",
        "0-0 1-1 2-1 3-2 4-2 5-3",
    ),
    (
        lambda: statement(do(he(), "gehen", place("into", "in", "garden", "acc"))),
        "He goes into the garden.",
        "Er geht in den Garten.",
        straight(5),
    ),
    (
        lambda: statement(do(Name("Peter", "m"), "legen", np("book"), place("on", "auf", "table", "acc"))),
        "Peter puts the book on the table.",
        "Peter legt das Buch auf den Tisch.",
        straight(7),
    ),
    (
        lambda: statement(do(np("book"), "liegen", place("on", "auf", "table"))),
        "The book lies on the table.",
        "Das Buch liegt auf dem Tisch.",
        straight(6),
    ),
    (
        lambda: statement(do(she(), "schlafen", modal="want")),
        "She wants to sleep.",
        "Sie will schlafen.",
        "0-0 1-1 2-1 3-2",
    ),
    (
        lambda: statement(
            do(
                they(),
                "reisen",
                Phrase(("to",), "nach", "dat", Name("Munich", "n", "München")),
                kinds=("city",),
                tense="future",
            )
        ),
        "They will travel to Munich.",
        "Sie werden nach München reisen.",
        "0-0 1-1 2-4 3-2 4-3",
    ),
    (
        lambda: statement(do(Pronoun(1, "pl", ""), "erinnern", np("wedding"))),
        "We remember the wedding.",
        "Wir erinnern uns an die Hochzeit.",
        "0-0 1-1 1-2 2-4 3-5",
    ),
    (
        lambda: statement(
            do(
                he(),
                "aufmachen",
                np("window"),
                trailing=Attached(("in", "order"), "um", do(he(), "sehen", she()), "infinitive"),
            )
        ),
        "He opens the window in order to see her.",
        "Er macht das Fenster auf, um sie zu sehen.",
        "0-0 1-1 1-4 2-2 3-3 4-5 5-5 6-7 7-8 8-6",
    ),
    (
        lambda: statement(do(she(), "versuchen", Attached((), "", do(she(), "aufmachen", np("box")), "infinitive"))),
        "She tries to open the box.",
        "Sie versucht, die Kiste aufzumachen.",
        "0-0 1-1 2-4 3-4 4-2 5-3",
    ),
    (
        lambda: statement(do(she(), "lachen", trailing=Attached(("without",), "ohne", do(she(), "singen"), "gerund"))),
        "She laughs without singing.",
        "Sie lacht, ohne zu singen.",
        "0-0 1-1 2-2 3-3 3-4",
    ),
    (
        lambda: statement(
            Clause(
                np("door"),
                frame=do(he(), "aufmachen", np("door")).frame,
                tense="past",
                passive=True,
                adjuncts=[Adjunct("agent", Phrase(("by",), "von", "dat", np("boy")))],
            )
        ),
        "The door was opened by the boy.",
        "Die Tür wurde vom Jungen aufgemacht.",
        "0-0 1-1 2-2 3-5 4-3 5-3 6-4",
    ),
    (
        lambda: statement(be(np("brother", Name("Anna", "f")), "young")),
        "Anna's brother is young.",
        "Annas Bruder ist jung.",
        straight(4),
    ),
    (
        lambda: statement(be(np("car", modifiers=[Phrase(("of",), "", "gen", np("teacher"))]), "red")),
        "The car of the teacher is red.",
        "Das Auto des Lehrers ist rot.",
        "0-0 1-1 2-2 3-2 4-3 5-4 6-5",
    ),
    (
        lambda: statement(do(np("soldier", "bare", "pl", numeral="247"), "schlafen")),
        "Two hundred and forty-seven soldiers sleep.",
        "Zweihundertsiebenundvierzig Soldaten schlafen.",
        "0-0 1-0 2-0 3-0 4-1 5-2",
    ),
    (
        lambda: statement(
            do(she(), "kaufen", np("coat"), trailing=Attached(("because",), "weil", be(it("coat"), "cheap")))
        ),
        "She buys the coat because it is cheap.",
        "Sie kauft den Mantel, weil er billig ist.",
        "0-0 1-1 2-2 3-3 4-4 5-5 6-7 7-6",
    ),
    (
        lambda: statement(
            do(
                he(),
                "schlafen",
                tense="past",
                leading=Attached(("because",), "weil", be(he(), "tired", tense="past")),
            )
        ),
        "Because he was tired, he slept.",
        "Weil er müde war, schlief er.",
        "0-0 1-1 2-3 3-2 4-5 5-4",
    ),
    (
        lambda: statement(be(he(), "tired"), do(he(), "schlafen"), connectors=[("so", "deshalb")]),
        "He is tired, so he sleeps.",
        "Er ist müde, deshalb schläft er.",
        "0-0 1-1 2-2 3-3 4-5 5-4",
    ),
    (
        lambda: statement(do(he(), "singen"), do(she(), "tanzen"), connectors=[("and", "und")]),
        "He sings, and she dances.",
        "Er singt und sie tanzt.",
        straight(5),
    ),
    (
        lambda: statement(do(he(), "singen"), do(she(), "tanzen", negated=True), connectors=[("but", "aber")]),
        "He sings, but she does not dance.",
        "Er singt, aber sie tanzt nicht.",
        "0-0 1-1 2-2 3-3 4-4 5-5 6-4",
    ),
    (
        lambda: question(asking(do(she(), "lachen"), "why", "warum")),
        "Why does she laugh?",
        "Warum lacht sie?",
        "0-0 1-1 2-2 3-1",
    ),
    (
        lambda: question((lambda book: move(do(he(), "lesen", book), book))(np("book", "which"))),
        "Which book does he read?",
        "Welches Buch liest er?",
        "0-0 1-1 2-2 3-3 4-2",
    ),
    (
        lambda: question(
            (lambda who: move(do(who, "ausschalten", np("radio"), tense="perfect"), who))(Interrogative(True))
        ),
        "Who has turned off the radio?",
        "Wer hat das Radio ausgeschaltet?",
        "0-0 1-1 2-4 3-4 4-2 5-3",
    ),
    (
        lambda: statement(do(she(), "ausschalten", it("radio"))),
        "She turns it off.",
        "Sie schaltet es aus.",
        "0-0 1-1 2-2 3-3",
    ),
    (
        lambda: statement(
            do(
                whose_dog(),
                "wohnen",
                Phrase(("in",), "in", "dat", relative("house", lambda that: do(he(), "bauen", that, tense="past"))),
            )
        ),
        "A woman whose dog barks lives in the house that he built.",
        "Eine Frau, deren Hund bellt, wohnt in dem Haus, das er baute.",
        straight(12),
    ),
    (
        lambda: statement(do(they(), "trinken", np("milk", "bare", adjective="cold"))),
        "They drink cold milk.",
        "Sie trinken kalte Milch.",
        straight(4),
    ),
    (
        lambda: statement(do(np("student"), "danken", np("neighbour", (1, "sg", ""), adjective="old"))),
        "The student thanks my old neighbour.",
        "Der Student dankt meinem alten Nachbarn.",
        straight(6),
    ),
    (
        lambda: statement(
            do(he(), "spielen", Fixed(("the", "piano"), ("Klavier",), ((0, 0), (1, 0)), "noun"), kinds=("instrument",))
        ),
        "He plays the piano.",
        "Er spielt Klavier.",
        "0-0 1-1 2-2 3-2",
    ),
    (
        lambda: statement(
            do(
                she(),
                "kaufen",
                np("hat"),
                second=("and", "und", do(she(), "zeigen", Pronoun(1, "pl", ""), it("hat"))),
            )
        ),
        "She buys the hat and shows it to us.",
        "Sie kauft den Hut und zeigt ihn uns.",
        "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7 8-7",
    ),
    (
        lambda: statement(fronted(do(np("girl"), "bleiben", place("in", "in", "kitchen"), progressive=True), rain())),
        "Because of the rain, the girl is staying in the kitchen.",
        "Wegen des Regens bleibt das Mädchen in der Küche.",
        "0-0 1-0 2-1 3-2 4-4 5-5 6-3 7-3 8-6 9-7 10-8",
    ),
    (
        lambda: statement(
            do(
                np("cook"),
                "aufmachen",
                np("bottle", "bare", "pl", numeral="3"),
                tense="past",
                adjuncts=[Adjunct("point", adverb("immediately", "sofort"))],
                leading=Attached(("after",), "nachdem", do(np("guest", number="pl"), "ankommen", tense="pluperfect")),
            )
        ),
        "After the guests had arrived, the cook immediately opened three bottles.",
        "Nachdem die Gäste angekommen waren, machte der Koch sofort drei Flaschen auf.",
        "0-0 1-1 2-2 3-4 4-3 5-6 6-7 7-8 8-5 8-11 9-9 10-10",
    ),
    (
        lambda: statement(do(Pronoun(2, "sg", ""), "freuen", np("festival", "this"))),
        "You look forward to this festival.",
        "Du freust dich auf dieses Fest.",
        "0-0 1-1 1-2 2-1 3-3 4-4 5-5",
    ),
]


@pytest.mark.parametrize(("make", "english", "german", "links"), PAIRS, ids=[pair[1] for pair in PAIRS])
def test_a_pair_is_right_in_every_detail(make, english, german, links):
    sentence = make()
    sentence.make_source()
    sentence.make_target()
    pair = to_pair(sentence, "german")
    assert pair.source == english
    assert pair.target == german
    assert pharaoh(pair.alignment) == links
