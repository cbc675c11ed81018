"""`isoglot knowledge extract`: dumps in; tables of pages, sentences, items and claims out.

    X/wikipedia/{language}/pages-*.parquet, sentences-*.parquet
    X/wikidata/items-*.parquet, sitelinks-*.parquet, claims-*.parquet, properties-*.parquet
    X/text/{language}.txt.gz    the same sentences, one a line, a blank line between pages
    X/counts.json               what became of every page, link, item and statement

The files are cut into parts that share nothing; each part gives one shard of each table, written
whole or not at all. A run that was stopped goes on where it was. The output is the same whatever
the number of workers.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.corpus.disk import PARTIAL, write_atomically, writing
from isoglot.corpus.engine import run
from isoglot.corpus.knowledge.markup.words import WIKIPEDIAS
from isoglot.corpus.knowledge.units import WORK, Planner, Unit, digest_of, run_unit
from isoglot.corpus.knowledge.wikipedia import PagesTask
from isoglot.errors import CorpusError, RecipeError, nearest

if TYPE_CHECKING:
    from isoglot.corpus.workshop import Progress

COUNTS = "counts.json"
"""Written last: a folder that has it is complete."""
_TOLD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractConfig:
    """Which dumps are read."""

    wikipedia: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Language -> dump files (pages-articles) or patterns, relative to the settings' folder."""
    wikidata: tuple[str, ...] = ()
    """Dump files (latest-all.json) or patterns."""
    languages: tuple[str, ...] = ()
    """Languages whose names and articles are taken from Wikidata; empty: those of `wikipedia`."""
    every_item: bool = False
    """Whether Wikidata items without an article in these languages are kept too."""
    check_site: bool = True
    """Whether a dump is refused if its header names another wiki than that of its language."""
    part_megabytes: float = 32
    """About this many megabytes of a dump file, as it lies on disk, are one unit of work."""


def extract(
    config: ExtractConfig,
    output: Path | str,
    *,
    base: Path | str = ".",
    workers: int = 1,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Extracts the dumps into the folder `output`, and gives what counts.json says.

    Paths in the settings are relative to `base`. What an earlier run finished is kept; tables of
    other settings or other dumps are replaced.
    """
    output, base, report = Path(output), Path(base), progress or _silent
    languages = _check(config)
    _begin(output)
    planner = Planner(
        output=output,
        base=base,
        part_bytes=max(int(config.part_megabytes * 1e6), 1),
        threads=workers,
    )
    units = _plan(config, languages, planner, report)
    _clear(output, units)
    counts = {unit.mark: _kept(output, unit, units) for unit in units}
    todo = [unit for unit in units if counts[unit.mark] is None]
    total = sum(unit.size for unit in units)
    done = total - sum(unit.size for unit in todo)
    if todo:
        (output / COUNTS).unlink(missing_ok=True)
    results = run(
        run_unit,
        todo,
        workers=workers,
        name=lambda unit: str(unit.mark),
        sizes=[unit.size for unit in todo],
        progress=lambda now, _: report("extract", done + now, total),
    )
    counts |= {unit.mark: result for unit, result in zip(todo, results, strict=True)}
    for language in config.wikipedia:
        _join_text(output, language, units)
    told = _summarise(config, units, counts)
    write_atomically(output / COUNTS, (json.dumps(told, ensure_ascii=False, indent=1)).encode())
    return told


def _check(config: ExtractConfig) -> tuple[str, ...]:
    """Refuses settings that name nothing to read; gives the languages wanted from Wikidata."""
    if not config.wikipedia and not config.wikidata:
        raise RecipeError("wikipedia, wikidata: neither names a dump. Name at least one file.")
    if config.part_megabytes <= 0:
        raise RecipeError(f"part_megabytes: {config.part_megabytes} is not above 0.")
    languages = tuple(config.languages or config.wikipedia)
    if not languages:
        raise RecipeError("languages: there are none. Name those to take from Wikidata.")
    for language in languages:
        # a Wikipedia's own dump says whose it is, which the plan looks at
        if language not in WIKIPEDIAS and language not in config.wikipedia:
            raise RecipeError(
                f"{language!r} is no language with a Wikipedia; {nearest(language, WIKIPEDIAS)}"
            )
    return languages


def _silent(stage: str, done: int, total: int | None) -> None:
    """Progress nobody asked for."""


def _begin(output: Path) -> None:
    """Claims the output folder; never touches one that holds something else."""
    ours = (output / WORK).is_dir() or (output / COUNTS).is_file()
    if output.exists() and not ours and any(output.iterdir()):
        raise CorpusError(
            f"{output}: is not empty and holds no extracted dumps. Choose another output folder."
        )
    with writing(output):
        (output / WORK).mkdir(parents=True, exist_ok=True)


def _plan(
    config: ExtractConfig, languages: tuple[str, ...], planner: Planner, report: Progress
) -> list[Unit]:
    """All there is to do. Takes long only where a dump is one large stream."""
    units: list[Unit] = []
    for index, (language, patterns) in enumerate(config.wikipedia.items()):
        report("find parts", index, len(config.wikipedia) + 1)
        units += planner.wikipedia(language, patterns, check=config.check_site)
    report("find parts", len(config.wikipedia), len(config.wikipedia) + 1)
    units += planner.wikidata(config.wikidata, languages, every_item=config.every_item)
    report("find parts", len(config.wikipedia) + 1, len(config.wikipedia) + 1)
    return units


def _clear(output: Path, units: list[Unit]) -> None:
    """Removes tables that no unit writes, and what an interrupted run left half written."""
    wanted = {path for unit in units for path in unit.outputs}
    languages = {unit.language for unit in units}
    with writing(output):
        for pattern in ("wikipedia/*/*.parquet", "wikidata/*.parquet"):
            for path in output.glob(pattern):
                if path not in wanted:
                    path.unlink()
        for path in output.glob(f"**/*{PARTIAL}"):
            path.unlink()
        for path in output.glob("text/*.txt.gz"):
            if path.name.removesuffix(".txt.gz") not in languages:
                path.unlink()


def _kept(output: Path, unit: Unit, units: list[Unit]) -> dict[str, Any] | None:
    """The counts of a unit that need not be run again."""
    if isinstance(unit.task, PagesTask) and not unit.task.text.exists():
        # its text went into the joined file, which must then still be the one of these units
        mark = _joined_mark(output, unit.task.site.language)
        if not mark.exists() or mark.read_text() != _joined_digest(unit.language, units):
            return None
    return unit.finished()


def _joined_mark(output: Path, language: str) -> Path:
    return output / WORK / f"text-{language}"


def _joined_digest(language: str | None, units: list[Unit]) -> str:
    return digest_of([unit.digest for unit in units if unit.language == language])


def _join_text(output: Path, language: str, units: list[Unit]) -> None:
    """Joins the text of a language's parts; packed files stay so when put end to end."""
    parts = [
        unit.task.text
        for unit in units
        if unit.language == language and isinstance(unit.task, PagesTask)
    ]
    if not all(part.exists() for part in parts):
        return  # joined before
    joined = output / "text" / f"{language}.txt.gz"
    partial = joined.with_name(joined.name + PARTIAL)
    with writing(joined):
        joined.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, file)
        partial.replace(joined)
    write_atomically(_joined_mark(output, language), _joined_digest(language, units).encode())
    for part in parts:
        part.unlink()


def _summarise(
    config: ExtractConfig, units: list[Unit], counts: dict[Path, dict[str, Any] | None]
) -> dict[str, Any]:
    """All of counts.json: settings, and for every dump file what became of its content."""
    files: dict[str, dict[str, Any]] = {}
    for unit in units:
        entry = files.setdefault(unit.file, {"parts": 0, "faults": []})
        entry["parts"] += 1
        if isinstance(unit.task, PagesTask):
            entry |= {"language": unit.language, "wiki": unit.task.site.name}
        _add(entry, counts[unit.mark] or {})
    for file, entry in files.items():
        _refuse_unreadable(file, entry)
    return {"settings": json.loads(json.dumps(asdict(config))), "files": files}


def _add(entry: dict[str, Any], counts: dict[str, Any]) -> None:
    """Adds the counts of one part to those of its file."""
    for name, value in counts.items():
        if name == "faults":
            entry[name] = (entry[name] + value)[:_TOLD]
        elif isinstance(value, dict):
            entry[name] = dict(Counter(entry.get(name, {})) + Counter(value))
        elif isinstance(value, bool):
            entry[name] = entry.get(name, False) or value
        else:
            entry[name] = entry.get(name, 0) + value


def _refuse_unreadable(file: str, entry: dict[str, Any]) -> None:
    """A file of which nothing could be read is the wrong file."""
    records, bad = ("pages", "broken pages") if "language" in entry else ("lines", "bad lines")
    if entry.get(records, 0) > entry.get(bad, 0):
        return
    first = entry["faults"][0] if entry["faults"] else {"byte": 0, "fault": "it is empty"}
    wanted = (
        "pages of MediaWiki's export format (pages-articles.xml)"
        if records == "pages"
        else "a JSON object a line, as in latest-all.json"
    )
    raise CorpusError(
        f"{file}: holds none of what is read here: {wanted}. At byte {first['byte']}: "
        f"{first['fault']}."
    )
