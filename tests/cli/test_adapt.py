"""`isoglot adapt`: what a user gets wrong is a sentence that names the file and the remedy."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
from pathlib import Path

import pytest

from isoglot.adaptation.request import AdaptConfig
from isoglot.adaptation.run import AdaptOutcome
from tests.adaptation.given import Given, make_given
from tests.adaptation.knowledge_tables import write_tables
from tests.adaptation.test_export import SCORES


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> Given:
    return make_given(tmp_path_factory.mktemp("given"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    """Knowledge in English and German, shared: do not write into it."""
    return write_tables(tmp_path_factory.mktemp("knowledge") / "tables", languages=("en", "de"))


@pytest.fixture(scope="module")
def few_tables(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("knowledge") / "few"
    return write_tables(folder, languages=("en", "sw"), max_entities=12)


def break_tables(tables: Path, workdir: Path) -> None:
    """Copies of the tables with a fault each, and what else a user may take for tables."""
    for name in ("cut-pages", "cut-claims", "no-wikidata", "begun", "bad-counts"):
        shutil.copytree(tables, workdir / name)
    for cut in ("cut-pages/wikipedia/de/pages", "cut-claims/wikidata/claims"):
        file = workdir / f"{cut}-00000.parquet"
        file.write_bytes(file.read_bytes()[:300])
    shutil.rmtree(workdir / "no-wikidata/wikidata")
    (workdir / "begun/counts.json").unlink()
    (workdir / "bad-counts/counts.json").write_text('{"settings": ')
    (workdir / "linked/knowledge").mkdir(parents=True)
    (workdir / "linked/knowledge/knowledge.json").write_text("{}")
    (workdir / "graph.yaml").write_text("graphs: {}\n")


@pytest.fixture
def files(given, workdir, tables, few_tables) -> Path:
    """A folder with an encoder, good files and bad ones."""
    (workdir / "models").mkdir()
    (workdir / "models/mine").symlink_to(given.encoder)
    english = given.text("en").read_text("utf-8")
    (workdir / "en.txt").write_text(english, encoding="utf-8")
    (workdir / "en-sw.tsv").write_text(given.pairs("en-sw").read_text("utf-8"), encoding="utf-8")
    (workdir / "few.txt").write_text("\n".join(english.split("\n")[:50]), encoding="utf-8")
    (workdir / "empty.txt").touch()
    (workdir / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF" * 99)
    (workdir / "latin1.txt").write_bytes("né à Évry, où il pleut\n".encode("latin-1") * 300)
    (workdir / "cut.txt.gz").write_bytes(gzip.compress(english.encode())[:2000])
    (workdir / "one.tsv").write_text(english, encoding="utf-8")
    (workdir / "table.csv").write_text('en,sw\n"a,b\n')
    (workdir / "same.tsv").write_text("".join(f"line {n}\tline {n}\n" for n in range(300)))
    (workdir / "broken.jsonl").write_text('{"text": "a line"}\n{"text": \n' * 200)
    (workdir / "used").mkdir()
    (workdir / "used/thesis.tex").touch()
    (workdir / "nothing").mkdir()
    (workdir / "tables").symlink_to(tables)
    (workdir / "few").symlink_to(few_tables)
    (workdir / "de.txt").write_text(given.text("de").read_text("utf-8"), encoding="utf-8")
    break_tables(tables, workdir)
    (workdir / "models/mute").mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(given.encoder / name, workdir / "models/mute")
    return workdir


TEXT = ("--text", "en=en.txt")
TWO = (*TEXT, "--text", "de=de.txt")
BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "no data": (("models/mine",), "nothing to learn from: give text (--text sw=FILE) or pairs"),
    "a file that is not there": (
        ("models/mine", "--text", "en=eng.txt"),
        "eng.txt: there is no such file; did you mean 'en.txt'?",
    ),
    "a pattern that matches nothing": (
        ("models/mine", "--text", "en=*.xz"),
        "--text en: no file matches *.xz.",
    ),
    "a pattern without quotes": (
        ("models/mine", "--text", "en=en.txt", "few.txt", "latin1.txt"),
        "unexpected argument few.txt and 1 more. If the shell expanded a pattern",
    ),
    "an empty file": (
        ("models/mine", "--text", "en=empty.txt"),
        "empty.txt: is empty. Name a file with text.",
    ),
    "an empty folder": (
        ("models/mine", "--text", "en=nothing"),
        "--text en: the folder nothing holds no data files.",
    ),
    "no language": (
        ("models/mine", "--text", "en.txt"),
        "--text en.txt: names no language. Write --text sw=FILE",
    ),
    "a wrong language code": (
        ("models/mine", "--text", "englisch=en.txt"),
        "'englisch' is not a language code. Write a code of BCP 47 or ISO 639, such as sw",
    ),
    "a pair of one language": (
        ("models/mine", "--pairs", "en=en-sw.tsv"),
        "pairs: 'en' does not name two languages. Write --pairs en-sw=FILE",
    ),
    "a binary file": (
        ("models/mine", "--text", "en=photo.jpg"),
        "photo.jpg: is a binary file. Name a file of UTF-8 text.",
    ),
    "another encoding": (
        ("models/mine", "--text", "fr=latin1.txt"),
        "latin1.txt: is not UTF-8 text (300 of its first 300 lines are not). Write it again as",
    ),
    "a file that is cut short": (
        ("models/mine", "--text", "en=cut.txt.gz"),
        "cut.txt.gz: is damaged or cut short after decompressed byte",
    ),
    "CSV": (
        ("models/mine", "--pairs", "en-sw=table.csv"),
        "table.csv, line 2: the quote that opens a",
    ),
    "pairs of one column": (
        ("models/mine", "--pairs", "en-sw=one.tsv"),
        "one.tsv: has one column, and en-sw needs the text of both languages. Give a file with",
    ),
    "text in the place of pairs": (
        ("models/mine", "--text", "en=en-sw.tsv"),
        "en-sw.tsv: has 2 columns with tabs between, and text of one language has one.",
    ),
    "too little text": (
        ("models/mine", "--text", "en=few.txt"),
        "--text en=few.txt: different lines after cleaning: 42 (dropped: 7 blank); needed are 100",
    ),
    "pairs of the same text": (
        ("models/mine", "--pairs", "en-sw=same.tsv"),
        "Give more text, or name a file whose two columns are different languages.",
    ),
    "lines that are not JSON": (
        ("models/mine", "--text", "en=broken.jsonl"),
        "Give more text, or repair the lines that are not JSON.",
    ),
    "a folder without a model": (("nothing", *TEXT), "nothing holds no model (no config.json"),
    "an encoder without a tokenizer": (
        ("models/mute", *TEXT),
        "models/mute: holds no tokenizer (",
    ),
    "a file as encoder": (("en.txt", *TEXT), "en.txt is a file. Give a Hugging Face folder"),
    "no hours": (
        ("models/mine", *TEXT, "--hours", "0"),
        "hours must be above 0 and at most 10,000, not 0",
    ),
    "no number of words": (
        ("models/mine", *TEXT, "--vocabulary", "many"),
        "--vocabulary many: write auto, keep, or the number of words to add.",
    ),
    "a folder of something else": (
        ("models/mine", *TEXT, "--out", "used"),
        "used: is not empty and is not the folder of an adaptation (it has no adapt.yaml).",
    ),
    "a test that is training data": (
        ("models/mine", *TEXT, "--test", "en.txt"),
        "en.txt: is given for --test and for en. Name it once.",
    ),
    "a dictionary that is not there": (
        ("models/mine", *TEXT, "--dictionary", "words.txt"),
        "words.txt: there is no such file",
    ),
    "a pattern of dictionaries that matches nothing": (
        ("models/mine", *TEXT, "--dictionary", "words-*.txt"),
        "--dictionary: no file matches words-*.txt.",
    ),
    "text in the place of a dictionary": (
        ("models/mine", *TEXT, "--dictionary", "en.txt"),
        "lines are not a word and its translation (this one: more than two words and no tab).",
    ),
    "gold alignments that are not there": (
        ("models/mine", *TEXT, "--alignments", "nothing"),
        "alignments: nothing has no gold word alignments.",
    ),
    "knowledge that is not there": (
        ("models/mine", *TWO, "--knowledge", "wiki"),
        "--knowledge wiki: there is no such folder; isoglot knowledge extract or isoglot knowledge",
    ),
    "a file in the place of knowledge": (
        ("models/mine", *TWO, "--knowledge", "graph.yaml"),
        "--knowledge graph.yaml: is a file. Name the folder of tables that isoglot knowledge",
    ),
    "a folder without knowledge": (
        ("models/mine", *TWO, "--knowledge", "nothing"),
        "--knowledge nothing: holds no tables of knowledge (no counts.json); isoglot knowledge",
    ),
    "knowledge of a corpus": (
        ("models/mine", *TWO, "--knowledge", "linked"),
        "--knowledge linked: is knowledge that was linked to a corpus, in the tokens of its",
    ),
    "tables that are not complete": (
        ("models/mine", *TWO, "--knowledge", "begun"),
        "--knowledge begun: its tables are not complete (no counts.json). Run isoglot knowledge",
    ),
    "knowledge without Wikidata": (
        ("models/mine", *TWO, "--knowledge", "no-wikidata"),
        "no-wikidata: was extracted without Wikidata, which maps pages to entities.",
    ),
    "knowledge of other languages": (
        ("models/mine", "--text", "fr=en.txt", "--knowledge", "tables"),
        "--knowledge tables: has de, en, the request has fr: no language in common. Descriptions",
    ),
    "knowledge with one language in common": (
        ("models/mine", *TEXT, "--pairs", "en-sw=en-sw.tsv", "--knowledge", "tables"),
        "--knowledge tables: has de, en, the request has en, sw: only en in common. Descriptions",
    ),
    "too little knowledge": (
        ("models/mine", *TEXT, "--pairs", "en-sw=en-sw.tsv", "--knowledge", "few"),
        "needed are 100 mentions or facts. Write its tables from more pages or facts, or leave",
    ),
    "knowledge with a damaged file": (
        ("models/mine", *TWO, "--knowledge", "cut-pages"),
        "wikipedia/de/pages-00000.parquet: cannot be read (",
    ),
    "knowledge with damaged facts": (
        ("models/mine", *TWO, "--knowledge", "cut-claims"),
        "wikidata/claims-00000.parquet: cannot be read (",
    ),
    "knowledge with damaged counts": (
        ("models/mine", *TWO, "--knowledge", "bad-counts"),
        "bad-counts/counts.json: is damaged (",
    ),
    "settings that are not there": (("adapt.yaml", *TEXT), "there is no file adapt.yaml"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_inputs(case, isoglot, files):
    arguments, wanted = BAD[case]
    said = isoglot("adapt", *arguments, "--dry-run")
    assert said.code == 1, said.err
    (sentence,) = [line for line in said.err.splitlines() if line.startswith("isoglot: ")]
    assert wanted in sentence
    assert "Traceback" not in said.err
    assert not (files / "adapted/plan").exists()


def test_a_wrong_request_does_not_hold_the_folder(isoglot, files):
    """After a mistake the same --out takes the corrected command."""
    assert isoglot("adapt", "models/mine", "--text", "en=empty.txt", "--dry-run").code == 1
    said = isoglot("adapt", "models/mine", "--text", "en=few.txt", "--dry-run")
    assert "another request" not in said.err
    assert "--text en=few.txt: different lines after cleaning: 42" in said.err


@pytest.mark.parametrize("architecture", ["gpt2", "bart"])
def test_models_that_are_no_encoders(architecture, isoglot, files, given):
    from transformers import BartConfig, BartForConditionalGeneration, GPT2Config, GPT2LMHeadModel

    model = {
        "gpt2": lambda: GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=99)),
        "bart": lambda: BartForConditionalGeneration(
            BartConfig(
                d_model=8,
                encoder_layers=1,
                decoder_layers=1,
                encoder_attention_heads=1,
                decoder_attention_heads=1,
                encoder_ffn_dim=8,
                decoder_ffn_dim=8,
                vocab_size=99,
            )
        ),
    }[architecture]()
    model.save_pretrained(files / "models/other")
    for file in given.encoder.glob("token*"):
        shutil.copy(file, files / "models/other")
    said = isoglot("adapt", "models/other", *TEXT, "--dry-run")
    assert said.code == 1
    wanted = {
        "gpt2": "models/other is a gpt2 model, not a masked language model",
        "bart": "models/other is an encoder-decoder, which generates text. adapt takes an encoder",
    }
    assert wanted[architecture] in said.err


def test_a_full_disk(isoglot, files, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    said = isoglot("adapt", "models/mine", *TEXT, "--dry-run")
    assert said.code == 1
    assert "adapted/adapt.yaml: cannot be written (No space left on device). Free disk" in said.err


@pytest.mark.slow
def test_the_plan_and_how_it_is_given_back(isoglot, files, monkeypatch):
    """Facts, then a plan with reasons; the same command uses it; another one plans anew."""
    monkeypatch.setattr("isoglot.adaptation.resources._TRIAL_SECONDS", 1.0)
    command = ("adapt", "models/mine", *TEXT, "--pairs", "en-sw=en-sw.tsv", "--heldout", "40")
    said = isoglot(*command, "--dry-run")
    assert said.code == 0, said.err
    shown = said.err.replace("\n", " ")
    assert shown.index("XLMRobertaForMaskedLM, 2 layers × 32") < shown.index("en: 1,")
    assert "tokens a second measured" in (files / "adapted/plan/plan.json").read_text()
    assert "plan: written to adapted/plan" in said.err
    recipe = files / "adapted/plan/recipe.yaml"
    before = recipe.read_text()
    recipe.write_text(before.replace("seed: 0", "seed: 5"))
    assert (
        "adapted/plan is used as it is; edited: recipe.yaml" in isoglot(*command, "--dry-run").err
    )
    said = isoglot(*command, "--dry-run", "--hours", "1")
    assert said.code == 1
    assert "adapted: was begun with another request: hours was not set and is 1.0." in said.err
    recipe.write_text(before)
    said = isoglot(*command, "--dry-run", "--hours", "1")
    assert "adapted: planned anew, since hours was not set and is 1.0." in said.err
    steps = [line for line in recipe.read_text().splitlines() if "steps:" in line]
    assert steps != [line for line in before.splitlines() if "steps:" in line]


def test_options_change_what_a_file_says_also_back_to_the_default(isoglot, files, monkeypatch):
    taken: list[AdaptConfig] = []

    def run(config, out, **_):
        taken.append(config)
        return AdaptOutcome(out=out, finished=False)

    monkeypatch.setattr("isoglot.adaptation.run.adapt", run)
    (files / "adapt.yaml").write_text(
        "encoder: models/mine\ntext: {en: en.txt}\nvocabulary: keep\nseed: 3\nheldout: 50\n"
    )
    assert "--dry-run" in isoglot("adapt", "adapt.yaml", "--vocabulary", "auto").out
    assert isoglot("adapt", "adapt.yaml", "--seed", "0", "--test", "t.txt").code == 0
    assert [(one.vocabulary, one.seed, one.heldout, one.tests) for one in taken] == [
        ("auto", 3, 50, ()),
        ("keep", 0, 50, ("t.txt",)),
    ]


def test_scores_are_printed_with_what_got_worse_and_where_files_are(isoglot, files, monkeypatch):
    """The adaptation itself is in tests/adaptation; this is what a user reads at its end."""
    (files / "adapted/sentence-transformers").mkdir(parents=True)
    (files / "adapted/sentence-transformers/modules.json").touch()
    done = AdaptOutcome(out=Path("adapted"), finished=True, scores=SCORES, pushed=("https://a/b",))
    monkeypatch.setattr("isoglot.adaptation.run.adapt", lambda *_, **__: done)
    result = isoglot("adapt", "models/mine", *TEXT)
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "bits per character en 1.500 1.530 +2.0 % (+0.7 to +3.3) worse" in lines
    assert lines[-6:] == [
        "worse: bits per character, en: +2.0 % (+0.7 to +3.3)",
        "layer: layer 3; chosen on 70 development pairs",
        "model: adapted/model",
        "sentence-transformers: adapted/sentence-transformers",
        "page: adapted/report.html",
        "pushed: https://a/b",
    ]


def test_an_interrupted_adaptation_says_how_to_go_on(isoglot, files, monkeypatch):
    stopped = AdaptOutcome(
        out=Path("adapted"), finished=False, stopped="interrupted while training"
    )
    monkeypatch.setattr("isoglot.adaptation.run.adapt", lambda *_, **__: stopped)
    result = isoglot("adapt", "models/mine", *TEXT)
    assert result.code == 130
    assert result.out == "interrupted while training; the same command continues.\n"
