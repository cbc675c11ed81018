"""Labeled words and spans: questions with answers, tagged words, bilingual dictionaries.

Each function reads a composer, a grammar and one random generator per example; it yields records
whose spans and tags come from the sentence's own analysis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoglot.testbed.lexicon import NOUN_CATEGORIES
from isoglot.testbed.meaning import (
    CASE,
    HEAD,
    KINDS,
    SUBJECT,
    VERB,
    Clause,
    Compound,
    Fact,
    Meaning,
    Thing,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isoglot.testbed.compose import Composer
    from isoglot.testbed.languages import Grammar
    from isoglot.testbed.phrase import Sentence, WordForm
    from isoglot.testbed.rng import Rng

ASKABLE = {"official_language": "official", "currency": "currency"}
"""Relation -> the wording asked about; the question's wording is the same with a question mark."""
CONTEXT_SENTENCES = 4
ENTITY_TAGS = {"territory": "LOC", "continent": "LOC", "language": "LANG", "currency": "CUR"}
"""Kind of entity (before the colon of its id) -> tag."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question whose answer is a span of the context."""

    context: str
    question: str
    answer: str
    answer_start: int


@dataclass(frozen=True, slots=True)
class Tagged:
    """Words, each with a tag (entity or part of speech)."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


# --- question answering -----------------------------------------------------------------------


def questions(composer: Composer, grammar: Grammar, rngs: Iterable[Rng]) -> Iterator[Question]:
    """Who did it, or a country's currency or language; one question per context.

    No other sentence of the context answers it: none has the same verb, or the same country.
    """
    for rng in rngs:
        answering, asked = _who(composer, rng) if rng.chance(60) else _what(composer, rng)
        before = rng.below(CONTEXT_SENTENCES)
        others = _others(composer, rng, answering)
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


def _who(composer: Composer, rng: Rng) -> tuple[Meaning, Meaning]:
    clause = composer.clause(rng)
    while clause.negated or clause.object is None:
        clause = composer.clause(rng)
    asked = clause._replace(subject=Thing("who"), place="", time="", fronted=False)
    return clause, asked


def _what(composer: Composer, rng: Rng) -> tuple[Meaning, Meaning]:
    """A fact with a unique object: a country's only official language, or its currency."""
    while True:
        country = rng.choice(composer.entities.countries)
        triples = composer.entities.by_subject[country]
        triple = rng.choice(triples)
        same = [other for other in triples if other.relation == triple.relation]
        if triple.relation in ASKABLE and len(same) == 1:
            wording = ASKABLE[triple.relation]
            fact = Fact(wording, triple.subject, triple.object)
            return fact, fact._replace(wording=f"{wording}?")


def _others(composer: Composer, rng: Rng, answering: Meaning) -> list[Meaning]:
    """Sentences on one topic that do not answer the question."""
    topic = composer.topic(rng)
    if isinstance(answering, Clause):
        topic = topic._replace(place=answering.place if ":" not in answering.place else "")
        topic = topic._replace(place=topic.place or composer.topic(rng).place)
    found: list[Meaning] = []
    while len(found) < CONTEXT_SENTENCES - 1:
        meaning = composer.meaning(rng, topic)
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
    """The answer's characters: the subject without its case marker, or the fact's object."""
    if isinstance(answering, Fact):
        found = next(m for m in sentence.mentions() if m.entity == answering.object)
        return found.start, found.end
    case_marker = (SUBJECT * KINDS + CASE[0],)
    words = [
        word
        for word in sentence.words
        if word.nodes[0] // KINDS == SUBJECT and word.nodes != case_marker
    ]
    return words[0].start, words[-1].start + len(words[-1].form)


# --- tagging ----------------------------------------------------------------------------------


def ner(composer: Composer, grammar: Grammar, rngs: Iterable[Rng]) -> Iterator[Tagged]:
    """Words with BIO entity tags; two in three sentences are about a country."""
    for rng in rngs:
        about_country = rng.chance(66)
        sentence = grammar.sentence(
            composer.about_country(rng) if about_country else composer.meaning(rng)
        )
        tags = ["O"] * len(sentence.words)
        for mention in sentence.mentions():
            tag = ENTITY_TAGS[mention.entity.partition(":")[0]]
            tags[mention.first_word] = f"B-{tag}"
            for index in range(mention.first_word + 1, mention.end_word):
                tags[index] = f"I-{tag}"
        yield Tagged(sentence.forms(), tuple(tags))


def pos(composer: Composer, grammar: Grammar, rngs: Iterable[Rng]) -> Iterator[Tagged]:
    """Words with universal part-of-speech tags."""
    for rng in rngs:
        sentence = grammar.sentence(composer.meaning(rng))
        yield Tagged(sentence.forms(), tuple(word.upos for word in sentence.words))


# --- bilingual dictionaries -------------------------------------------------------------------


def dictionary(composer: Composer, first: Grammar, second: Grammar) -> list[tuple[str, str]]:
    """All concepts and entities that are one word in both languages, each pair once."""
    left, right = dict(_words(composer, first)), dict(_words(composer, second))
    pairs = {(left[key], right[key]): None for key in left if key in right}
    return list(pairs)


def _words(composer: Composer, grammar: Grammar) -> Iterator[tuple[str, str]]:
    """Concept or entity -> its word as in text; concepts of several words are left out."""
    for key, forms, tags in _tagged_phrases(composer, grammar):
        words = [form.form for form in forms if form.upos in tags]
        if len(words) == 1:
            yield key, words[0]


def _tagged_phrases(
    composer: Composer, grammar: Grammar
) -> Iterator[tuple[str, Iterable[WordForm], tuple[str, ...]]]:
    """Each concept in a phrase of its own, and the tags that its word may have there."""
    inventory = composer.inventory
    categories, adjectives = inventory.categories, inventory.adjectives
    for key in (noun for category in NOUN_CATEGORIES for noun in categories[category]):
        yield key, grammar.thing(Thing(key)).forms, ("NOUN",)
    actor = Thing(categories["person"][0])
    for verb in categories["transitive"] + categories["intransitive"]:
        phrases = grammar.realize(Clause(actor, verb))
        forms = [form for slot, phrase in phrases if slot == VERB for form in phrase.forms]
        # an auxiliary that only marks tense ("है") is left out; a noun of the verb ("काम") stays
        yield verb, [form for form in forms if HEAD[0] in form.kinds], ("VERB", "NOUN")
    for adjective in categories["adjective"]:
        noun = next((noun for noun, fitting in adjectives.items() if adjective in fitting), None)
        if noun is not None:
            yield adjective, grammar.thing(Thing(noun, adjective)).forms, ("ADJ",)
    counted = next((noun for noun in adjectives if noun in inventory.countable), None)
    for number in categories["number"] if counted else ():
        thing = Thing(counted or "", number=number)
        yield number, grammar.thing(thing, "acc").forms, ("NUM",)
    for time in categories["time"]:
        forms = list(grammar.fixed(time).forms)
        yield time, forms, tuple(form.upos for form in forms)
    for entity in composer.entities.ids:
        yield entity, grammar.name_forms(entity), ("PROPN",)
