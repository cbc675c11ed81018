"""Draws meanings at random: clauses, descriptions, facts, compounds, and documents of them.

Reads an `Inventory` (what goes with what), the `Entities` and a generator; gives meanings. A
document keeps its protagonist, its place and its country, so that its sentences belong together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isoglot.testbed.concepts import COLOURS, UNPLACED
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
    from isoglot.testbed.concepts import Inventory
    from isoglot.testbed.draws import Draws
    from isoglot.testbed.entities import Entities, Triple

YEARS = range(1970, 2024)
WORDINGS = {
    "continent": ("continent",),
    "official_language": ("official", "speak"),
    "currency": ("currency",),
}
"""Relation -> the ways to say it."""
PLURAL_OBJECTS = frozenset({"collect"})
"""Nobody collects one thing."""
COUNTRY_ONLY = frozenset({"travel", "swim", "build"})
"""Nobody travels in a kitchen, swims in a bank or builds a church in a shop."""
NEVER_FIRST = frozenset({"always"})
NEGATED_TIMES = frozenset({"", "today", "now"})
"""With "not" only these go in the present: "not every day" would say something else."""


class Topic(NamedTuple):
    """What the sentences of a document have in common."""

    person: str
    place: str
    country: str


class Composer:
    """Draws meanings from an inventory and entities."""

    def __init__(self, inventory: Inventory, entities: Entities) -> None:
        self.inventory = inventory
        self.entities = entities
        groups = inventory.categories
        self._actors = groups["person"] + groups["animal"]
        self._described = self._actors + groups["food"] + groups["object"] + groups["place"]
        self._movable = tuple(n for n in self._actors + groups["object"] if n not in UNPLACED)
        self._gradable = {
            noun: tuple(word for word in adjectives if word not in COLOURS)
            for noun, adjectives in inventory.adjectives.items()
        }
        self._described = tuple(noun for noun in self._described if self._gradable[noun])

    def topic(self, draws: Draws) -> Topic:
        """A protagonist, a place and a country."""
        groups = self.inventory.categories
        return Topic(
            draws.choice(groups["person"]),
            draws.choice(groups["place"]),
            draws.choice(self.entities.countries),
        )

    def document(self, draws: Draws) -> list[Meaning]:
        """Three to eight sentences on one topic, no two the same."""
        topic = self.topic(draws)
        wanted = 3 + draws.below(6)
        found: dict[Meaning, None] = {}
        while len(found) < wanted:
            found[self.meaning(draws, topic)] = None
        return list(found)

    def meaning(self, draws: Draws, topic: Topic | None = None) -> Meaning:
        """Any sentence."""
        kind = draws.below(100)
        if kind < 10:
            country = topic.country if topic else draws.choice(self.entities.countries)
            return self.fact(draws, draws.choice(self.entities.by_subject[country]))
        if kind < 38:
            return self.compound(draws, topic)
        return self.simple(draws, topic)

    def simple(
        self, draws: Draws, topic: Topic | None = None, tense: Tense | None = None
    ) -> Simple:
        """One clause; in another tense than the present it is a verbal one."""
        kind = draws.below(100) if tense in (None, Tense.PRESENT) else 0
        if kind < 80:
            return self.clause(draws, topic, tense)
        if kind < 92:
            return self.quality(draws)
        return self.location(draws, topic)

    def compound(self, draws: Draws, topic: Topic | None = None) -> Compound:
        """Two different clauses in one tense, and what joins them."""
        tense = Tense(draws.below(3))
        connective = draws.choice(self.inventory.categories["connective"])
        first = self.simple(draws, topic, tense)
        while True:
            second = self.simple(draws, topic, tense)
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

    def about_country(self, draws: Draws) -> Fact | Clause:
        """A sentence that names a country: a fact, or something that happens there."""
        country = draws.choice(self.entities.countries)
        if draws.chance(50):
            return self.fact(draws, draws.choice(self.entities.by_subject[country]))
        return self.clause(draws)._replace(place=country)

    def page(self, draws: Draws) -> list[Fact | Clause]:
        """Two to four sentences about one country, at least one of them a fact, no two the same."""
        country = draws.choice(self.entities.countries)
        told: list[Fact | Clause] = []
        for number in range(2 + draws.below(3)):
            if number == 0 or draws.chance(60):
                told.append(self.fact(draws, draws.choice(self.entities.by_subject[country])))
            else:
                told.append(self.clause(draws)._replace(place=country))
        return list(dict.fromkeys(told))

    def fact(self, draws: Draws, triple: Triple) -> Fact:
        """A triple in one of its wordings."""
        return Fact(draws.choice(WORDINGS[triple.relation]), triple.subject, triple.object)

    def clause(
        self, draws: Draws, topic: Topic | None = None, tense: Tense | None = None
    ) -> Clause:
        """Somebody does something, perhaps somewhere, some time, perhaps not."""
        noun = topic.person if topic and draws.chance(60) else draws.choice(self._actors)
        verb, thing = self._action(draws, noun)
        if tense is None:
            tense = Tense(draws.below(3))
        negated = draws.chance(12) and verb not in PLURAL_OBJECTS
        time = self._time(draws, tense) if draws.chance(65) else ""
        if (negated and tense == Tense.PRESENT and time not in NEGATED_TIMES) or verb == "live":
            time = ""
        place = ""
        if verb == "live" or (thing is None and not time) or draws.chance(50):
            place = self._place(draws, topic)
        if place and verb in COUNTRY_ONLY and ":" not in place:
            place = draws.choice(self.entities.countries)
        if thing is not None and place == thing.noun:
            place = ""
        if thing is not None and negated:
            thing = thing._replace(number="")
        return Clause(
            subject=self.thing(draws, noun, 30),
            verb=verb,
            object=thing,
            place=place,
            time=time,
            tense=tense,
            negated=negated,
            fronted=bool(time) and time not in NEVER_FIRST and draws.chance(30),
        )

    def quality(self, draws: Draws) -> Quality:
        """A thing is so."""
        noun = draws.choice(self._described)
        negated = draws.chance(15)
        return Quality(
            subject=Thing(noun),
            adjective=draws.choice(self._gradable[noun], noun),
            very=draws.chance(35) and not negated,
            negated=negated,
        )

    def location(self, draws: Draws, topic: Topic | None = None) -> Location:
        """A thing is somewhere."""
        noun = draws.choice(self._movable)
        return Location(self.thing(draws, noun, 50), self._place(draws, topic), draws.chance(15))

    def thing(self, draws: Draws, noun: str, percent: int) -> Thing:
        """A noun, with an adjective in some cases."""
        adjectives = self.inventory.adjectives[noun]
        if adjectives and draws.chance(percent):
            return Thing(noun, draws.choice(adjectives, noun))
        return Thing(noun)

    def _action(self, draws: Draws, actor: str) -> tuple[str, Thing | None]:
        inventory = self.inventory
        kind = "animal" if actor in inventory.categories["animal"] else "person"
        intransitive = inventory.intransitive[kind]
        if intransitive and draws.chance(25):
            return draws.choice(intransitive, actor), None
        verb = draws.choice(inventory.transitive[kind], actor)
        objects = inventory.objects[kind, verb]
        noun = draws.choice(objects, verb)
        while noun == actor:
            noun = draws.choice(objects, verb)
        thing = self.thing(draws, noun, 30)
        if verb in PLURAL_OBJECTS or (noun in inventory.countable and draws.chance(20)):
            thing = thing._replace(number=draws.choice(inventory.categories["number"]))
        return verb, thing

    def _time(self, draws: Draws, tense: Tense) -> str:
        time = draws.choice(self.inventory.times[tense])
        return f"{time}:{YEARS[draws.below(len(YEARS))]}" if time == "in_year" else time

    def _place(self, draws: Draws, topic: Topic | None) -> str:
        country = draws.chance(25)
        if topic and draws.chance(60):
            return topic.country if country else topic.place
        if country:
            return draws.choice(self.entities.countries)
        return draws.choice(self.inventory.categories["place"])
