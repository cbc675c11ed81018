"""Test sets for `--small`: generated examples in the files that the tasks' own archives have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isoglot.languages import name_of
from isoglot.tasks.language_sets import language_set
from reproduce.small_text import WORLD, said_in

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from isoglot.testbed.word_tasks import Tagged

SIZES = {"train": 24, "dev": 8, "test": 12}
_ENTITY_TYPES = {"LOC": "LOC", "LANG": "ORG", "CUR": "PER"}
_TYDIQA = ("ar", "bn", "en", "fi", "id", "ko", "ru", "sw", "te")


def write(file: Path, text: str) -> None:
    """Write a file, its folders included."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _table(file: Path, heading: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    write(file, "".join("\t".join(row) + "\n" for row in (heading, *rows)))


def xnli(folder: Path) -> None:
    """XNLI-1.0 (dev, test) and XNLI-MT-1.0 (train, translated)."""
    languages = language_set("xnli")
    for split in ("dev", "test"):
        heading = ("language", "gold_label", "sentence1", "sentence2")
        rows = [
            (
                language,
                row.label,
                said_in(language, row.premise),
                said_in(language, row.hypothesis),
            )
            for language in languages
            for row in WORLD.nli("en", SIZES[split], stream=f"nli-{split}")
        ]
        _table(folder / f"XNLI-1.0/xnli.{split}.tsv", heading, rows)
    for language in languages:
        rows3 = [
            (said_in(language, row.premise), said_in(language, row.hypothesis), row.label)
            for row in WORLD.nli("en", SIZES["train"])
        ]
        file = folder / f"XNLI-MT-1.0/multinli/multinli.train.{language}.tsv"
        _table(file, ("premise", "hypo", "label"), rows3)


def _squad(language: str, split: str, *, prefix: str = "") -> str:
    """Questions in SQuAD's JSON."""
    articles: list[dict[str, Any]] = []
    for number, row in enumerate(WORLD.questions("en", SIZES[split], stream=f"questions-{split}")):
        said = said_in(language, row.context)
        answer = said[row.answer_start : row.answer_start + len(row.answer)]
        question = {
            "id": f"{prefix}{split}-{number}",
            "question": said_in(language, row.question),
            "answers": [{"text": answer, "answer_start": row.answer_start}],
        }
        articles.append({"title": "", "paragraphs": [{"context": said, "qas": [question]}]})
    return json.dumps({"version": "1.1", "data": articles}, ensure_ascii=False)


def squad(folder: Path) -> None:
    """SQuAD 1.1."""
    for split in ("train", "dev"):
        write(folder / f"squad/{split}-v1.1.json", _squad("en", split))


def mlqa(folder: Path) -> None:
    """MLQA_V1, questions and paragraphs in the same language."""
    for language in language_set("mlqa"):
        for split in ("dev", "test"):
            name = f"{split}-context-{language}-question-{language}.json"
            write(folder / f"MLQA_V1/{split}/{name}", _squad(language, split))


def mlqa_translate_train(folder: Path) -> None:
    """SQuAD in MLQA's languages."""
    for language in language_set("mlqa"):
        if language != "en":
            for split in ("train", "dev"):
                name = f"{language}_squad-translate-train-{split}-v1.1.json"
                write(folder / f"mlqa-translate-train/{name}", _squad(language, split))


def xquad(folder: Path) -> None:
    """XQuAD."""
    for language in language_set("xtreme-xquad"):
        write(folder / f"xquad/xquad.{language}.json", _squad(language, "test"))


def tydiqa(folder: Path) -> None:
    """TyDiQA-GoldP: all languages in one file."""
    for split in ("train", "dev"):
        data: list[Any] = []
        for language in _TYDIQA:
            told = _squad(language, split, prefix=f"{name_of(language).lower()}-")
            data += json.loads(told)["data"]
        text = json.dumps({"version": "1.1", "data": data}, ensure_ascii=False)
        write(folder / f"tydiqa/tydiqa-goldp-v1.1-{split}.json", text)


def paws_x(folder: Path) -> None:
    """PAWS-X: x-final, with translated training data."""
    names = {"train": "translated_train", "dev": "dev_2k", "test": "test_2k"}
    for language in language_set("paws-x"):
        for split, name in names.items():
            named = "train" if (language, split) == ("en", "train") else name
            rows = [
                (
                    str(number),
                    said_in(language, row.first),
                    said_in(language, row.second),
                    str(row.label),
                )
                for number, row in enumerate(
                    WORLD.paraphrases("en", SIZES[split], stream=f"paraphrases-{split}")
                )
            ]
            file = folder / f"x-final/{language}/{named}.tsv"
            _table(file, ("id", "sentence1", "sentence2", "label"), rows)


def _columns(language: str, rows: Iterable[Tagged], separator: str) -> str:
    def named(tag: str) -> str:
        prefix, _, kind = tag.partition("-")
        return f"{prefix}-{_ENTITY_TYPES[kind]}" if kind else tag

    return "\n".join(
        "".join(
            f"{said_in(language, word)}{separator}{named(tag)}\n"
            for word, tag in zip(row.words, row.tags, strict=True)
        )
        for row in rows
    )


def conll(folder: Path) -> None:
    """CoNLL-2002 (es, nl) and CoNLL-2003 (de, en)."""
    for language, year in {"en": 2003, "de": 2003, "es": 2002, "nl": 2002}.items():
        for split, size in SIZES.items():
            text = _columns(language, WORLD.ner("en", size, stream=f"ner-{split}"), " ")
            write(folder / f"conll{year}/{language}.{split}", text)


def wikiann(folder: Path) -> None:
    """WikiAnn, its training data English alone."""
    for language in language_set("xtreme"):
        for split, size in SIZES.items():
            if split == "train" and language != "en":
                continue
            text = _columns(language, WORLD.ner("en", size, stream=f"ner-{split}"), "\t")
            write(folder / f"panx/{split}-{language}.tsv", text)


def ud_pos(folder: Path) -> None:
    """UD's parts of speech, training data English alone."""
    for language in language_set("xtreme-pos"):
        for split, size in SIZES.items():
            if split == "train" and language != "en":
                continue
            rows = WORLD.pos("en", size, stream=f"pos-{split}")
            write(folder / f"udpos/{split}-{language}.tsv", _columns(language, rows, "\t"))


TASKS = {
    "xnli": xnli,
    "squad": squad,
    "mlqa": mlqa,
    "mlqa-translate-train": mlqa_translate_train,
    "xquad": xquad,
    "tydiqa": tydiqa,
    "paws-x": paws_x,
    "conll": conll,
    "wikiann": wikiann,
    "ud-pos": ud_pos,
}
