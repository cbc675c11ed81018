"""Held-out data: lines and pairs that are kept from training, for the scores before and after.

    raw files --scan--> counts, samples --> OUT/heldout, OUT/sample

They are drawn before anything else, by the hash of the text: a text that occurs twice is held out
or not as a whole, in whichever file it is. At most a tenth of the data is held out. Preparing the
corpus drops every held-out line, and every line that is a side of a held-out pair (`kept_out`).
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.adaptation.findings import num_cores
from isoglot.adaptation.scan import ScanResult, ScanTask, empty_result, scan_files
from isoglot.atomic import replace_folder, write_text
from isoglot.corpus.decontamination import (
    EvaluationFileTask,
    hash_evaluation_file,
    letters_of,
    write_index,
)
from isoglot.corpus.engine.workers import run_in_processes
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from isoglot.adaptation.folder import AdaptFolder
    from isoglot.adaptation.inputs import DataFiles, Inputs, Progress
    from isoglot.adaptation.request import AdaptConfig

MIN_HELDOUT = 10
"""Fewest lines or pairs that are held out; there must be ten times as many."""
LANGUAGE_CONFIDENCE = 0.9
"""A line that is identified as another language with this probability is not held out."""
_STAGE = "reading the data"
_MIN_BYTES: int = PrepareConfig(sources={}).exclude_min_bytes
"""Shorter texts are not looked for by `exclude`, and so cannot be held out."""
_SAMPLE_PAIRS = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One language, or pair of languages, after the pass over its files."""

    scan: ScanResult
    heldout: list[tuple[str, ...]]
    sample: list[tuple[str, ...]]
    """Some of the others, in a random order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """All languages and pairs, with the sides of pairs as text of languages that have no other."""

    text: dict[str, Drawn]
    pairs: dict[str, Drawn]


def hold_out(
    inputs: Inputs, config: AdaptConfig, folder: AdaptFolder, progress: Progress | None = None
) -> HeldOut:
    """Read all data once; draw and write what is held out, and samples of the rest.

    Raises:
        CorpusError: a language or pair has too little data, or a file cannot be read.
    """
    without_text = [code for code in config.languages if code not in config.text]
    with tempfile.TemporaryDirectory() as scratch:
        index = _index_tests(inputs.tests, Path(scratch))
        tasks = list(_tasks(inputs.data, config, index))
        scans = _scan_all(tasks, config, progress)
    drawn = {key: _draw(key, one, config) for key, one in scans.items()}
    found = HeldOut(
        text={code: one for (kind, code), one in drawn.items() if kind == "text"},
        pairs={code: one for (kind, code), one in drawn.items() if kind == "pairs"},
    )
    for code in without_text:
        found.text[code] = _side_of_pairs(code, found.pairs)
    return _write(found, folder)


def _index_tests(files: Sequence[Path], scratch: Path) -> Path | None:
    """The index of all texts of test files, below a folder."""
    if not files:
        return None
    tasks = [
        EvaluationFileTask(file=path, sha256="", min_bytes=_MIN_BYTES, output=scratch / f"{n}.npy")
        for n, path in enumerate(files)
    ]
    for task in tasks:
        hash_evaluation_file(task)
    write_index(tasks, scratch / "tests.npy")
    return scratch / "tests.npy"


def _tasks(
    data: Iterable[DataFiles], config: AdaptConfig, index: Path | None
) -> Iterator[ScanTask]:
    for one in data:
        step = one.together
        for start in range(0, len(one.files), step):
            files = one.files[start : start + step]
            yield ScanTask(
                data=one, files=files, heldout=config.heldout, seed=config.seed, tests=index
            )


def _scan_all(
    tasks: Sequence[ScanTask], config: AdaptConfig, progress: Progress | None
) -> dict[tuple[str, str], ScanResult]:
    """The scan of each (kind, language), over all its files."""
    report = progress or (lambda _stage, _done, _total: None)
    sizes = [task.size for task in tasks]
    found: dict[tuple[str, str], ScanResult] = {}
    done = 0
    workers = min(config.workers or num_cores(), len(tasks))
    report(_STAGE, 0, sum(sizes))
    for index, result in _results(tasks, sizes, workers, report):
        data = tasks[index].data
        key = (data.kind, data.language)
        found.setdefault(key, empty_result(config.heldout)).merge(result)
        done += sizes[index]
        report(_STAGE, done, sum(sizes))
    # the order of the settings, not that in which processes finish
    keys = dict.fromkeys((task.data.kind, task.data.language) for task in tasks)
    return {key: found[key] for key in keys}


_LARGE = 64 << 20
"""Bytes of files from which on several processes read them."""


def _results(
    tasks: Sequence[ScanTask], sizes: Sequence[int], workers: int, report: Progress
) -> Iterator[tuple[int, ScanResult]]:
    if workers > 1 and sum(sizes) >= _LARGE:
        order = sorted(range(len(tasks)), key=lambda index: -sizes[index])
        yield from run_in_processes(scan_files, tasks, order, workers, lambda task: task.name)
        return
    for index, task in enumerate(tasks):
        before, size = sum(sizes[:index]), sizes[index]

        def told(read: int, before: int = before, size: int = size) -> None:
            report(_STAGE, before + min(read, size), sum(sizes))

        yield index, scan_files(task, told)


def _draw(key: tuple[str, str], scan: ScanResult, config: AdaptConfig) -> Drawn:
    """Draw what is held out: the records with the smallest hashes that can be found again."""
    kind, code = key
    number = min(config.heldout, scan.sample.num_distinct // 10)
    if number < MIN_HELDOUT:
        raise CorpusError(_too_few(kind, code, scan, config))
    usable = _identified(code.split("-"))
    held: list[tuple[str, ...]] = []
    others: list[tuple[str, ...]] = []
    for record in scan.sample.in_order():
        long = all(len(letters_of(text)) >= _MIN_BYTES for text in record)
        if len(held) < number and long and usable(record):
            held.append(record)
        else:
            others.append(record)
    if len(held) < MIN_HELDOUT:
        raise CorpusError(_too_few(kind, code, scan, config))
    return Drawn(scan=scan, heldout=held, sample=others)


_REMEDIES = {
    "script": "correct the language code",
    "identical": "name a file whose two columns are different languages",
    "not JSON": "repair the lines that are not JSON",
}
"""Reason of dropped lines -> what helps besides more text."""


def _too_few(kind: str, code: str, scan: ScanResult, config: AdaptConfig) -> str:
    option, things, given = (
        ("--pairs", "pairs", config.pairs) if kind == "pairs" else ("--text", "lines", config.text)
    )
    names = ",".join(given.get(code, ()))
    reasons = scan.dropped.most_common(3)
    dropped = ", ".join(f"{number:,} {reason}" for reason, number in reasons)
    remedies = [_REMEDIES[reason] for reason, _ in reasons if reason in _REMEDIES]
    return (
        f"{option} {code}={names}: different {things} after cleaning: "
        f"{scan.sample.num_distinct:,}{f' (dropped: {dropped})' if dropped else ''}; needed are "
        f"{10 * MIN_HELDOUT:,}, of which {MIN_HELDOUT} are held out for the scores. "
        f"{', or '.join(['Give more text', *remedies])}."
    )


def _identified(languages: Sequence[str]) -> Callable[[tuple[str, ...]], bool]:
    """Whether no text of a record is identified as another language."""
    from isoglot.corpus.cleaning.language_id import LanguageIdentifier

    identifier = LanguageIdentifier.open()
    return lambda record: (
        not any(
            identifier.is_other([text], code, LANGUAGE_CONFIDENCE)[0]
            for text, code in zip(record, languages, strict=True)
        )
    )


def _side_of_pairs(code: str, pairs: dict[str, Drawn]) -> Drawn:
    """The texts of a language that has pairs only, from all its pairs.

    Characters of the side are estimated by its share of those of the sample.
    """
    held: dict[str, None] = {}
    sample: dict[str, None] = {}
    total = empty_result(0)
    for pair, one in pairs.items():
        if code not in pair.split("-"):
            continue
        side = pair.split("-").index(code)
        held.update((record[side], None) for record in one.heldout)
        sample.update((record[side], None) for record in one.sample)
        sampled = [len(text) for record in one.sample for text in record]
        share = sum(sampled[side::2]) / max(1, sum(sampled))
        total.lines += one.scan.lines
        total.characters += round(one.scan.characters * share)
    return Drawn(
        scan=total, heldout=[(text,) for text in held], sample=[(text,) for text in sample]
    )


def _write(found: HeldOut, folder: AdaptFolder) -> HeldOut:
    """Write everything; samples hold no text that is held out, of whichever language."""
    kept_out = dict.fromkeys(
        text
        for drawn in (*found.text.values(), *found.pairs.values())
        for record in drawn.heldout
        for text in record
    )
    letters = {letters_of(text) for text in kept_out}

    def free(drawn: Drawn) -> Drawn:
        sample = [r for r in drawn.sample if not any(letters_of(text) in letters for text in r)]
        return Drawn(scan=drawn.scan, heldout=drawn.heldout, sample=sample)

    found = HeldOut(
        text={code: free(drawn) for code, drawn in found.text.items()},
        pairs={code: free(drawn) for code, drawn in found.pairs.items()},
    )
    with replace_folder(folder.heldout) as heldout:
        for code, drawn in found.text.items():
            write_text(heldout / "text" / f"{code}.txt", _lines(drawn.heldout))
        for code, drawn in found.pairs.items():
            write_text(heldout / "pairs" / f"{code}.tsv", _lines(drawn.heldout))
        objects = (json.dumps({"text": text}, ensure_ascii=False) for text in kept_out)
        write_text(heldout / folder.kept_out.name, "".join(f"{one}\n" for one in objects))
    with replace_folder(folder.sample) as sample:
        for code, drawn in found.text.items():
            write_text(sample / f"{code}.txt", _lines(drawn.sample))
        for code, drawn in found.pairs.items():
            write_text(sample / f"{code}.tsv", _lines(drawn.sample[:_SAMPLE_PAIRS]))
    return found


def _lines(records: Iterable[tuple[str, ...]]) -> str:
    return "".join("\t".join(record) + "\n" for record in records)
