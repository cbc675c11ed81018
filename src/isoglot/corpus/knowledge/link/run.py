"""`isoglot knowledge link`: tables of dumps in, the knowledge of a prepared corpus out.

    titles ─→ pages' entities ─→ descriptions ─→ entities ─┬→ links' entities ─→ mentions ─┬→ store
                                                           └→ triples ────────────────────┘

An entity is an item that some page of a wanted language describes.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.corpus.corpus import Corpus
from isoglot.corpus.disk import write_atomically, writing
from isoglot.corpus.knowledge.link.inputs import Tables
from isoglot.corpus.knowledge.link.stages import Stages
from isoglot.corpus.knowledge.link.write import write_store
from isoglot.corpus.knowledge.store import Knowledge
from isoglot.corpus.knowledge.store_about import FILE, FOLDER
from isoglot.corpus.relational import choose_engine
from isoglot.errors import CorpusError

if TYPE_CHECKING:
    from isoglot.corpus.knowledge.link.settings import LinkConfig
    from isoglot.corpus.knowledge.store_about import About
    from isoglot.corpus.workshop import Progress

WORK = ".linking"
"""Folder of the corpus where results wait for the next stage; gone when linking is finished."""


def link(
    config: LinkConfig,
    tables: Path | str,
    corpus: Path | str,
    *,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> About:
    """Links the tables of dumps and writes the corpus's knowledge, unless it is there already.

    Args:
        config: what is kept.
        tables: the folder that `extract` wrote.
        corpus: a prepared corpus; its tokenizer is used.
        workers: processes that tokenize.
        cluster: where joins run; see `isoglot.corpus.relational.choose_engine`.
        progress: told how far each stage is.
    """
    report = progress or _silent
    found = Tables.open(Path(tables), config.languages)
    opened = Corpus.open(corpus, verify="never")
    settings = {**json.loads(json.dumps(asdict(config))), "tables": found.digest()}
    settings["languages"] = list(found.languages)
    present = _up_to_date(opened, settings)
    if present is not None:
        report("up to date", 1, 1)
        return present
    choose_engine(cluster)
    work = _begin(opened, settings)
    stages = Stages(found, opened, config, work)
    stages.run(workers=workers, report=report)
    about = write_store(stages, settings, report)
    with writing(work):
        shutil.rmtree(work)
    return about


def _up_to_date(corpus: Corpus, settings: dict[str, Any]) -> About | None:
    """What there is, if it was made of the same tables with the same settings and tokenizer."""
    if not (corpus.folder / FOLDER / FILE).is_file():
        return None
    try:
        tokenizer = corpus.manifest.tokenizer.fingerprint
        about = Knowledge.open(corpus.folder / FOLDER, tokenizer=tokenizer).about
    except CorpusError:  # damaged, or of another tokenizer: made anew
        return None
    return about if about.settings == settings else None


def _begin(corpus: Corpus, settings: dict[str, Any]) -> Path:
    """The working folder; what a run with other settings left there goes away."""
    work = corpus.folder / WORK
    key = json.dumps({**settings, "tokenizer": corpus.manifest.tokenizer.fingerprint})
    mark = work / "settings.json"
    if not mark.is_file() or mark.read_text(encoding="utf-8") != key:
        with writing(work):
            shutil.rmtree(work, ignore_errors=True)
        write_atomically(mark, key.encode())
    return work


def _silent(stage: str, done: int, total: int | None) -> None:
    """Progress nobody asked for."""
