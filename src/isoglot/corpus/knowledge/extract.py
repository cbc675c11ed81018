"""`isoglot knowledge extract`: dumps in; tables of pages, sentences, items and claims out.

    X/wikipedia/, X/wikidata/   Parquet tables (`extract_tables`)
    X/text/{language}.txt.gz    the sentences as plain text, one a line, a blank line between pages
    X/counts.json               counts of pages, links, items and statements, kept and dropped

Dump files are split into slices; each slice is one task and writes one shard of each table
atomically. An interrupted run is resumed. The number of workers does not change the output.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from isoglot.atomic import PARTIAL, replace_file, write_bytes, write_errors, write_text
from isoglot.corpus.engine.runner import LOCAL, TaskCache, no_progress, run_tasks
from isoglot.corpus.knowledge.extract_plan import (
    Planner,
    SliceTask,
    digest_of,
    has_wikipedia,
    run_slice,
)
from isoglot.corpus.knowledge.extract_tables import COUNTS, WORK, claim
from isoglot.corpus.knowledge.markup.localized import WIKIPEDIAS
from isoglot.corpus.knowledge.wikipedia import PagesTask
from isoglot.errors import CorpusError, RecipeError, nearest
from isoglot.languages import from_wikipedia, is_language
from isoglot.locks import lock_folder
from isoglot.ranges import Range, check_ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoglot.corpus.engine.runner import Progress

_MAX_FAULTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractConfig:
    """Which dumps are read."""

    wikipedia: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Language -> dump files (pages-articles) or patterns, relative to the settings' folder."""
    wikidata: tuple[str, ...] = ()
    """Dump files (latest-all.json) or patterns."""
    languages: tuple[str, ...] = ()
    """Languages whose labels and sitelinks are read from Wikidata; empty: those of `wikipedia`."""
    keep_all_items: bool = False
    """Whether Wikidata items without an article in these languages are kept too."""
    check_site: bool = True
    """Whether a dump is refused if its header names another wiki than that of its language."""
    slice_megabytes: Annotated[float, Range(0.0001, 1e5)] = 32
    """Megabytes of a dump file, on disk, for each task, about."""


def extract(
    config: ExtractConfig,
    output: Path | str,
    *,
    base: Path | str = ".",
    workers: int = 1,
    cluster: str = LOCAL,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Extracts the dumps into the folder `output`; gives the content of counts.json.

    Paths in the settings are relative to `base`. Finished tasks of an earlier run are kept; tables
    of other settings or other dumps are replaced. `cluster` is `local` (this machine), `auto` or
    the address of a Ray cluster whose machines see the same files.
    """
    config = _with_codes(config)
    languages, output, base = _check(config), Path(output), Path(base)
    if cluster != LOCAL:
        # workers of a cluster run in folders of their own
        output, base = output.resolve(), base.resolve()
    with lock_folder(output):
        run = partial(run_tasks, workers=workers, cluster=cluster)
        planner = _planner(config, output, base, workers)
        return _extract(config, languages, planner, run, progress or no_progress)


def _planner(config: ExtractConfig, output: Path, base: Path, threads: int) -> Planner:
    slice_bytes = max(int(config.slice_megabytes * 1e6), 1)
    return Planner(output=output, base=base, slice_bytes=slice_bytes, threads=threads)


def _extract(
    config: ExtractConfig,
    languages: tuple[str, ...],
    planner: Planner,
    run: Callable[..., list[dict[str, Any]]],
    report: Progress,
) -> dict[str, Any]:
    output = planner.output
    claim(output)
    tasks = _plan(config, languages, planner, report)
    _clear(output, tasks)
    joined = frozenset(code for code in config.wikipedia if _is_joined(output, code, tasks))
    counts = run(
        run_slice,
        tasks,
        name=lambda task: f"{task.file} ({task.name})",
        sizes=[task.size for task in tasks],
        cache=TaskCache(
            output / WORK / "finished",
            dict[str, Any],
            partial(_is_complete, joined),
            output=attrgetter("name"),
            key=attrgetter("digest"),
        ),
        progress=lambda done, total: report("extract", done, total),
    )
    for language in config.wikipedia:
        _join_text(output, language, tasks)
    summary = _summarize(config, tasks, counts)
    write_bytes(output / COUNTS, json.dumps(summary, ensure_ascii=False, indent=1).encode())
    return summary


def _with_codes(config: ExtractConfig) -> ExtractConfig:
    """The settings with the codes of languages (`nan`) where they have Wikipedia's own."""
    wikipedia: dict[str, tuple[str, ...]] = {}
    for name, files in config.wikipedia.items():
        code = from_wikipedia(name)
        if not is_language(code):
            raise RecipeError(f"wikipedia: {name!r} is not a language code, such as en or nan.")
        if code in wikipedia:
            raise RecipeError(f"wikipedia: {code} is named twice, once {name!r}. Join its files.")
        wikipedia[code] = files
    languages = tuple(dict.fromkeys(map(from_wikipedia, config.languages)))
    return replace(config, wikipedia=wikipedia, languages=languages)


def _check(config: ExtractConfig) -> tuple[str, ...]:
    """Refuses settings without a dump; gives the languages wanted from Wikidata."""
    if not config.wikipedia and not config.wikidata:
        raise RecipeError("wikipedia, wikidata: neither names a dump. Name at least one file.")
    check_ranges(config)
    languages = tuple(config.languages or config.wikipedia)
    if not languages:
        raise RecipeError("languages: there are none. Name those to take from Wikidata.")
    for language in languages:
        # the plan compares a Wikipedia's language with its dump's header
        if not has_wikipedia(language) and language not in config.wikipedia:
            raise RecipeError(
                f"{language!r} is not a language with a Wikipedia; {nearest(language, WIKIPEDIAS)}"
            )
    return languages


def _plan(
    config: ExtractConfig, languages: tuple[str, ...], planner: Planner, report: Progress
) -> list[SliceTask]:
    """All tasks. Takes long only where a dump is one large stream."""
    tasks: list[SliceTask] = []
    total = len(config.wikipedia) + 1
    for index, (language, patterns) in enumerate(config.wikipedia.items()):
        report("split files", index, total)
        tasks += planner.wikipedia(language, patterns, check=config.check_site)
    report("split files", total - 1, total)
    tasks += planner.wikidata(config.wikidata, languages, keep_all_items=config.keep_all_items)
    report("split files", total, total)
    return tasks


def _clear(output: Path, tasks: list[SliceTask]) -> None:
    """Removes counts.json, tables that no task writes, and partial files of an interrupted run."""
    wanted = {path for task in tasks for path in task.outputs}
    languages = {task.language for task in tasks}
    with write_errors(output):
        (output / COUNTS).unlink(missing_ok=True)
        for path in (*output.glob("wikipedia/*/*.parquet"), *output.glob("wikidata/*.parquet")):
            if path not in wanted:
                path.unlink()
        for path in output.glob(f"**/*{PARTIAL}"):
            path.unlink()
        for path in output.glob("text/*.txt.gz"):
            if path.name.removesuffix(".txt.gz") not in languages:
                path.unlink()


def _is_complete(joined: frozenset[str], task: SliceTask, _: dict[str, Any]) -> bool:
    """Are a finished task's files still there, its text alone or joined?"""
    files = list(task.outputs)
    if isinstance(task.task, PagesTask) and task.language not in joined:
        files.append(task.task.text)
    return all(path.exists() for path in files)


def _is_joined(output: Path, language: str, tasks: list[SliceTask]) -> bool:
    """Was the text of a language joined from these very tasks?"""
    record, digest = _join_record(output, language, tasks)
    return record.exists() and record.read_text() == digest


def _join_record(output: Path, language: str, tasks: list[SliceTask]) -> tuple[Path, str]:
    """The file written after joining, and its content: a hash of the tasks."""
    digest = digest_of([task.digest for task in tasks if task.language == language])
    return output / WORK / f"text-{language}", digest


def _join_text(output: Path, language: str, tasks: list[SliceTask]) -> None:
    """Concatenates the gzip files of a language's slices: the result is a gzip file too."""
    parts = [
        task.task.text
        for task in tasks
        if task.language == language and isinstance(task.task, PagesTask)
    ]
    if not all(part.exists() for part in parts):
        return  # joined before
    joined = output / "text" / f"{language}.txt.gz"
    with write_errors(joined), replace_file(joined) as target, target.open("wb") as file:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, file)
    write_text(*_join_record(output, language, tasks))
    for part in parts:
        part.unlink()


def _summarize(
    config: ExtractConfig, tasks: list[SliceTask], counts: list[dict[str, Any]]
) -> dict[str, Any]:
    """The content of counts.json: settings, and the counts of every dump file."""
    files: dict[str, dict[str, Any]] = {}
    for task, found in zip(tasks, counts, strict=True):
        entry = files.setdefault(task.file, {"slices": 0, "faults": []})
        entry["slices"] += 1
        if isinstance(task.task, PagesTask):
            entry |= {"language": task.language, "wiki": task.task.site.name}
        _add(entry, found)
    for file, entry in files.items():
        _refuse_unreadable(file, entry)
    return {"settings": json.loads(json.dumps(asdict(config))), "files": files}


def _add(entry: dict[str, Any], counts: dict[str, Any]) -> None:
    """Adds the counts of one slice to those of its file."""
    for name, value in counts.items():
        if name == "faults":
            entry[name] = (entry[name] + value)[:_MAX_FAULTS]
        elif isinstance(value, dict):
            entry[name] = dict(Counter(entry.get(name, {})) + Counter(value))
        elif isinstance(value, bool):
            entry[name] = entry.get(name, False) or value
        else:
            entry[name] = entry.get(name, 0) + value


def _refuse_unreadable(file: str, entry: dict[str, Any]) -> None:
    """Refuses a file without a single readable record: it is the wrong file."""
    records, bad, long = "lines", "bad lines", "lines too long"
    wanted = "a JSON object a line, as in latest-all.json"
    if "language" in entry:
        records, bad, long = "pages", "broken pages", "pages too long"
        wanted = "pages of MediaWiki's export format (pages-articles.xml)"
    if entry.get(records, 0) > entry.get(bad, 0) + entry.get(long, 0):
        return
    first = entry["faults"][0] if entry["faults"] else {"byte": 0, "fault": "it is empty"}
    raise CorpusError(
        f"{file}: has no readable records. Expected: {wanted}. At byte {first['byte']}: "
        f"{first['fault']}."
    )
