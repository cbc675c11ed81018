"""The request of an adaptation: its settings, from options or a file, kept in OUT.

    options --parse_named--> AdaptConfig <--load_request-- adapt.yaml
    AdaptConfig --claim--> OUT/adapt.yaml

Settings are what a user gives, and nothing that can be found out. An adaptation's folder belongs to
one request. The same one continues; another one, and a folder that holds something else, are
refused. Settings that do not change the result may differ.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from isoglot import yaml_text
from isoglot.adaptation.plan_files import read_plan
from isoglot.atomic import write_text
from isoglot.errors import CorpusError, RecipeError, nearest, require
from isoglot.languages import (
    NAMES,
    canonical,
    code_of_name,
    is_language,
    language_sides,
    plain_code,
    split_pair,
)
from isoglot.locks import has_files
from isoglot.ranges import Range, Seed, check_ranges
from isoglot.recipe import document, dump
from isoglot.recipe.structure import structure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isoglot.adaptation.folder import AdaptFolder

_RARE_CODE = 3
"""Letters of codes of ISO 639-3, most of which have no name in our table; all of two letters do."""
_FREE = ("workers", "license")
"""Settings that may be different when the command runs again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptConfig:
    """One adaptation: an encoder and the data of its languages."""

    encoder: str
    """The encoder to start from: a Hugging Face folder, a run or a name on the hub."""
    text: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Running text of each language: files, patterns, folders, URLs, hub datasets or names that
    `isoglot fetch` knows."""
    pairs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Translations by pair of languages (en-sw), named as text is."""
    dictionaries: tuple[str, ...] = ()
    """Bilingual dictionaries (a word and its translation on each line), to initialize new words."""
    knowledge: str | None = None
    """Folder of tables with entities, mentions and facts, of `isoglot knowledge extract` or
    `graph`."""
    tests: tuple[str, ...] = ()
    """Files of test sets: their lines are kept out of training."""
    alignments: tuple[str, ...] = ()
    """Folders with gold word alignments to score before and after."""
    hours: Annotated[float | None, Range(0, 10_000, above=True)] = None
    """Time for everything; none: as many passes over the data as its size suggests."""
    vocabulary: Annotated[Literal["auto", "keep"] | int, Range(1, 10**6)] = "auto"
    """Words to add to the vocabulary; auto: where words of a language are split too finely."""
    heldout: Annotated[int, Range(10, 10**6)] = 1000
    """Lines of each language, and pairs, that are held out for the scores before and after."""
    early_stopping: bool = False
    """Stop when held-out scores no longer improve, and export the best checkpoint."""
    license: str | None = None
    """License of the model that is written, for its card."""
    workers: Annotated[int | None, Range(1, 1024)] = None
    """Processes that prepare the data; none: one for each core."""
    seed: Seed = 0
    """Random seed of the held-out lines and of training."""

    def __post_init__(self) -> None:
        check_ranges(self)
        object.__setattr__(self, "text", by_language(self.text))
        object.__setattr__(self, "pairs", by_pair(self.pairs))
        require(
            bool(self.text or self.pairs),
            "there is nothing to learn from: give text (--text sw=FILE) or pairs (--pairs "
            "en-sw=FILE).",
        )

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages, in the order in which they are named."""
        sides = (code for pair in self.pairs for code in language_sides(pair))
        return tuple(dict.fromkeys((*self.text, *sides)))


def by_language(given: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Names of data by the code of their language; two spellings of one language are joined."""
    found: dict[str, tuple[str, ...]] = {}
    for spelled, names in given.items():
        code = _language(spelled, f"text: {spelled!r}")
        found[code] = (*found.get(code, ()), *names)
    return found


def by_pair(given: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Names of data by the code of their pair of languages, in the order of its two sides."""
    found: dict[str, tuple[str, ...]] = {}
    for spelled, names in given.items():
        sides = split_pair(spelled)
        codes = () if sides is None else tuple(_language(s, f"pairs: {spelled!r}") for s in sides)
        require(
            len(set(codes)) == 2,
            f"pairs: {spelled!r} does not name two languages. Write --pairs en-sw=FILE, the "
            "language of the first column or file first.",
        )
        reverse = "-".join(reversed(codes))
        require(
            reverse not in found,
            f"pairs: {spelled!r} is also given as {reverse!r}. Give all pairs of two languages in "
            "one order, the language of the first column or file first.",
        )
        code = "-".join(codes)
        found[code] = (*found.get(code, ()), *names)
    return found


def _language(spelled: str, where: str) -> str:
    """The code of a language by its code in any spelling, or by its English name."""
    code = code_of_name(spelled) or canonical(spelled)
    known = plain_code(code) in NAMES or len(plain_code(code)) == _RARE_CODE
    if not (is_language(spelled) and known):
        hint = nearest(spelled, [*NAMES.values()])
        raise RecipeError(
            f"{where} is not a language code. Write a code of BCP 47 or ISO 639, such as sw or "
            f"pt_BR, or the language's English name{f'; {hint}' if hint.endswith('?') else '.'}"
        )
    return code


def parse_named(values: Sequence[str], option: str) -> dict[str, tuple[str, ...]]:
    """The values of --text or --pairs: `sw=FILE`, `sw=FILE,FILE`, in the order given.

    A comma in a name that exists as it is, or in a URL, does not divide it.
    """
    found: dict[str, tuple[str, ...]] = {}
    example = "en-sw=FILE" if option == "--pairs" else "sw=FILE"
    for value in values:
        language, equals, names = value.partition("=")
        if equals and language.strip() and not names.strip():
            raise CorpusError(
                f"{option} {value}: names no file. Write {option} {example}, without a space after "
                "the equals sign."
            )
        if not equals or not language.strip():
            raise CorpusError(
                f"{option} {value}: names no language. Write {option} {example}, the code of the "
                "language before an equals sign."
            )
        whole = "://" in names or Path(names).exists()
        listed = (names,) if whole else tuple(name for name in names.split(",") if name.strip())
        found[language.strip()] = (*found.get(language.strip(), ()), *map(str.strip, listed))
    return found


def unquoted(extra: Sequence[str], given: Mapping[str, tuple[str, ...]]) -> str:
    """The sentence about files that follow an option: a shell has expanded a pattern."""
    code, names = next(iter(given.items()), ("sw", ("raw/sw/*.txt",)))
    example = str(Path(names[0]).with_name(f"*{Path(names[0]).suffix}"))
    more = f" and {len(extra) - 1:,} more" if len(extra) > 1 else ""
    return (
        f"unexpected argument {extra[0]}{more}. "
        f"If the shell expanded a pattern, put it in quotes, such as --text '{code}={example}', or "
        "name the folder."
    )


def load_request(path: Path, settings: Sequence[str] = ()) -> AdaptConfig:
    """The settings of an adaptation from a YAML file, changed by `name=value` settings."""
    if not path.is_file():
        raise RecipeError(f"there is no file {path}: give an encoder, or a file with settings.")
    found = document.with_settings(document.read(path), settings)
    # one name may stand without a list
    for name in ("text", "pairs"):
        given = found.data.get(name)
        if isinstance(given, dict):
            found.data[name] = {code: _listed(names) for code, names in given.items()}
    for name in ("tests", "dictionaries", "alignments"):
        if name in found.data:
            found.data[name] = _listed(found.data[name])
    return structure(found, AdaptConfig)


def _listed(names: Any) -> Any:
    return [names] if isinstance(names, str) else names


def claim(folder: AdaptFolder, config: AdaptConfig) -> str | None:
    """Make a folder that of a request; gives a sentence where it replaces another one.

    A request of which nothing but an unedited plan exists is replaced.

    Raises:
        RecipeError: it is that of another request, or holds something else.
    """
    note = None
    if folder.request.is_file():
        different = "; ".join(_differences(folder.request, dump(config)))
        if not different:
            return None
        plan = read_plan(folder)
        if _has_begun(folder) or (plan is not None and plan.edited):
            raise RecipeError(
                f"{folder.path}: was begun with another request: {different}. Give the same "
                "request to continue, or choose another --out."
            )
        note = f"{folder.path}: planned anew, since {different}."
        shutil.rmtree(folder.plan, ignore_errors=True)
    elif has_files(folder.path):
        raise RecipeError(
            f"{folder.path}: is not empty and is not the folder of an adaptation (it has no "
            f"{folder.request.name}). Choose another --out."
        )
    write_text(folder.request, dump(config))
    return note


def _has_begun(folder: AdaptFolder) -> bool:
    """Whether more was done than looking and planning."""
    places = (folder.encoder, folder.corpus, folder.run, folder.steps, folder.model)
    return any(place.exists() for place in places)


def _differences(file: Path, now: str) -> list[str]:
    """A phrase for each setting that differs."""
    before, _ = yaml_text.read(file)
    given, _ = yaml_text.parse(now, "the request", lines=False)
    before = before if isinstance(before, dict) else {}
    names = [one.name for one in fields(AdaptConfig) if one.name not in _FREE]
    return [
        f"{name} was {_shown(before.get(name))} and is {_shown(given[name])}"
        for name in names
        if before.get(name) != given[name]
    ]


def _shown(value: object) -> str:
    """A value as the option writes it: `sw=a.txt,b.txt en=c.txt`."""
    if isinstance(value, dict):
        value = [f"{code}={','.join(map(str, names))}" for code, names in value.items()]
    if isinstance(value, list):
        value = " ".join(map(str, value))
    text = str(value) if value not in ("", None) else "not set"
    return text if len(text) <= 80 else f"{text[:77]}..."
