"""Analysed sentences of the demo grammar, and questions to ask of them: what the tests of its German share."""

from functools import cache

from nmt.data.demo import sentences
from nmt.data.demo_sentence import Sentence

SAMPLE = 1800


@cache
def analysed_sentences() -> list[Sentence]:
    """The same for every test: not to be changed."""
    stream = sentences(seed=20, min_words=3, max_words=60, mean_words=16.0)
    return [next(stream) for _ in range(SAMPLE)]


def words_of(sample, *roles):
    found = [word for sentence in sample for word in sentence.words if word.role in roles]
    assert len(found) > 20, f"the sample says too little about {roles}"
    return found


def clauses_of(sample, *realised):
    """Each clause with the words that are its own: not those of clauses inside it."""
    found = []
    for sentence in sample:
        own = {}
        for index, word in enumerate(sentence.words):
            if word.clause is not None:
                own.setdefault(id(word.clause), (word.clause, []))[1].append((index, word))
        found += [(sentence, clause, items) for clause, items in own.values() if clause.realised in realised]
    assert len(found) > 20, f"the sample has too few clauses that are {realised}"
    return found


def comma_after(sentence, index):
    return index in sentence.target_commas


def last(sentence):
    return len(sentence.words) - 1


def column(word):
    return "pl" if word.number == "pl" else word.gender


def vars_of(word):
    return word.text, word.role, word.case, word.gender, word.number


def first_of(sentence, phrase):
    return next(word for word in sentence.words if word.phrase is phrase)
