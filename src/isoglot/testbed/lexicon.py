"""The concepts of the generated world: their words in each language, and what goes with what.

`lexicons/<language>.txt` are hand-written. A line is a concept's key, then columns whose meaning
the language's grammar knows, then options (`pl=books`); `_` is a space. Sections are categories,
and the order of concepts inside one is their rank: a small world keeps the first of each. All
languages list the same concepts in the same order. `make_inventory` gives the categories and their
combinations (the objects of a verb, the nouns of an adjective, the tenses of a time).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from isoglot.testbed.meaning import Tense


@dataclass(frozen=True, slots=True)
class Entry:
    """One concept in one language."""

    columns: tuple[str, ...]
    options: Mapping[str, str]
    category: str


Lexicon = dict[str, Entry]


@cache
def read_lexicon(language: str) -> Lexicon:
    """All concepts of a language, in the order of its file."""
    text = files(__package__).joinpath(f"lexicons/{language}.txt").read_text(encoding="utf-8")
    lexicon: Lexicon = {}
    category = ""
    for line in text.splitlines():
        if line.startswith("["):
            category = line.strip("[]")
        elif line and not line.startswith("#"):
            key, *fields = line.split()
            columns = tuple(field.replace("_", " ") for field in fields if "=" not in field)
            options = dict(field.split("=", 1) for field in fields if "=" in field)
            lexicon[key] = Entry(columns, MappingProxyType(options), category)
    return lexicon


NOUN_CATEGORIES = ("person", "animal", "food", "drink", "object", "place")

TAKES = {
    "read": "book letter newspaper story",
    "buy": "object food drink -song -story -door -window -tree",
    "see": "object animal person place -song -story",
    "eat": "food -soup",
    "write": "book letter story song",
    "drink": "drink",
    "sell": "object food drink -song -story -door -window -tree",
    "open": "door window box bag book letter",
    "close": "door window box bag book",
    "wash": "plate cup shirt car window knife apple tomato",
    "cook": "soup rice meat fish egg potato",
    "clean": "house room kitchen garden street office table carpet mirror window car school",
    "take": "book letter key bag box knife cup plate ball picture newspaper apple map",
    "send": "letter picture book box map newspaper",
    "hear": "song story bird dog lion wolf singer",
    "cut": "bread apple cake meat cheese onion tomato potato lemon fish flower",
    "repair": "car bicycle lamp telephone computer door window chair table boat",
    "steal": "book key bag ring car bicycle picture shirt hat telephone computer carpet box",
    "lose": "key bag ring telephone hat pen letter ball book map",
    "hide": "book letter key picture box ring knife bag ball newspaper candle telephone",
    "build": "house school church hospital hotel factory boat table library museum",
    "choose": "object food -door -window -tree",
    "sing": "song",
    "throw": "ball hat key box plate apple",
    "break": "plate cup window mirror chair door lamp knife telephone",
    "call": "person dog",
    "show": "picture book map film letter ring car house",
    "collect": "book map flower picture letter key ring newspaper",
    "lift": "box bag table chair ball book",
    "push": "car chair table door box bicycle",
}
"""Transitive verb -> categories and concepts it can have as its object."""

ANIMALS_DO = {
    "see": "object animal person place -song -story -film",
    "eat": "food -soup",
    "drink": "water milk",
    "hear": "song bird dog lion wolf singer",
    **dict.fromkeys(["sleep", "live", "play", "run", "wait", "swim", "rest"], ""),
}
"""The same for animals, which have no other verbs."""

SAID_OF = {
    "big": "animal object place -song -story -film",
    "new": "object place",
    "good": "food drink book film song story car hotel restaurant school hospital doctor teacher",
    "beautiful": "object place queen princess bird horse",
    "small": "animal object place -song -story -film",
    "bad": "book film song story car hotel restaurant school lawyer chef",
    "old": "object place",
    "red": "car door chair lamp cup plate bag shirt hat pen box ball flower bicycle apple tomato",
    "famous": "singer writer artist lawyer judge journalist king queen book film song museum hotel"
    " restaurant university church theatre",
    "clever": "person dog monkey fox horse",
    "expensive": "object food drink hotel restaurant -song -story -film -tree",
    "wonderful": "book film song story hotel restaurant garden museum teacher singer",
    "terrible": "book film song story hotel restaurant",
    "interesting": "book film story newspaper letter museum city",
    "boring": "book film story newspaper song museum",
    "clean_adj": "place plate cup shirt car window table knife",
    "dirty": "place plate cup shirt car window table knife",
    "cheap": "object food drink hotel restaurant -song -story -film -tree",
    "young": "person -grandmother -grandfather",
    "rich": "person",
    "poor": "person",
    "brave": "person lion dog",
    "lazy": "person cat donkey",
    "kind": "person",
    "strong": "person animal",
    "dangerous": "lion bear wolf snake elephant street city knife",
    "hot": "soup water milk tea coffee rice meat bread potato egg fish",
    "sweet": "apple cake orange banana honey tea juice",
    "cold": "soup water milk tea coffee juice rice meat",
    "heavy": "box bag table book door boat carpet chair",
    "long": "letter street song story film carpet",
    "quiet": "village garden library street park room beach church",
    "white": "car door chair cup plate bag shirt hat flower horse cat rabbit house",
    "black": "car door chair cup bag shirt hat pen box horse cat dog",
    "green": "car door chair lamp bag shirt hat box ball bicycle apple",
    "blue": "car door chair lamp cup plate bag shirt hat pen ball bicycle",
}
"""Adjective -> categories and concepts it can be said of."""

UNPLACED = frozenset({"song", "story", "film"})
"""Objects without a location."""

COLORS = frozenset({"red", "white", "black", "green", "blue"})
"""Colors modify a noun but are no predicate: they have no degree."""

SENTIMENT = {
    **dict.fromkeys(
        ["good", "beautiful", "wonderful", "interesting", "clever", "kind", "brave"], 1
    ),
    **dict.fromkeys(["bad", "terrible", "boring", "dirty", "dangerous", "lazy"], 0),
}
"""Adjectives that praise (1) or blame (0)."""

OPPOSITE = {
    "big": "small", "new": "old", "good": "bad", "wonderful": "terrible", "rich": "poor",
    "interesting": "boring", "clean_adj": "dirty", "expensive": "cheap", "small": "big",
    "old": "new", "bad": "good", "terrible": "wonderful", "boring": "interesting",
    "dirty": "clean_adj", "hot": "cold", "cold": "hot", "cheap": "expensive", "poor": "rich",
}  # fmt: skip
"""Adjectives that cannot both hold."""

TENSES = {
    "every_day": (Tense.PRESENT,),
    "always": (Tense.PRESENT,),
    "now": (Tense.PRESENT,),
    "today": (Tense.PRESENT, Tense.FUTURE),
    "in_the_morning": (Tense.PRESENT, Tense.PAST, Tense.FUTURE),
    "in_the_evening": (Tense.PRESENT, Tense.PAST, Tense.FUTURE),
    "yesterday": (Tense.PAST,),
    "last_week": (Tense.PAST,),
    "last_year": (Tense.PAST,),
    "in_year": (Tense.PAST,),
    "tomorrow": (Tense.FUTURE,),
    "soon": (Tense.FUTURE,),
    "next_week": (Tense.FUTURE,),
    "next_year": (Tense.FUTURE,),
}
"""Time -> its tenses; days of the week go with past and future."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The concepts of a world and their combinations, as tuples to draw from."""

    categories: dict[str, tuple[str, ...]]
    transitive: dict[str, tuple[str, ...]]
    """Kind of actor (person, animal) -> verbs with an object."""
    intransitive: dict[str, tuple[str, ...]]
    """Kind of actor -> verbs without an object."""
    objects: dict[tuple[str, str], tuple[str, ...]]
    """Kind of actor and transitive verb -> nouns, two at least."""
    adjectives: dict[str, tuple[str, ...]]
    """Noun -> adjectives."""
    countable: frozenset[str]
    times: dict[Tense, tuple[str, ...]]


def make_inventory(num_concepts: int | None) -> Inventory:
    """All concepts, or about `num_concepts`: the first of every category, three at least."""
    categories = _categories(num_concepts)
    nouns = {name: categories[name] for name in NOUN_CATEGORIES}
    objects = {
        (kind, verb): taken
        for kind, takes in (("person", TAKES), ("animal", ANIMALS_DO))
        for verb in categories["transitive"]
        if len(taken := _expand(takes.get(verb, ""), nouns)) > (verb != "sing")
    }
    adjectives: dict[str, tuple[str, ...]] = {n: () for group in nouns.values() for n in group}
    for adjective in categories["adjective"]:
        for noun in _expand(SAID_OF[adjective], nouns):
            adjectives[noun] += (adjective,)
    english = read_lexicon("en")
    times = {
        tense: tuple(
            time
            for time in categories["time"]
            if tense in TENSES.get(time, (Tense.PAST, Tense.FUTURE))
        )
        for tense in Tense
    }
    countable = frozenset(noun for noun in adjectives if "pl" in english[noun].options)
    return Inventory(
        categories=categories,
        transitive={
            kind: tuple(verb for actor, verb in objects if actor == kind)
            for kind in ("person", "animal")
        },
        intransitive={
            "person": categories["intransitive"],
            "animal": tuple(verb for verb in categories["intransitive"] if verb in ANIMALS_DO),
        },
        objects=objects,
        adjectives=adjectives,
        countable=countable,
        times=times,
    )


def _categories(num_concepts: int | None) -> dict[str, tuple[str, ...]]:
    english = read_lexicon("en")
    whole: dict[str, list[str]] = {}
    for key, entry in english.items():
        whole.setdefault(entry.category, []).append(key)
    share = 1.0 if num_concepts is None else min(1.0, num_concepts / len(english))
    return {name: tuple(keys[: max(3, round(len(keys) * share))]) for name, keys in whole.items()}


def _expand(names: str, nouns: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The nouns of this world in a list of categories, concepts and -exceptions."""
    here = {noun for group in nouns.values() for noun in group}
    found: list[str] = []
    for name in names.split():
        found.extend(nouns.get(name, (name,) if name in here else ()))
    return tuple(noun for noun in found if f"-{noun}" not in names.split())
