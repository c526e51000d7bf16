"""What must hold in every sentence of the demo grammar: word order, English and alignment.

The sentences' own analysis (role, case, clause ... of each word) says what a word is meant to be; tables and rules
written here, apart from the grammar's, say what it must then look like and where it must stand.
"""

from __future__ import annotations

import re

import pytest

from nmt.data.demo import source_text, to_pair
from nmt.data.demo_clause import Attached
from nmt.data.demo_morphology import english_number, german_number, indefinite_article
from nmt.data.demo_syntax import NounPhrase, Phrase
from tests.unit.data.demo_sample import (
    analysed_sentences,
    clauses_of,
    comma_after,
    first_of,
    last,
    words_of,
)


@pytest.fixture(scope="module")
def sample():
    return analysed_sentences()


@pytest.fixture(scope="module")
def pairs(sample):
    return [to_pair(sentence, "german") for sentence in sample]


# ---- word order


def test_main_clauses_have_the_verb_second(sample):
    """Exactly one constituent stands before the finite verb, and the subject follows at once if it is not that one."""
    inverted = straight = 0
    for sentence, clause, own in clauses_of(sample, "main"):
        if clause.elliptic:
            continue
        verb = next(index for index, word in own if word.role == "finite")
        start = min(index for index, _ in own)
        before = sentence.words[start:verb]
        opener = next((word for word in before if word.role == "connector"), None)
        subject_head = first_of(sentence, head_of(clause.subject))
        subject = sentence.words.index(subject_head)
        if opener or clause.leading or clause.fronted:
            if opener:
                assert len(before) == 1
            if clause.leading:
                assert not before or before == [opener]  # its own words start with the verb
            following = sentence.words[verb + 1]
            assert following.role == "reflexive" or subject == verb + 1
            inverted += 1
        else:
            assert subject == start
            assert {id(word.phrase) for word in before if word.role not in ("coordinator",)} <= inside(clause.subject)
            straight += 1
    assert inverted > 200
    assert straight > 200


def head_of(nominal):
    return nominal.members[0] if hasattr(nominal, "members") else nominal


def inside(nominal):
    """Ids of the noun phrases that belong to a nominal."""
    if hasattr(nominal, "members"):
        return {id(nominal)}.union(*(inside(member) for member in nominal.members))
    found = {id(nominal)}
    for modifier in getattr(nominal, "modifiers", ()):
        found |= inside(modifier.nominal) | {id(None)}
    return found | ({id(None)} | everything(nominal.relative) if getattr(nominal, "relative", None) else set())


def everything(clause):
    found = inside(clause.subject)
    for argument in clause.arguments:
        filler = argument.filler
        if isinstance(filler, Phrase):
            found |= inside(filler.nominal)
        elif not isinstance(filler, Attached) and hasattr(filler, "gender"):
            found |= inside(filler)
    for adjunct in clause.adjuncts:
        if isinstance(adjunct.filler, Phrase):
            found |= inside(adjunct.filler.nominal)
    return found


def test_subordinate_clauses_have_the_verb_last(sample):
    for sentence, clause, own in clauses_of(sample, "final"):
        words = [(index, word) for index, word in own if word.role != "coordinator"]
        index, word = words[-1]
        assert word.role == "finite", [entry.text for _, entry in own]
        if clause.second is None:
            assert (
                comma_after(sentence, index)
                or index == last(sentence)
                or clause.elliptic
                or index + 1 in second_of(sentence, clause)
            )


def second_of(sentence, clause):
    return {index for index, word in enumerate(sentence.words) if word.role == "coordinator" and word.clause is clause}


def test_subordinators_and_relatives_open_their_clause_after_a_comma(sample):
    for sentence in sample:
        for index, word in enumerate(sentence.words):
            opens = word.role == "subjunction" or (word.role == "relative" and word.clause.realised == "final")
            if not opens or index == 0:
                continue
            comma = index - 1
            if word.role == "relative" and sentence.words[comma].role == "preposition":
                comma -= 1  # mit dem
            if word.role == "subjunction":
                assert comma_after(sentence, comma) or sentence.words[comma].role == "coordinator"
            else:
                assert comma_after(sentence, comma)


def test_questions_begin_with_the_verb_or_the_question_word(sample):
    kinds = set()
    for sentence, clause, own in clauses_of(sample, "question"):
        assert sentence.question
        first = sentence.words[0]
        if clause.moved is None:
            assert first.role == "finite"
        else:
            assert first.role in ("interrogative", "determiner")
            finite = next(index for index, word in own if word.role == "finite")
            assert all(word.clause is not clause or word.role != "finite" for word in sentence.words[:finite])
        kinds.add(first.text)
    assert kinds >= {"warum", "wann", "wer", "was"}


def test_separable_prefixes(sample):
    """Last in a main clause, joined in a final one, with zu or ge in between in infinitive and participle."""
    seen = {"apart": 0, "joined": 0, "zu": 0, "participle": 0, "infinitive": 0}
    for realised in ("main", "question", "final", "infinitive"):
        for _, clause, own in clauses_of(sample, realised):
            verb = clause.frame.german if clause.frame else None
            if verb is None or not verb.prefix:
                assert not [word for _, word in own if word.role == "prefix"]
                continue
            words = [word for _, word in own if word.role != "coordinator"]
            by_role = {word.role: word for word in words}
            if "participle" in by_role:
                assert by_role["participle"].text == verb.prefix + verb.participle
                seen["participle"] += 1
            elif "infinitive" in by_role:
                assert by_role["infinitive"].text == verb.prefix + verb.infinitive
                seen["infinitive"] += 1
            elif realised == "infinitive":
                assert words[-1].text == verb.prefix + "zu" + verb.infinitive
                seen["zu"] += 1
            elif realised == "final":
                assert words[-1].text.startswith(verb.prefix)
                seen["joined"] += 1
            else:
                assert words[-1].role == "prefix"
                assert words[-1].text == verb.prefix
                assert not by_role["finite"].text.startswith(verb.prefix)
                seen["apart"] += 1
    assert min(seen.values()) > 20, seen


def test_the_bracket_closes_after_everything_else_of_the_clause(sample):
    closed = 0
    for _, _, own in clauses_of(sample, "main", "question"):
        words = [word for _, word in own if word.role != "coordinator"]
        if any(word.role in ("participle", "infinitive") for word in words):
            assert words[-1].role in ("participle", "infinitive"), [word.text for word in words]
            closed += 1
    assert closed > 300


def test_perfect_auxiliary(sample):
    """sein with motion and change of state, haben with the rest."""
    motion = {"gehen", "laufen", "fahren", "reisen", "fliegen", "aufstehen", "einschlafen", "ankommen", "folgen"}
    motion |= {"aufwachen", "zurückkommen", "ausgehen", "weglaufen", "wegfliegen", "schwimmen", "verschwinden"}
    motion |= {"zurückkehren", "bleiben"}
    seen = set()
    for _, clause, own in clauses_of(sample, "main", "final", "question"):
        if clause.tense not in ("perfect", "pluperfect") or clause.frame is None or clause.passive:
            continue
        infinitive = clause.frame.german.prefix + clause.frame.german.infinitive
        moves = infinitive in motion and not any(a.complement.case == "acc" for a in clause.arguments)
        finite = next(word.text for _, word in own if word.role == "finite")
        assert (finite in ("bin", "bist", "ist", "sind", "war", "warst", "waren")) == moves, (infinitive, finite)
        seen.add(infinitive)
    assert len(seen & motion) > 5


def test_negation(sample):
    """kein with an indefinite object, nicht otherwise, never both."""
    for _, clause, own in clauses_of(sample, "main", "final", "question", "infinitive"):
        negations = [word for _, word in own if word.role in ("kein", "negation")]
        assert len(negations) == int(clause.negated), [word.text for _, word in own]
    assert words_of(sample, "kein")
    assert words_of(sample, "negation")


def test_no_comma_before_und_unless_a_clause_ends_there(sample):
    for sentence in sample:
        for index, word in enumerate(sentence.words[1:], start=1):
            if word.role == "coordinator" and word.text in ("und", "oder") and comma_after(sentence, index - 1):
                before = sentence.words[index - 1].clause
                assert before is not word.clause
                assert before is not None
                assert before.realised in ("final", "infinitive")


# ---- English


def test_english_articles_and_agreement(pairs):
    text = " ".join(pair.source for pair in pairs)
    for article, following in re.findall(r"\b(an?) (\w+)", text, flags=re.IGNORECASE):
        vowel = (following[0] in "aeiou" and following not in ("useful",)) or following == "honest"
        assert article.lower() == ("an" if vowel else "a"), (article, following)
    for subject, verb in re.findall(
        r"\b([Hh]e|[Ss]he|[Ii]t|[Tt]hey|[Ww]e|[Yy]ou) (is|are|was|were|has|have|does|do)\b", text
    ):
        plural = subject.lower() in ("they", "we", "you")
        assert (verb in ("are", "were", "have", "do")) == plural or (verb in ("have", "do", "was")), (subject, verb)
    for verb in re.findall(r"\b(?:did|does|do|will|can|must)(?: not)? (\w+(?:ed|oke|ought))\b", text):
        assert verb in ("need", "feed", "stroke"), verb


def test_indefinite_article_by_sound():
    words = {"apple": "an", "useful": "a", "honest": "an", "old": "an", "union": "a", "man": "a", "hour": "an"}
    assert {word: indefinite_article(word) for word in words} == words


def test_numbers():
    assert " ".join(english_number(247)) == "two hundred and forty-seven"
    assert german_number(247) == "zweihundertsiebenundvierzig"
    expected = {2: "zwei", 12: "zwölf", 16: "sechzehn", 17: "siebzehn", 21: "einundzwanzig", 30: "dreißig"}
    expected |= {100: "einhundert", 110: "einhundertzehn", 999: "neunhundertneunundneunzig"}
    assert {value: german_number(value) for value in expected} == expected
    assert " ".join(english_number(100)) == "one hundred"


def test_english_past_is_never_mistaken_for_the_present(sample):
    """*they put* could be both, so it is only ever the present."""
    for _, clause, _ in clauses_of(sample, "main", "final"):
        if clause.frame is not None and clause.frame.ambiguous and clause.tense == "past":
            third = clause.subject.person == 3 and clause.subject.number == "sg"
            assert third or clause.progressive or clause.negated or clause.modal or clause.passive


# ---- alignment

CONTENT = {"noun", "name", "adjective", "finite", "participle", "infinitive", "zu infinitive", "prefix", "numeral"}
CONTENT |= {"predicate", "adverb", "pronoun", "relative", "subjunction", "coordinator", "negation", "kein", "definite"}
CONTENT |= {"contraction", "indefinite", "possessive", "determiner", "genitive", "reflexive", "connector"}


def test_every_word_that_has_a_counterpart_is_linked(sample):
    for sentence in sample:
        linked = {id(source) for word in sentence.words for source in word.sources}
        assert linked == {id(source) for source in sentence.source}, source_text(sentence)
        for word in sentence.words:
            if word.role in CONTENT:
                assert word.sources, (word.text, word.role)


def test_names_numerals_and_nouns_link_to_one_place_only(sample):
    for sentence in sample:
        for word in sentence.words:
            if word.role == "noun" and isinstance(word.phrase, NounPhrase):
                noun = word.phrase.noun
                expected = noun.english_plural if word.number == "pl" else noun.english
                assert word.sources[-1].text == expected
                assert len(word.sources) == 1 or word.case in ("dat", "gen")  # with guests: Gästen
            if word.role == "numeral" and word.text.isdigit():
                assert [source.text for source in word.sources] == [word.text]
