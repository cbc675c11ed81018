"""Draws meanings at random: clauses, qualities, facts, compounds, and documents of them.

Reads an `Inventory`, the `Entities` and a random generator; gives meanings. The sentences of a
document share a protagonist, a place and a country.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isoglot.testbed.lexicon import COLORS, UNPLACED
from isoglot.testbed.meaning import (
    Clause,
    Compound,
    Fact,
    Location,
    Meaning,
    Quality,
    Simple,
    Tense,
    Thing,
)

if TYPE_CHECKING:
    from isoglot.testbed.entities import Entities, Triple
    from isoglot.testbed.lexicon import Inventory
    from isoglot.testbed.rng import Rng

YEARS = range(1970, 2024)
WORDINGS = {
    "continent": ("continent",),
    "official_language": ("official", "speak"),
    "currency": ("currency",),
}
"""Relation -> the ways to say it."""
PLURAL_OBJECTS = frozenset({"collect"})
"""Verbs whose object is counted."""
COUNTRY_ONLY = frozenset({"travel", "swim", "build"})
"""Verbs whose place is a country: nobody travels in a kitchen."""
NEVER_FIRST = frozenset({"always"})
"""Times that cannot begin a sentence."""
NEGATED_TIMES = frozenset({"", "today", "now"})
"""Times of a negated clause in the present: "not every day" would mean something else."""


class Topic(NamedTuple):
    """Shared by the sentences of a document."""

    person: str
    place: str
    country: str


class Composer:
    """Draws meanings from an inventory and entities; methods draw in a fixed order."""

    def __init__(self, inventory: Inventory, entities: Entities) -> None:
        self.inventory = inventory
        self.entities = entities
        categories = inventory.categories
        self._actors = categories["person"] + categories["animal"]
        self._described = (
            self._actors + categories["food"] + categories["object"] + categories["place"]
        )
        self._movable = tuple(n for n in self._actors + categories["object"] if n not in UNPLACED)
        self._gradable = {
            noun: tuple(word for word in adjectives if word not in COLORS)
            for noun, adjectives in inventory.adjectives.items()
        }
        self._described = tuple(noun for noun in self._described if self._gradable[noun])

    def topic(self, rng: Rng) -> Topic:
        """A protagonist, a place and a country."""
        categories = self.inventory.categories
        person, place = (rng.choice(categories[name]) for name in ("person", "place"))
        return Topic(person, place, rng.choice(self.entities.countries))

    def document(self, rng: Rng) -> list[Meaning]:
        """Three to eight sentences on one topic, no two the same."""
        topic = self.topic(rng)
        wanted = 3 + rng.below(6)
        found: dict[Meaning, None] = {}
        while len(found) < wanted:
            found[self.meaning(rng, topic)] = None
        return list(found)

    def meaning(self, rng: Rng, topic: Topic | None = None) -> Meaning:
        """Any sentence."""
        kind = rng.below(100)
        if kind < 10:
            country = topic.country if topic else rng.choice(self.entities.countries)
            return self.fact(rng, rng.choice(self.entities.by_subject[country]))
        if kind < 38:
            return self.compound(rng, topic)
        return self.simple(rng, topic)

    def simple(self, rng: Rng, topic: Topic | None = None, tense: Tense | None = None) -> Simple:
        """One clause; outside the present a verbal one."""
        kind = rng.below(100) if tense in (None, Tense.PRESENT) else 0
        if kind < 80:
            return self.clause(rng, topic, tense)
        if kind < 92:
            return self.quality(rng)
        return self.location(rng, topic)

    def compound(self, rng: Rng, topic: Topic | None = None) -> Compound:
        """Two different clauses in one tense and a connective."""
        tense = Tense(rng.below(3))
        connective = rng.choice(self.inventory.categories["connective"])
        first = self.simple(rng, topic, tense)
        while True:
            second = self.simple(rng, topic, tense)
            if second.subject.noun == first.subject.noun:
                second = second._replace(subject=first.subject)
            if isinstance(second, Clause):
                second = second._replace(fronted=False, time="" if second.place else second.time)
            if second != first:
                break
        if connective == "then" and isinstance(first, Clause) and isinstance(second, Clause):
            second = second._replace(time="")  # "then" says when
        elif connective == "then":
            connective = "and"
        return Compound(first, connective, second)

    def about_country(self, rng: Rng) -> Fact | Clause:
        """A sentence that names a country: a fact, or something that happens there."""
        country = rng.choice(self.entities.countries)
        if rng.chance(50):
            return self.fact(rng, rng.choice(self.entities.by_subject[country]))
        return self.clause(rng)._replace(place=country)

    def page(self, rng: Rng) -> list[Fact | Clause]:
        """Two to four sentences about one country, at least one of them a fact, no two the same."""
        country = rng.choice(self.entities.countries)
        page: list[Fact | Clause] = []
        for number in range(2 + rng.below(3)):
            if number == 0 or rng.chance(60):
                page.append(self.fact(rng, rng.choice(self.entities.by_subject[country])))
            else:
                page.append(self.clause(rng)._replace(place=country))
        return list(dict.fromkeys(page))

    def fact(self, rng: Rng, triple: Triple) -> Fact:
        """A triple in one of its wordings."""
        return Fact(rng.choice(WORDINGS[triple.relation]), triple.subject, triple.object)

    def clause(self, rng: Rng, topic: Topic | None = None, tense: Tense | None = None) -> Clause:
        """A verbal clause; object, place, time and negation are optional."""
        noun = topic.person if topic and rng.chance(60) else rng.choice(self._actors)
        verb, thing = self._action(rng, noun)
        if tense is None:
            tense = Tense(rng.below(3))
        negated = rng.chance(12) and verb not in PLURAL_OBJECTS
        time = self._time(rng, tense) if rng.chance(65) else ""
        if (negated and tense == Tense.PRESENT and time not in NEGATED_TIMES) or verb == "live":
            time = ""
        place = ""
        if verb == "live" or (thing is None and not time) or rng.chance(50):
            place = self._place(rng, topic)
        if place and verb in COUNTRY_ONLY and ":" not in place:
            place = rng.choice(self.entities.countries)
        if thing is not None and place == thing.noun:
            place = ""
        if thing is not None and negated:
            thing = thing._replace(number="")
        return Clause(
            subject=self.thing(rng, noun, 30),
            verb=verb,
            object=thing,
            place=place,
            time=time,
            tense=tense,
            negated=negated,
            fronted=bool(time) and time not in NEVER_FIRST and rng.chance(30),
        )

    def quality(self, rng: Rng) -> Quality:
        """A predicate adjective."""
        noun = rng.choice(self._described)
        negated = rng.chance(15)
        return Quality(
            subject=Thing(noun),
            adjective=rng.choice(self._gradable[noun], noun),
            very=rng.chance(35) and not negated,
            negated=negated,
        )

    def location(self, rng: Rng, topic: Topic | None = None) -> Location:
        """A thing at a place."""
        noun = rng.choice(self._movable)
        return Location(self.thing(rng, noun, 50), self._place(rng, topic), rng.chance(15))

    def thing(self, rng: Rng, noun: str, percent: int) -> Thing:
        """A noun, with an adjective in this percentage of cases."""
        adjectives = self.inventory.adjectives[noun]
        if adjectives and rng.chance(percent):
            return Thing(noun, rng.choice(adjectives, noun))
        return Thing(noun)

    def _action(self, rng: Rng, actor: str) -> tuple[str, Thing | None]:
        inventory = self.inventory
        kind = "animal" if actor in inventory.categories["animal"] else "person"
        intransitive = inventory.intransitive[kind]
        if intransitive and rng.chance(25):
            return rng.choice(intransitive, actor), None
        verb = rng.choice(inventory.transitive[kind], actor)
        objects = inventory.objects[kind, verb]
        noun = rng.choice(objects, verb)
        while noun == actor:
            noun = rng.choice(objects, verb)
        thing = self.thing(rng, noun, 30)
        if verb in PLURAL_OBJECTS or (noun in inventory.countable and rng.chance(20)):
            thing = thing._replace(number=rng.choice(inventory.categories["number"]))
        return verb, thing

    def _time(self, rng: Rng, tense: Tense) -> str:
        time = rng.choice(self.inventory.times[tense])
        return f"{time}:{YEARS[rng.below(len(YEARS))]}" if time == "in_year" else time

    def _place(self, rng: Rng, topic: Topic | None) -> str:
        country = rng.chance(25)
        if topic and rng.chance(60):
            return topic.country if country else topic.place
        if country:
            return rng.choice(self.entities.countries)
        return rng.choice(self.inventory.categories["place"])
