"""The registry: what can be fetched by name, from where, under which license, to which place.

`test_sets.yaml` has an entry for every task, `training_data.yaml` one for every collection of text
and translations. An entry has parts; a part is one address, or a template with `each`: variables
and the values that they take. A name may have arguments after a colon (`opus:Tatoeba/en-sw`), which
fill the entry's `arguments` template and with it the addresses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from isoglot import yaml_text
from isoglot.errors import FetchError, nearest
from isoglot.languages import (
    canonical,
    is_language,
    split_pair,
    three_letter_code,
    wikipedia_database,
)

Kind = Literal["test", "text", "pairs", "knowledge", "dictionary"]
Find = Literal["address", "opus", "hub"]
_FILES = ("test_sets.yaml", "training_data.yaml")
_VARIABLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One address of an entry, or a template of several."""

    url: str = ""
    hub: str = ""
    """A dataset of the Hugging Face hub instead of an address; `keep` then chooses its files."""
    to: str = ""
    """Place of a file that is not unpacked."""
    keep: Mapping[str, str] = field(default_factory=dict)
    """Members of an archive and their places; empty: the file is not unpacked."""
    each: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Variables of the templates and the values that they take."""
    language: str = ""
    """Template of the language of a part, for `--languages`."""
    size: int | None = None
    """Exact size in bytes."""
    sha256: str | None = None
    sums: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Place of a file -> exact size and SHA-256, for templates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name of the registry."""

    name: str
    kind: Kind
    title: str
    license: str
    languages: str
    page: str = ""
    """Where its publisher describes it, and what to cite."""
    size: str = ""
    """About how large it is; empty: not known before the server is asked."""
    arguments: str = ""
    """Template of what follows the colon; empty: nothing does."""
    find: Find = "address"
    """How the addresses are found: they stand here, OPUS is asked, or the hub."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The version that a name without one (`@v2`) means."""
    only: str = ""
    """The codes of all its languages, where they are known; others are refused."""
    codes: Mapping[str, str] = field(default_factory=dict)
    """Code of a language -> how the publisher spells it."""
    parts: tuple[Part, ...] = ()
    how: str = ""
    """Why it cannot be fetched and how to obtain it; empty: it can be fetched."""
    format: str = ""
    """Format of a prepare file's source."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of that format."""
    split: str = ""
    """How a prepare file's source is split into sentences, if it is."""
    checked: bool = False
    """Whether its addresses have been tried."""

    @property
    def spelled(self) -> str:
        """The name as it is to be written: `cc100:LANGUAGE`."""
        if not self.arguments:
            return self.name
        return f"{self.name}:{_VARIABLE.sub(lambda match: match[1].upper(), self.arguments)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A name that was asked for: its entry and the values of its arguments."""

    name: str
    """As it was written, completed by the language."""
    entry: Entry
    values: Mapping[str, str]

    @property
    def sides(self) -> tuple[str, ...]:
        """The language, or the two of a pair, that the name names, as it spells them."""
        if "pair" in self.values:
            return self.values["first"], self.values["second"]
        if "language" in self.values:
            return (self.values["language"],)
        named = tuple(self.entry.languages.split())
        is_pair = len(named) == 2 and all(map(is_language, named))
        return named if self.entry.kind == "pairs" and is_pair else ()


@cache
def entries() -> dict[str, Entry]:
    """All entries by name, test sets first."""
    found: dict[str, Entry] = {}
    for file in _FILES:
        data, _ = yaml_text.read(Path(__file__).with_name(file))
        for name, values in data.items():
            base = data[values["like"]] if "like" in values else {}
            merged = {**base, **{key: one for key, one in values.items() if key != "like"}}
            found[name] = _entry(name, merged)
    return found


def _entry(name: str, values: Mapping[str, Any]) -> Entry:
    known = {key: one for key, one in values.items() if key != "parts"}
    assert known.get("kind") in get_args(Kind), f"{name}: {known.get('kind')!r} is no kind"
    parts = tuple(_part(one) for one in values.get("parts", []))
    return Entry(name=name, parts=parts, **known)


def _part(values: Mapping[str, Any]) -> Part:
    known = dict(values)
    each = {name: tuple(str(one).split()) for name, one in known.pop("each", {}).items()}
    sums = {
        name: (int(one.split()[0]), one.split()[1]) for name, one in known.pop("sums", {}).items()
    }
    return Part(each=each, sums=sums, **known)


def find_entry(name: str) -> Entry:
    """The entry of a name without arguments."""
    known = entries()
    if name not in known:
        raise FetchError(
            f"{name!r}: there is no data of this name; {nearest(name.lower(), known)} (isoglot "
            "fetch --list)"
        )
    return known[name]


def how_to_get(name: str, folder: object) -> str:
    """A sentence on how to get the data of a task; empty for tasks that the registry does not know.

    `folder` is where its files are missing.
    """
    entry = entries().get(name)
    if entry is None:
        return ""
    return entry.how or f"To download them: isoglot fetch {name} --out {folder}, or add --fetch."


def parse_name(name: str, language: str | None = None) -> Request:
    """The entry and arguments that a name stands for; `language` completes a name without one."""
    head, colon, rest = name.partition(":")
    entry = find_entry(head)
    if not entry.arguments:
        if colon:
            raise FetchError(f"{name!r}: {head} takes nothing after a colon. Write {head}.")
        return Request(name=name, entry=entry, values={})
    values = _arguments(entry, rest)
    if values is None and language is not None:
        completed = f"{rest}/{language}" if rest else language
        values, name = _arguments(entry, completed), f"{head}:{completed}"
    if values is None:
        raise FetchError(
            f"{name!r}: {head} needs more. Write {entry.spelled}; its page: {entry.page}"
        )
    request = Request(name=name, entry=entry, values=values)
    known = entry.only.split()
    spelled = {*known, *entry.codes.values()}
    if missing := [side for side in request.sides if known and side not in spelled]:
        raise FetchError(
            f"{name!r}: {head} has no {missing[0]!r}. Its languages: {', '.join(known)}."
        )
    return request


def _arguments(entry: Entry, text: str) -> dict[str, str] | None:
    """The values of an entry's arguments in a text; none: the text does not fit."""
    expression = ""
    for token in re.split(r"(\{\w+\})", entry.arguments):
        match = _VARIABLE.fullmatch(token)
        expression += f"(?P<{match[1]}>[A-Za-z0-9_.+-]+)" if match else re.escape(token)
    text, _, version = text.partition("@")
    match = re.fullmatch(expression, text)
    if match is None:
        return None
    values = {**entry.versions, **match.groupdict()}
    if version:
        if "version" not in entry.versions or not re.fullmatch(r"[A-Za-z0-9_.-]+", version):
            return None
        values["version"] = version
    if ".." in text or ".." in version:
        return None
    if "language" in values:
        code, given = canonical(values["language"]), values["language"]
        keep = not entry.only or given in entry.codes.values()
        spelled = entry.codes.get(code, given if keep else code)
        database = wikipedia_database(spelled)
        wiki = database.removesuffix("wiki").replace("_", "-")
        values |= {"language": spelled, "database": database, "wiki": wiki}
    elif "pair" in values:
        sides = split_pair(values["pair"])
        if sides is None:
            return None
        values |= _of_pair(*sides)
    return values


def _of_pair(first: str, second: str) -> dict[str, str]:
    """The ways in which addresses name a pair of languages."""
    one, two = sorted((first, second))
    one3, two3 = sorted(map(three_letter_code, (first, second)))
    other = second if canonical(first) == "en" else first
    named = {"one": one, "two": two, "one3": one3, "two3": two3}
    return {**named, "with_english": f"{other}-en", "first": first, "second": second}


def expand(request: Request, languages: tuple[str, ...] | None = None) -> list[Part]:
    """The parts of a request, templates filled, one for each value; only those of `languages`.

    Raises:
        FetchError: the data set has none of the languages.
    """
    found, known = list[Part](), dict[str, None]()
    for part in request.entry.parts:
        for chosen in product(*part.each.values()):
            values = {**request.values, **dict(zip(part.each, chosen, strict=True))}
            named = part.language and not part.hub  # files of the hub are chosen later
            code = canonical(fill(part.language, values)) if named else ""
            if code:
                known[code] = None
            if languages is not None and code and code not in languages:
                continue
            found.append(_filled(part, values))
    if languages is not None and known and not set(known) & set(languages):
        raise FetchError(
            f"{request.name!r}: has none of {', '.join(languages)}; its languages are "
            f"{', '.join(known)}. Change --languages."
        )
    return found


def _filled(part: Part, values: Mapping[str, str]) -> Part:
    to = fill(part.to, values)
    size, sha256 = part.sums.get(to, (part.size, part.sha256))
    return Part(
        url=fill(part.url, values),
        hub=fill(part.hub, values),
        to=to,
        keep={fill(name, values): fill(place, values) for name, place in part.keep.items()},
        language=part.language if part.hub else "",
        size=size,
        sha256=sha256,
    )


def fill(template: str, values: Mapping[str, str]) -> str:
    """A template with the values that are known; other variables stay."""
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), template)
