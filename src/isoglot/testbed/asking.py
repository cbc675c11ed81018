"""Questions whose answer is a span of their context: who did it, a country's currency or language.

Nothing else in the context answers the question: no other sentence has its verb, or its country
and relation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoglot.testbed.languages.nodes import RELATION, SUBJECT
from isoglot.testbed.meaning import KINDS, Clause, Compound, Fact, Meaning, Thing
from isoglot.testbed.records import Question

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.testbed.compose import Composer, Topic
    from isoglot.testbed.draws import Draws
    from isoglot.testbed.languages import Grammar
    from isoglot.testbed.phrase import Sentence

ASKABLE = {"official_language": "official", "currency": "currency"}
"""Relation -> the wording asked about; the question's is the same with a question mark."""
CONTEXT = 4
"""Sentences in a context."""


def questions(composer: Composer, grammar: Grammar, draws: Iterable[Draws]) -> Iterator[Question]:
    """One question about every drawn context."""
    for draw in draws:
        answering, asked = _who(composer, draw) if draw.chance(60) else _what(composer, draw)
        before = draw.below(CONTEXT)
        others = _others(composer, draw, answering)
        sentences = [*others[:before], answering, *others[before:]]
        space = "" if grammar.language == "zh" else " "
        texts = [grammar.text(meaning) for meaning in sentences]
        offset = sum(len(text) + len(space) for text in texts[:before])
        start, end = _answer(grammar.sentence(answering), answering)
        context = space.join(texts)
        yield Question(
            context=context,
            question=grammar.text(asked, question=True),
            answer=context[offset + start : offset + end],
            answer_start=offset + start,
        )


def _who(composer: Composer, draws: Draws) -> tuple[Meaning, Meaning]:
    clause = composer.clause(draws)
    while clause.negated or clause.object is None:
        clause = composer.clause(draws)
    asked = clause._replace(subject=Thing("who"), place="", time="", fronted=False)
    return clause, asked


def _what(composer: Composer, draws: Draws) -> tuple[Meaning, Meaning]:
    """A fact of which there is one only: a country's one official language, or its currency."""
    while True:
        country = draws.choice(composer.entities.countries)
        triples = composer.entities.by_subject[country]
        triple = draws.choice(triples)
        same = [other for other in triples if other.relation == triple.relation]
        if triple.relation in ASKABLE and len(same) == 1:
            wording = ASKABLE[triple.relation]
            fact = Fact(wording, triple.subject, triple.object)
            return fact, fact._replace(wording=f"{wording}?")


def _others(composer: Composer, draws: Draws, answering: Meaning) -> list[Meaning]:
    """Sentences that do not answer the question; they share a topic."""
    topic: Topic = composer.topic(draws)
    if isinstance(answering, Clause):
        topic = topic._replace(place=answering.place if ":" not in answering.place else "")
        topic = topic._replace(place=topic.place or composer.topic(draws).place)
    found: list[Meaning] = []
    while len(found) < CONTEXT - 1:
        meaning = composer.meaning(draws, topic)
        if meaning not in found and not _confusable(meaning, answering):
            found.append(meaning)
    return found


def _confusable(meaning: Meaning, answering: Meaning) -> bool:
    if isinstance(meaning, Compound):
        return _confusable(meaning.first, answering) or _confusable(meaning.second, answering)
    if isinstance(meaning, Clause) and isinstance(answering, Clause):
        return meaning.verb == answering.verb
    if isinstance(meaning, Fact) and isinstance(answering, Fact):
        return meaning.subject == answering.subject
    return False


def _answer(sentence: Sentence, answering: Meaning) -> tuple[int, int]:
    """The characters of the answer: the subject without its case marker, or the fact's object."""
    if isinstance(answering, Fact):
        found = next(m for m in sentence.mentions() if m.entity == answering.object)
        return found.start, found.end
    marker = (SUBJECT * KINDS + RELATION[0],)
    words = [
        word
        for word in sentence.words
        if word.nodes[0] // KINDS == SUBJECT and word.nodes != marker
    ]
    return words[0].start, words[-1].start + len(words[-1].form)
