from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isoglot.adaptation import heldout as module
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.heldout import hold_out
from isoglot.adaptation.inputs import find_inputs, sources_of
from isoglot.adaptation.request import AdaptConfig
from isoglot.corpus import Corpus
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.corpus.tokenization.vocabulary import open_tokenizer
from isoglot.errors import CorpusError

WORDS = ["alpha", "bravo", "delta", "gamma", "kilo", "lima", "omega", "romeo", "sigma", "tango"]


def heldout_text(folder: AdaptFolder) -> dict[str, list[str]]:
    files = sorted((folder.heldout / "text").glob("*.txt"))
    return {file.stem: file.read_text("utf-8").splitlines() for file in files}


def heldout_pairs(folder: AdaptFolder) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for file in sorted((folder.heldout / "pairs").glob("*.tsv")):
        rows = (line.split("\t") for line in file.read_text("utf-8").splitlines())
        found[file.stem] = [(first, second) for first, second in rows]
    return found


def sentences(number: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 7)) + f" {n}" for n in range(number)]


def write(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def drawn(out: Path, **settings: object) -> AdaptFolder:
    config = AdaptConfig(encoder="m", **settings)  # type: ignore[arg-type]
    folder = AdaptFolder(out)
    hold_out(find_inputs(config, out / "downloads"), config, folder)
    return folder


def test_nothing_held_out_is_in_the_corpus(looked):
    """Neither a line nor a side of a pair, in text or in pairs, nor a line of the tests."""
    config, folder = looked.config, looked.folder
    inputs = find_inputs(config, folder.downloads)
    settings = PrepareConfig(
        sources=sources_of(inputs.data),
        tokenizer=TokenizerConfig(folder=config.encoder),
        exclude=("../heldout/kept-out.jsonl", *map(str, inputs.tests)),
        heldout_share=0.0,
    )
    prepare(settings, folder.path.parent / "corpus", base=folder.heldout)
    corpus = Corpus.open(folder.path.parent / "corpus")
    tokenizer = open_tokenizer(corpus.tokenizer_folder)
    kept: set[str] = set()
    for source, entry in corpus.manifest.sources.items():
        for language in entry.languages:
            table = corpus.table(source, language, "train")
            for column in table.columns:
                ids = (table.ids(column, row) for row in range(table.num_rows))
                kept.update(tokenizer.decode(one) for one in ids)
    assert len(kept) > 500
    held = [line for lines in heldout_text(folder).values() for line in lines]
    held += [text for pairs in heldout_pairs(folder).values() for pair in pairs for text in pair]
    tests = [text for file in inputs.tests for text in file.read_text().split("\n") if text]
    assert len(held) > 150
    assert not kept & {*held, *(text for line in tests for text in line.split("\t"))}


def test_how_many_are_held_out(looked):
    folder = looked.folder
    assert {code: len(lines) for code, lines in heldout_text(folder).items()} == {
        "en": 60,
        "sw": len({pair[1] for pair in heldout_pairs(folder)["en-sw"]}),
    }
    (pairs,) = heldout_pairs(folder).values()
    assert len(pairs) == len(set(pairs)) == 60
    given = Path(looked.config.pairs["en-sw"][0]).read_text("utf-8").splitlines()
    assert {"\t".join(pair) for pair in pairs} <= set(given)


def test_samples_hold_nothing_that_is_held_out(looked):
    folder = looked.folder
    held = {line for lines in heldout_text(folder).values() for line in lines}
    held |= {text for pairs in heldout_pairs(folder).values() for pair in pairs for text in pair}
    for code in ("en", "sw"):
        lines = (folder.sample / f"{code}.txt").read_text("utf-8").splitlines()
        assert len(lines) > 300
        assert not held & set(lines)
    rows = (folder.sample / "en-sw.tsv").read_text("utf-8").splitlines()
    assert not held & {text for row in rows for text in row.split("\t")}


def test_at_most_a_tenth(tmp_path):
    name = write(tmp_path / "a.txt", sentences(240) * 2)
    folder = drawn(tmp_path / "out", text={"en": (name,)}, heldout=1000)
    assert len(heldout_text(folder)["en"]) == 24


def test_the_text_and_the_seed_decide(tmp_path):
    """Not the order, nor how the lines are divided among files and processes."""
    lines = sentences(400)
    whole = write(tmp_path / "a.txt", [*lines, *lines[:50]])
    parts = [
        write(tmp_path / "b.txt", lines[::-2]),
        write(tmp_path / "c.txt", [f"  {line} " for line in lines[-2::-2]]),
    ]
    found = {
        name: heldout_text(drawn(tmp_path / name, text={"en": files}, heldout=20, seed=seed))["en"]
        for name, files, seed in [
            ("whole", (whole,), 0),
            ("parts", tuple(parts), 0),
            ("other", (whole,), 1),
        ]
    }
    assert found["whole"] == found["parts"]
    assert len(set(found["whole"]) & set(found["other"])) < 10


@pytest.mark.slow
def test_several_processes_find_the_same(tmp_path, monkeypatch):
    names = tuple(write(tmp_path / f"{n}.txt", sentences(300, n)) for n in range(4))
    one = drawn(tmp_path / "one", text={"en": names}, workers=1)
    monkeypatch.setattr(module, "_LARGE", 0)
    two = drawn(tmp_path / "two", text={"en": names}, workers=2)
    files = [path.relative_to(one.path) for path in one.path.rglob("*") if path.is_file()]
    assert len(files) == 3
    for file in files:
        assert (one.path / file).read_bytes() == (two.path / file).read_bytes()


def test_lines_that_cannot_be_found_again_are_not_held_out(tmp_path):
    """Texts of fewer than ten bytes of letters are not excluded by prepare."""
    short = [f"ok {number}" for number in range(500)]
    name = write(tmp_path / "a.txt", [*short, *sentences(300)])
    held = heldout_text(drawn(tmp_path / "out", text={"en": (name,)}, heldout=50))["en"]
    assert len(held) == 50
    assert not set(held) & set(short)


def test_lines_of_another_language_are_not_held_out(tmp_path):
    other = ["Der gute Lehrer liest heute einen langen Brief in der alten Schule."]
    german = [f"{other[0]} {number}" for number in range(200)]
    english = [f"The good teacher reads a long letter in the old school {n}." for n in range(200)]
    name = write(tmp_path / "a.txt", [*german, *english])
    held = heldout_text(drawn(tmp_path / "out", text={"en": (name,)}, heldout=40))["en"]
    assert len(held) == 40
    assert not set(held) & set(german)


def test_too_little_to_hold_out(tmp_path):
    few = write(tmp_path / "a.txt", sentences(60))
    with pytest.raises(CorpusError, match=r"--text en=.*a\.txt: different lines .*: 60; needed"):
        drawn(tmp_path / "out", text={"en": (few,)})
    cyrillic = write(tmp_path / "ru.txt", ["Добрый учитель читает письмо."] * 300)
    with pytest.raises(CorpusError, match=r"dropped: 300 script.* or correct the language code"):
        drawn(tmp_path / "out", text={"sw": (cyrillic,)})
    pairs = write(
        tmp_path / "a.tsv", [f"{a}\t{b}" for a, b in zip(sentences(30), WORDS * 3, strict=True)]
    )
    with pytest.raises(
        CorpusError, match=r"--pairs en-sw=.*a\.tsv: different pairs after cleaning: \d+"
    ):
        drawn(tmp_path / "out", pairs={"en-sw": (pairs,)})
    assert not (tmp_path / "out").exists()
