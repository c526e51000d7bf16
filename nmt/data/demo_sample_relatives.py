"""Draws relative clauses of the demo grammar: what the pronoun is in them, and a verb that can have that."""

from __future__ import annotations

from nmt.data.demo_clause import Adjunct, Clause
from nmt.data.demo_frames import frames_of, frames_with_argument, frames_with_subject
from nmt.data.demo_lexicon import adjectives_for
from nmt.data.demo_morphology import Noun
from nmt.data.demo_nouns import nouns_of, places
from nmt.data.demo_sample_clauses import ClauseSampler, Wanted
from nmt.data.demo_syntax import NounPhrase, Phrase, RelativePronoun


class RelativeSampler(ClauseSampler):
    """Draws the relative clause of a noun."""

    def relative(self, noun: Noun, number: str, budget: int, setting: str, depth: int) -> Clause:
        """A relative clause: its pronoun is the subject, an object, the object of a preposition, or a possessor."""
        draw = self.draw
        wanted = Wanted("past" if setting == "past" else "present", depth)
        pronoun = RelativePronoun(noun, number)
        as_subject, as_argument = frames_with_subject(noun), frames_with_argument(noun)
        person = "person" in noun.tags or "animal" in noun.tags
        kind = draw.weighted(
            (
                ("copula", 0.1 if adjectives_for(noun) else 0.0),
                ("subject", (0.45 if person else 0.15) if as_subject else 0.0),
                ("argument", 0.4 if as_argument else 0.0),
                ("whose", 0.1 if "person" in noun.tags else 0.0),
                ("where", 0.3 if noun in places() else 0.0),
            )
        )
        if kind == "copula":
            predicate = self.predicate(draw.pick(adjectives_for(noun)), budget > 3)
            return Clause(pronoun, predicate=predicate, tense=wanted.setting, moved=pronoun)
        if kind == "subject":
            clause = self.with_frame(draw.pick(as_subject), budget, wanted, pronoun)
            clause.moved = pronoun
            return clause
        if kind == "whose":
            return self._whose(pronoun, budget, wanted)
        if kind == "where":
            english, german, *_ = places()[noun]
            pronoun.after_preposition = True
            frame = draw.pick(frames_of(draw.pick(("intransitive", "accusative"))))
            clause = self.with_frame(frame, budget - 2, wanted)
            clause.adjuncts = [adjunct for adjunct in clause.adjuncts if adjunct.kind not in ("place", "company")]
            clause.adjuncts.append(Adjunct("place", Phrase((english,), german, "dat", pronoun)))
            clause.moved = clause.adjuncts[-1].filler
            return clause
        frame, index = draw.pick(as_argument)
        complement = frame.complements[index]
        dative = complement.case == "dat" and bool(complement.english)
        pronoun.after_preposition = complement.kind == "prepositional" or dative
        clause = self.with_frame(frame, budget - 1, wanted, given={index: pronoun})
        clause.moved = clause.arguments[index].filler
        return clause

    def _whose(self, pronoun: RelativePronoun, budget: int, wanted: Wanted) -> Clause:
        """One whose pronoun is a possessor: *whose dog sleeps*, *whose book she reads*."""
        draw = self.draw
        owned = draw.pick(nouns_of("kin+pet+car+bicycle+house+coat+suitcase+book"))
        whose = NounPhrase(owned, "sg", "whose", whose=pronoun)
        options = frames_with_subject(owned)
        if options and draw.chance(0.5):
            clause = self.with_frame(draw.pick(options), budget - 1, wanted, whose)
        else:
            objects = [(frame, index) for frame, index in frames_with_argument(owned) if frame.kinds[index] == "object"]
            frame, index = draw.pick(objects)
            clause = self.with_frame(frame, budget - 1, wanted, given={index: whose})
        clause.moved = whose
        return clause
