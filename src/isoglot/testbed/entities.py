"""Real entities: countries, continents, languages and currencies, and the relations between them.

Reads CLDR through Babel for all names, official languages and currencies; continents are listed
here. The countries have short names whose grammar is known in all nine languages; their order is
fixed, and a small world keeps the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache

from babel import Locale
from babel.languages import get_official_languages
from babel.numbers import get_territory_currencies

COUNTRIES = """
JP:142 KE:002 DE:150 FR:150 ES:150 RU:150 IN:142 CN:142 EG:002 TR:142 BR:005 IT:150 TZ:002
AR:005 CA:003 IR:142 PL:150 TH:142 SE:150 ET:002 MX:003 VN:142 GR:150 MA:002 UA:150 PT:150
ID:142 PE:005 NG:002 IL:142 HU:150 CL:005 NO:150 PK:142 DK:150 CO:005 FI:150 IQ:142 CZ:150
GH:002 NP:142 RO:150 SY:142 CU:003 IS:150 UG:002 MN:142 CH:150 BD:142 AT:150 DZ:002 KZ:142
BE:150 LB:142 VE:005 BG:150 MY:142 AM:142 TN:002 GE:142 UY:005 HR:150 JO:142 AZ:142 RW:002
BO:005 LT:150 KW:142 UZ:142 SK:150 LY:002 KH:142 EE:150 ZM:002 AF:142 PY:005 LV:150 YE:142
AO:002 RS:150 LA:142 JM:003 MG:002 AL:150 QA:142 TJ:142 SI:150 MZ:002 BW:002 CR:003 OM:142
KG:142 GT:003 BY:150 MT:150 TM:142 HN:003 SO:002 BH:142 NI:003 CY:150 MW:002 BI:002
"""
"""Territories with the code of their continent."""

_UNCLEAR_LANGUAGES = frozenset(
    {"az_Cyrl", "uz_Cyrl", "sr_Latn", "nb", "nn", "tzm", "ay", "gn", "qu", "rn", "tn", "ny"}
)
"""Official "languages" that are scripts, written norms, or have no settled name somewhere."""
_LONG_CURRENCY_NAMES = frozenset({"XOF"})
_DATE = date(2024, 1, 1)
"""The day whose currencies are used."""

RELATIONS = ("continent", "official_language", "currency")


@dataclass(frozen=True, slots=True)
class Triple:
    """A true statement: subject, relation, object, as entity ids ("territory:JP")."""

    subject: str
    relation: str
    object: str


@dataclass(frozen=True, slots=True)
class Entities:
    """The entities of a world, in order, and all triples."""

    ids: tuple[str, ...]
    countries: tuple[str, ...]
    triples: tuple[Triple, ...]
    by_subject: dict[str, tuple[Triple, ...]]


def make_entities(max_entities: int | None) -> Entities:
    """All entities, or those of the first countries that fit the limit (at least two countries)."""
    ids: dict[str, None] = {}
    by_subject: dict[str, tuple[Triple, ...]] = {}
    for pair in COUNTRIES.split():
        triples = _country(*pair.split(":"))
        wanted = {**ids, **dict.fromkeys(part for t in triples for part in (t.subject, t.object))}
        if max_entities is not None and len(wanted) > max_entities and len(by_subject) > 1:
            break
        ids = wanted
        by_subject[triples[0].subject] = triples
    return Entities(
        ids=tuple(ids),
        countries=tuple(by_subject),
        triples=tuple(triple for triples in by_subject.values() for triple in triples),
        by_subject=by_subject,
    )


def _country(territory: str, continent: str) -> tuple[Triple, ...]:
    subject = f"territory:{territory}"
    triples = [Triple(subject, "continent", f"continent:{continent}")]
    triples += [
        Triple(subject, "official_language", f"language:{code}")
        for code in get_official_languages(territory)
        if code not in _UNCLEAR_LANGUAGES
    ]
    currencies = get_territory_currencies(territory, start_date=_DATE, end_date=_DATE)
    if len(currencies) == 1 and currencies[0] not in _LONG_CURRENCY_NAMES:
        triples.append(Triple(subject, "currency", f"currency:{currencies[0]}"))
    return tuple(triples)


@cache
def cldr_names(language: str) -> dict[str, str]:
    """The name of every entity in a language, as CLDR writes it."""
    locale = Locale.parse(language)
    tables = {
        "territory": locale.territories,
        "continent": locale.territories,
        "language": locale.languages,
        "currency": locale.currencies,
    }
    names: dict[str, str] = {}
    for identity in make_entities(None).ids:
        kind, code = identity.split(":")
        names[identity] = str(tables[kind][code])
    return names
