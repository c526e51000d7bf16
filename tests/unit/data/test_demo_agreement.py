"""What must hold in every sentence of the demo grammar: forms and agreement.

The sentences' own analysis (role, case, clause ... of each word) says what a word is meant to be; tables and rules
written here, apart from the grammar's, say what it must then look like and where it must stand.
"""

from __future__ import annotations

import re

import pytest

from nmt.data.demo_morphology import german_verb
from nmt.data.demo_nouns import nouns
from nmt.data.demo_syntax import Name, NounPhrase, Phrase, Pronoun, RelativePronoun
from tests.unit.data.demo_sample import (
    analysed_sentences,
    clauses_of,
    column,
    first_of,
    vars_of,
    words_of,
)


@pytest.fixture(scope="module")
def sample():
    return analysed_sentences()


# ---- noun phrases

DEFINITE = {
    "nom": {"m": "der", "f": "die", "n": "das", "pl": "die"},
    "acc": {"m": "den", "f": "die", "n": "das", "pl": "die"},
    "dat": {"m": "dem", "f": "der", "n": "dem", "pl": "den"},
    "gen": {"m": "des", "f": "der", "n": "des", "pl": "der"},
}
CONTRACTED = {"im": "dem", "am": "dem", "zum": "dem", "vom": "dem", "beim": "dem", "zur": "der", "ins": "das"}


def test_definite_articles(sample):
    for word in words_of(sample, "definite"):
        assert word.text == DEFINITE[word.case][column(word)], vars_of(word)
    for word in words_of(sample, "contraction"):
        assert CONTRACTED[word.text] == DEFINITE[word.case][column(word)], vars_of(word)


def strong_ending(word):
    """der -> er, die -> e, das -> es: what dieser and strong adjectives end in."""
    return {"der": "er", "die": "e", "das": "es", "den": "en", "dem": "em", "des": "es"}[
        DEFINITE[word.case][column(word)]
    ]


def test_other_determiners(sample):
    for word in words_of(sample, "indefinite", "kein", "possessive"):
        bare = (column(word) in ("m", "n") and word.case == "nom") or (column(word) == "n" and word.case == "acc")
        stem = re.fullmatch(r"(ein|kein|mein|dein|sein|ihr|unser)(e|er|es|en|em)?", word.text)
        assert stem, word.text
        assert (stem[2] or "") == ("" if bare else strong_ending(word)), vars_of(word)
    for word in words_of(sample, "determiner"):
        stem = re.fullmatch(r"(dies|jed|welch|viel|einig|mehrer)(.+)", word.text)
        assert stem, word.text
        assert stem[2] == strong_ending(word), vars_of(word)


def test_adjective_endings(sample):
    """By the schoolbook's rule: if the determiner shows the case, -e or -en; if not, the adjective shows it."""
    before = None
    checked = set()
    for sentence in sample:
        for word in sentence.words:
            if word.role == "adjective":
                phrase = word.phrase
                same = before is not None and before.phrase is phrase
                determiner = first_of(sentence, phrase)
                shows = determiner.role in ("definite", "contraction", "determiner") or (
                    determiner.role in ("indefinite", "kein", "possessive")
                    and determiner.text not in ("ein", "kein", "mein", "dein", "sein", "ihr", "unser")
                )
                if determiner.text.startswith(("viel", "einig", "mehrer")):
                    shows = False
                if shows:
                    weak_e = word.number == "sg" and (
                        word.case == "nom" or (word.case == "acc" and word.gender in ("f", "n"))
                    )
                    ending = "e" if weak_e else "en"
                elif word.case == "gen" and column(word) in ("m", "n"):
                    ending = "en"
                else:
                    ending = strong_ending(word)
                assert word.text.endswith(ending), (vars_of(word), determiner.text)
                assert not same or before.role != "adjective" or before.text.endswith(ending)
                checked.add((shows, word.case, column(word)))
            before = word
    assert len(checked) >= 20


def test_words_of_a_noun_phrase_agree(sample):
    for sentence in sample:
        for word in sentence.words:
            if isinstance(word.phrase, NounPhrase) and word.role not in ("relative", "genitive"):
                head = first_of(sentence, word.phrase)
                assert word.number == word.phrase.number
                assert word.gender == word.phrase.noun.gender
                assert head.role == "genitive" or word.case == head.case


WEAK = {"Junge": "Jungen", "Student": "Studenten", "Nachbar": "Nachbarn", "Kollege": "Kollegen", "Kunde": "Kunden"}
WEAK |= {"Tourist": "Touristen", "Polizist": "Polizisten", "Zeuge": "Zeugen", "Soldat": "Soldaten", "Löwe": "Löwen"}
WEAK |= {"Journalist": "Journalisten", "Pilot": "Piloten", "Bauer": "Bauern", "Affe": "Affen", "Bär": "Bären"}


def test_weak_masculines(sample):
    seen = set()
    for word in words_of(sample, "noun"):
        if isinstance(word.phrase, NounPhrase) and word.phrase.noun.german in WEAK:
            nominative = word.number == "sg" and word.case == "nom"
            singular = word.phrase.noun.german
            assert word.text == (singular if nominative else WEAK[singular]), vars_of(word)
            seen.add(singular)
    assert len(seen) == len(WEAK)


NOUNS = {
    "Mann": ("Mannes", "Männer", "Männern"),
    "Frau": ("Frau", "Frauen", "Frauen"),
    "Kind": ("Kindes", "Kinder", "Kindern"),
    "Lehrer": ("Lehrers", "Lehrer", "Lehrern"),
    "Apfel": ("Apfels", "Äpfel", "Äpfeln"),
    "Auto": ("Autos", "Autos", "Autos"),
    "Mädchen": ("Mädchens", "Mädchen", "Mädchen"),
    "Zeitung": ("Zeitung", "Zeitungen", "Zeitungen"),
    "Katze": ("Katze", "Katzen", "Katzen"),
    "Vater": ("Vaters", "Väter", "Vätern"),
    "Hotel": ("Hotels", "Hotels", "Hotels"),
    "Museum": ("Museums", "Museen", "Museen"),
    "Maus": ("Maus", "Mäuse", "Mäusen"),
    "Königin": ("Königin", "Königinnen", "Königinnen"),
}


def test_noun_forms():
    lexicon = {noun.german: noun for noun in nouns()}
    for singular, (genitive, plural, dative_plural) in NOUNS.items():
        noun = lexicon[singular]
        assert [noun.form(case, "sg") for case in ("nom", "acc", "dat", "gen")] == [*[singular] * 3, genitive]
        assert [noun.form(case, "pl") for case in ("nom", "acc", "gen")] == [plural] * 3
        assert noun.form("dat", "pl") == dative_plural


def test_nouns_are_written_with_a_capital_and_other_words_are_not(sample):
    proper = {"noun", "name", "genitive"}
    for sentence in sample:
        for word in sentence.words:
            if word.role in proper:
                assert word.text[0].isupper() or word.text.isdigit(), word.text
            elif word.role not in ("time", "adverb"):  # these have nouns in them: am Montag, nach Hause
                assert word.text[0].islower() or word.text.isdigit(), (word.text, word.role)


PREPOSITIONS = {"mit": "dat", "aus": "dat", "nach": "dat", "bei": "dat", "zu": "dat", "von": "dat", "für": "acc"}
PREPOSITIONS |= {"um": "acc", "wegen": "gen", "trotz": "gen", "während": "gen", "über": "acc"}


def test_prepositions_govern_their_case(sample):
    for sentence in sample:
        for word, following in zip(sentence.words, sentence.words[1:], strict=False):
            if word.role == "preposition" and following.case:
                assert following.case == PREPOSITIONS.get(word.text, following.case)
                assert word.text in PREPOSITIONS or word.text in ("in", "an", "auf", "unter", "neben", "hinter", "vor")


def test_two_way_prepositions_distinguish_where_from_whereto(sample):
    seen = set()
    for _, clause, _ in clauses_of(sample, "main", "final", "question", "infinitive"):
        for argument in clause.arguments:
            if argument.complement.kind in ("put", "on", "loc") and isinstance(argument.filler, Phrase):
                assert argument.filler.case == ("acc" if argument.complement.kind == "put" else "dat")
                seen.add(argument.complement.kind)
    assert seen == {"put", "on", "loc"}


UNCONTRACTED = {("in", "dem"), ("an", "dem"), ("zu", "dem"), ("zu", "der"), ("von", "dem"), ("in", "das")}


def coordinated(sample):
    """Ids of the noun phrases that stand in a list after a preposition: von dem Mann und der Frau."""
    found = set()
    for _, clause, _ in clauses_of(sample, "main", "final", "question", "infinitive"):
        for part in (*clause.arguments, *clause.adjuncts):
            found |= {id(member) for member in getattr(getattr(part.filler, "nominal", None), "members", ())}
    return found


def test_prepositions_contract_unless_a_relative_clause_follows(sample):
    uncontracted = contracted = 0
    listed = coordinated(sample)
    for sentence in sample:
        for word, following in zip(sentence.words, sentence.words[1:], strict=False):
            if (word.text, following.text) in UNCONTRACTED and following.role == "definite":
                assert following.phrase.relative is not None or id(following.phrase) in listed
                uncontracted += 1
            if word.role == "contraction":
                assert word.phrase.relative is None
                assert id(word.phrase) not in listed
                assert len({source.text for source in word.sources}) >= 2
                contracted += 1
    assert contracted > 100
    assert uncontracted > 5


# ---- agreement across the clause

GOVERNED = {"helfen": "dat", "danken": "dat", "folgen": "dat", "gratulieren": "dat", "zuhören": "dat", "sehen": "acc"}
GOVERNED |= {"verzeihen": "dat", "lesen": "acc", "kaufen": "acc", "anrufen": "acc", "aufmachen": "acc"}


def test_verbs_govern_their_case(sample):
    seen = set()
    for sentence, clause, _ in clauses_of(sample, "main", "final", "question", "infinitive"):
        if clause.frame is None or len(clause.arguments) != 1:
            continue
        infinitive = clause.frame.german.prefix + clause.frame.german.infinitive
        filler = clause.arguments[0].filler
        if infinitive in GOVERNED and isinstance(filler, NounPhrase | Pronoun | Name | RelativePronoun):
            word = first_of(sentence, filler)
            if word.role not in ("genitive", "relative") or isinstance(filler, RelativePronoun):
                assert word.case == GOVERNED[infinitive], infinitive
                seen.add(infinitive)
    assert len(seen) >= 10


def test_subjects_are_nominative_and_agree_with_the_verb(sample):
    endings = {(1, "pl"): "n", (3, "pl"): "n"}
    for sentence, clause, own in clauses_of(sample, "main", "final", "question"):
        finite = [word for _, word in own if word.role == "finite"]
        assert len(finite) == 1
        subject = clause.subject
        assert (finite[0].person, finite[0].number) == (subject.person, subject.number)
        ending = endings.get((subject.person, subject.number))
        if ending:
            assert finite[0].text.endswith(ending) or finite[0].text == "sind", finite[0].text
        if subject.person == 2:
            assert finite[0].text.endswith("st"), finite[0].text
        if isinstance(subject, NounPhrase | Pronoun | Name) and not clause.elliptic:
            head = first_of(sentence, subject)
            assert head.case == "nom" or head.role in ("genitive", "relative")


VERBS = {
    "lesen liest las gelesen": ("lese", "liest", "liest", "lesen", "las", "last", "lasen"),
    "arbeiten": ("arbeite", "arbeitest", "arbeitet", "arbeiten", "arbeitete", "arbeitetest", "arbeiteten"),
    "auf|machen": ("mache", "machst", "macht", "machen", "machte", "machtest", "machten"),
    "öffnen": ("öffne", "öffnest", "öffnet", "öffnen", "öffnete", "öffnetest", "öffneten"),
    "lächeln": ("lächle", "lächelst", "lächelt", "lächeln", "lächelte", "lächeltest", "lächelten"),
    "finden findet fand gefunden": ("finde", "findest", "findet", "finden", "fand", "fandest", "fanden"),
    "tanzen": ("tanze", "tanzt", "tanzt", "tanzen", "tanzte", "tanztest", "tanzten"),
    "gehen geht ging gegangen +sein": ("gehe", "gehst", "geht", "gehen", "ging", "gingst", "gingen"),
    "wissen weiß wusste gewusst +du=weißt": ("weiß", "weißt", "weiß", "wissen", "wusste", "wusstest", "wussten"),
}


@pytest.mark.parametrize("text", VERBS)
def test_conjugation(text):
    verb = german_verb(text)
    present = [verb.finite(False, person, "sg") for person in (1, 2, 3)]
    past = [verb.finite(True, 1, "sg"), verb.finite(True, 2, "sg"), verb.finite(True, 3, "pl")]
    assert (*present, verb.finite(False, 3, "pl"), *past) == VERBS[text]


def test_participles():
    participles = {"auf|machen": "gemacht", "besuchen": "besucht", "reparieren": "repariert", "öffnen": "geöffnet"}
    participles |= {"arbeiten": "gearbeitet", "erzählen": "erzählt", "füttern": "gefüttert"}
    assert {text: german_verb(text).participle for text in participles} == participles


RELATIVES = {
    "nom": {"m": "der", "f": "die", "n": "das", "pl": "die"},
    "acc": {"m": "den", "f": "die", "n": "das", "pl": "die"},
    "dat": {"m": "dem", "f": "der", "n": "dem", "pl": "denen"},
}


def test_relative_pronouns_agree_with_their_antecedent(sample):
    cases = set()
    for sentence in sample:
        for word in sentence.words:
            if word.role != "relative" or not isinstance(word.phrase, RelativePronoun):
                continue
            assert word.text == RELATIVES[word.case][column(word)]
            assert word.phrase.antecedent.gender == word.gender
            cases.add((word.case, column(word)))
    assert len(cases) >= 10


def test_whose_agrees_with_the_possessor_not_with_the_possession(sample):
    seen = set()
    for word in (word for sentence in sample for word in sentence.words):
        if word.role == "relative" and isinstance(word.phrase, NounPhrase):
            owner = word.phrase.whose
            assert word.text == ("deren" if owner.number == "pl" or owner.gender == "f" else "dessen")
            seen.add(word.text)
    assert seen == {"deren", "dessen"}


def test_it_has_the_gender_of_its_antecedent(sample):
    forms = {("m", "nom"): "er", ("m", "acc"): "ihn", ("f", "nom"): "sie", ("f", "acc"): "sie"}
    forms |= {("n", "nom"): "es", ("n", "acc"): "es"}
    seen = set()
    for sentence in sample:
        for word in sentence.words:
            if word.role == "pronoun" and word.phrase.thing and word.number == "sg":
                assert word.sources[0].text == "it"
                assert word.text == forms[word.gender, word.case]
                before = [noun for noun in sentence.words[: sentence.words.index(word)] if noun.role == "noun"]
                assert any(noun.gender == word.gender and noun.number == "sg" for noun in before)
                seen.add((word.gender, word.case))
    assert len(seen) >= 5


def test_reflexives_agree_with_the_subject(sample):
    forms = {(1, "sg"): "mich", (2, "sg"): "dich", (1, "pl"): "uns"}
    for word in words_of(sample, "reflexive"):
        assert word.text == forms.get((word.person, word.number), "sich")
