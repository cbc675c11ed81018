from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from cattrs.preconf.json import make_converter
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from isoglot.corpus import Corpus
from isoglot.corpus.cleaning.sentences import normalize_text
from isoglot.corpus.deduplication.hashing import DuplicatesConfig
from isoglot.corpus.pipeline.plan import PrepareConfig
from isoglot.corpus.pipeline.run import prepare
from isoglot.corpus.reading.sources import SourceConfig
from isoglot.corpus.storage.shards import SPLITS
from isoglot.corpus.tokenization.build import TokenizerConfig
from isoglot.errors import CorpusError, RecipeError, WriteError
from tests.corpus.conftest import config
from tests.corpus.tokenization.test_vocabulary import wordpiece

if TYPE_CHECKING:
    from pathlib import Path


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def decoded(corpus, source, language, split):
    tokenizer = AutoTokenizer.from_pretrained(corpus.tokenizer_folder)
    table = corpus.table(source, language, split)
    return [
        tuple(tokenizer.decode(table.ids(column, row)) for column in table.columns)
        for row in range(table.num_rows)
    ]


def add_up(manifest):
    for source in manifest.sources.values():
        for language, counts in source.counts.items():
            rows = {split: source.languages[language][split].rows for split in SPLITS}
            assert counts.heldout == rows["heldout"]
            assert counts.kept == sum(rows.values())
            assert counts.read == counts.kept + sum(counts.dropped.values())
    return manifest.sources


def test_the_corpus_holds_the_text_in_order(raw, corpus):
    lines = (raw / "text" / "de.txt").read_text("utf-8").splitlines()
    expected = [normalize_text(line) for line in lines if line]
    train, heldout = (decoded(corpus, "wiki", "de", split) for split in SPLITS)
    assert len(train) + len(heldout) == len(expected)
    held = {text for (text,) in heldout}
    assert [text for (text,) in train] == [text for text in expected if text not in held]
    assert corpus.languages == ("de", "en", "zh")
    assert corpus.sources("text") == ["wiki"]
    assert corpus.sources("pairs") == ["bible"]


def test_documents_go_on_without_their_heldout_sentences(raw, corpus):
    documents = {}
    for number, document in enumerate((raw / "text" / "en.txt").read_text().split("\n\n")):
        documents.update(dict.fromkeys(map(normalize_text, document.splitlines()), number))
    for split in SPLITS:
        table = corpus.table("wiki", "en", split)
        numbers = [number for shard in table.shards for number in shard["document"].tolist()]
        texts = [text for (text,) in decoded(corpus, "wiki", "en", split)]
        assert numbers == [documents[text] for text in texts]


def test_no_heldout_sentence_is_trained_on_in_any_source(tmp_path, tokenizer):
    sentences = [f"sentence number {number}" for number in range(200)]
    (tmp_path / "en.txt").write_text("\n".join(sentences))
    (tmp_path / "en-de.tsv").write_text("".join(f"{text}\tSatz {text}\n" for text in sentences))
    sources = {
        "text": SourceConfig(files={"en": ("en.txt",)}),
        "pairs": SourceConfig(kind="pairs", format="tsv", files={"en-de": ("en-de.tsv",)}),
    }
    settings_ = config(
        sources=sources, tokenizer=TokenizerConfig(folder=str(tokenizer)), heldout_share=0.2
    )
    prepare(settings_, tmp_path / "corpus", base=tmp_path)
    corpus = Corpus.open(tmp_path / "corpus")
    held = {text for (text,) in decoded(corpus, "text", "en", "heldout")}
    trained = {text for (text,) in decoded(corpus, "text", "en", "train")}
    paired = {first for first, _ in decoded(corpus, "pairs", "en-de", "train")}
    assert held
    assert not held & trained
    assert not held & paired
    assert held | trained == set(sentences)


DAMAGE = st.lists(
    st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=30).map(str.encode),
        st.sampled_from(
            [b"", b" ", b"\xff\xfe", b"a\tb", b"a\tb\tc", b"\x00", b"\xef\xbb\xbf", b"x\tx"]
        ),
    ),
    max_size=25,
)


@settings(max_examples=12, deadline=None)
@given(chunks=DAMAGE, ends=st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=25))
def test_counts_add_up_to_the_lines_read(tmp_path_factory, tokenizer, chunks, ends):
    folder = tmp_path_factory.mktemp("damage")
    data = b"one good line\tand its translation\n"
    data += b"".join(chunk + end for chunk, end in zip(chunks, ends, strict=False))
    (folder / "x.txt").write_bytes(data)
    sources = {
        "text": SourceConfig(files={"en": ("x.txt",)}),
        "pairs": SourceConfig(kind="pairs", format="tsv", files={"en-de": ("x.txt",)}),
    }
    chosen = config(
        sources=sources, tokenizer=TokenizerConfig(folder=str(tokenizer)), heldout_share=0.0
    )
    found = add_up(prepare(chosen, folder / "corpus", base=folder))
    number = len(data.splitlines())
    assert found["text"].total().read == found["pairs"].total().read == number
    assert found["text"].total().kept >= 1


def test_any_number_of_workers_writes_the_same_bytes(raw, corpus, tmp_path):
    prepare(config(shard_tokens=500), tmp_path / "two", base=raw, workers=2)
    one, two = contents(corpus.folder), contents(tmp_path / "two")
    assert one == two
    assert "wiki/zh/train-00001.arrow" in one
    assert not any(name.startswith(".") for name in one if not name.startswith(".index/"))


def test_a_second_run_does_nothing_until_something_changes(raw, tmp_path, tokenizer):
    for name in ("text/en.txt", "text/de.txt", "text/zh.txt", "pairs.tsv"):
        target = tmp_path / "raw" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((raw / name).read_bytes())
    output, chosen = tmp_path / "corpus", config(tokenizer=TokenizerConfig(folder=str(tokenizer)))
    stages: list[str] = []

    def run(settings_: PrepareConfig, *, overwrite: bool = False):
        stages.clear()
        return prepare(
            settings_,
            output,
            base=tmp_path / "raw",
            progress=lambda stage, *_: stages.append(stage),
            overwrite=overwrite,
        )

    first = run(chosen)
    assert "encode" in stages
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    assert run(chosen) == first
    assert set(stages) == {"hash files", "up to date"}
    assert before == {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    # a damaged shard is prepared anew
    shard = output / "wiki/en/train-00000.arrow"
    shard.write_bytes(shard.read_bytes()[:-1])
    assert run(chosen) == first
    assert "encode" in stages
    # a corpus whose input changed, whose source is gone, is anew if asked
    (tmp_path / "raw/text/en.txt").write_text("Another line altogether.\n" * 3)
    fewer = {"wiki": SourceConfig(files={"en": ("text/en.txt",)})}
    changed = config(sources=fewer, tokenizer=chosen.tokenizer, heldout_share=0.0)
    with pytest.raises(CorpusError, match="is a finished corpus of other settings") as error:
        run(changed)
    for difference in (
        f"heldout_share was {chosen.heldout_share} and is 0.0;",
        "sources.wiki.files.de is gone;",
        "pairs.tsv is gone",
        "text/en.txt changed",
        "Add --overwrite",
    ):
        assert difference in str(error.value)
    assert set(stages) == {"hash files"}
    assert before.keys() == set(output.rglob("*"))
    second = run(changed, overwrite=True)
    assert second.fingerprint != first.fingerprint
    left = sorted(path.name for path in output.iterdir())
    assert left == [".index", "manifest.json", "tokenizer", "wiki"]
    assert [path.name for path in (output / "wiki").iterdir()] == ["en"]


def test_progress_ends_at_its_total(raw, tmp_path, tokenizer):
    seen: dict[str, list[tuple[int, int | None]]] = {}
    (tmp_path / "test.txt").write_text("A line of a test.\n")
    prepare(
        config(
            tokenizer=TokenizerConfig(folder=str(tokenizer)), exclude=(str(tmp_path / "test.txt"),)
        ),
        tmp_path / "corpus",
        base=raw,
        progress=lambda stage, done, total: seen.setdefault(stage, []).append((done, total)),
    )
    expected = ["hash files", "exclude", "clean", "duplicates", "collect duplicates"]
    assert list(seen) == [*expected, "tokenizer", "encode", "index"]
    for steps in seen.values():
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1]


def test_an_interrupted_run_starts_cleanly_again(raw, tmp_path, tokenizer, monkeypatch):
    chosen = config(tokenizer=TokenizerConfig(folder=str(tokenizer)), shard_tokens=500)
    prepare(chosen, tmp_path / "whole", base=raw)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("isoglot.corpus.pipeline.run.finish_output", interrupt)
        with pytest.raises(KeyboardInterrupt):
            prepare(config(tokenizer=chosen.tokenizer, shard_tokens=50), tmp_path / "b", base=raw)
    with pytest.raises(CorpusError, match="interrupted"):
        Corpus.open(tmp_path / "b")
    prepare(chosen, tmp_path / "b", base=raw)
    assert contents(tmp_path / "b") == contents(tmp_path / "whole")


def test_a_folder_that_is_no_corpus_is_never_touched(raw, tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(CorpusError, match="not empty and is not a prepared corpus"):
        prepare(config(), tmp_path, base=raw)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("cleaned/wiki/en/00000/train.txt", r"wiki/en/00000/train\.txt"),
        ("cleaned/wiki/en/00000/exact.hashes", r"exact\.hashes"),
        ("encoded/wiki/en/train-00000-00000.arrow.partial", r"wiki/en/train-00000-00000\.arrow"),
    ],
)
def test_a_full_disk_names_the_file_and_the_fix(raw, tmp_path, tokenizer, file, names):
    chosen = config(tokenizer=TokenizerConfig(folder=str(tokenizer)))
    full = tmp_path / "corpus/.work" / file
    full.parent.mkdir(parents=True)
    (tmp_path / "corpus/.preparing").touch()
    full.symlink_to("/dev/full")
    with pytest.raises(WriteError, match=rf"{names}.*No space left on device.*Free disk space"):
        prepare(chosen, tmp_path / "corpus", base=raw)
    full.unlink(missing_ok=True)
    assert not list((tmp_path / "corpus").rglob("*.partial"))
    add_up(prepare(chosen, tmp_path / "corpus", base=raw))


def test_any_tokenizer_folder_serves(raw, tmp_path):
    wordpiece(tmp_path / "bert")
    chosen = config(tokenizer=TokenizerConfig(folder="bert"), heldout_share=0.0)
    sources = {
        name: SourceConfig(
            kind=source.kind,
            format=source.format,
            files={key: tuple(str(raw / f) for f in files) for key, files in source.files.items()},
        )
        for name, source in chosen.sources.items()
    }
    manifest = prepare(
        config(tokenizer=chosen.tokenizer, sources=sources), tmp_path / "corpus", base=tmp_path
    )
    add_up(manifest)
    corpus = Corpus.open(tmp_path / "corpus")
    corpus.check_tokenizer(tmp_path / "bert")
    assert not set(corpus.vocabulary.special) & set(
        corpus.table("wiki", "en", "train").shards[0].values("ids").tolist()
    )


def test_text_that_becomes_a_special_token_is_dropped_and_counted(tmp_path, tokenizer):
    # as in XLM-R's own tokenizer, `<s>` is a piece like any other to this one
    shutil.copytree(tokenizer, tmp_path / "tokenizer")
    content = json.loads((tokenizer / "tokenizer.json").read_text("utf-8"))
    content["model"]["vocab"][0] = ["<s>", 0.0]
    (tmp_path / "tokenizer" / "tokenizer.json").write_text(json.dumps(content))
    (tmp_path / "en.txt").write_text("plain text\nwith <s> inside\n")
    chosen = config(
        sources={"s": SourceConfig(files={"en": ("en.txt",)})},
        tokenizer=TokenizerConfig(folder="tokenizer"),
        heldout_share=0.0,
    )
    manifest = prepare(chosen, tmp_path / "corpus", base=tmp_path)
    assert add_up(manifest)["s"].total().dropped == {"special": 1}


def test_patterns_are_sorted_and_must_match(tmp_path, tokenizer):
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.txt").write_text(f"text of {name}\n")
    chosen = {"heldout_share": 0.0, "tokenizer": TokenizerConfig(folder=str(tokenizer))}
    sources = {"s": SourceConfig(files={"en": ("*.txt",)})}
    prepare(config(sources=sources, **chosen), tmp_path / "corpus", base=tmp_path)
    texts = decoded(Corpus.open(tmp_path / "corpus"), "s", "en", "train")
    assert texts == [("text of a",), ("text of b",), ("text of c",)]
    missing = config(sources={"s": SourceConfig(files={"en": ("*.xz",)})}, **chosen)
    with pytest.raises(CorpusError, match=r"sources\.s\.files\.en: no file matches .*\*\.xz"):
        prepare(missing, tmp_path / "corpus", base=tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"files": {"en-de": ("x",)}}, "does not name a language"),
        ({"kind": "pairs", "format": "tsv", "files": {"en": ("x",)}}, "two languages joined"),
        ({"format": "tsv", "files": {"en": ("x",)}}, "for kind 'text' use 'lines'"),
        ({"options": {"field": "x"}, "files": {"en": ("x",)}}, "'lines' has no such option"),
        (
            {"kind": "pairs", "format": "tsv", "split": "sentences", "files": {"en-de": ("x",)}},
            "are not split into sentences",
        ),
        (
            {"kind": "pairs", "format": "tsv", "split": "punctuation", "files": {"en-de": ("x",)}},
            "are not split into sentences",
        ),
        ({"format": "lnies", "files": {"en": ("x",)}}, "did you mean 'lines'"),
        ({"files": {}}, "there are none"),
    ],
)
def test_impossible_settings_are_told(tmp_path, source, message):
    with pytest.raises(RecipeError, match=message):
        prepare(PrepareConfig(sources={"s": SourceConfig(**source)}), tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()


def test_where_nothing_is_kept_the_file_and_the_reasons_are_told(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"body": "A line of text."}\n' * 2)
    source = SourceConfig(format="jsonl", files={"en": ("x.jsonl",)})
    with pytest.raises(CorpusError, match=r"x\.jsonl: no line of it was .*no field: 2.*`options`"):
        prepare(PrepareConfig(sources={"s": source}), tmp_path / "corpus", base=tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heldout_share": 1.0}, "heldout_share must be from 0 to below 1, not 1"),
        ({"shard_tokens": 0}, "shard_tokens must be from 1"),
        (
            {"tokenizer": TokenizerConfig(folder="bert", model="bpe", vocab_size=8000)},
            "use as it is; model and vocab_size would be for training another",
        ),
        (
            {"tokenizer": TokenizerConfig(model="bpe", character_coverage=0.97)},
            r"tokenizer\.character_coverage must be at least 0\.98 where `model` is bpe",
        ),
        ({"duplicates": DuplicatesConfig(scope="none", near=True)}, "the scope is `none`"),
        ({"duplicates": DuplicatesConfig(partitions=0)}, "partitions must be from 1"),
        ({"duplicates": DuplicatesConfig(similarity=0)}, "similarity must be above 0"),
        (
            {"base": "$NO_SUCH_VARIABLE/data"},
            "'.NO_SUCH_VARIABLE/data' names an environment variable",
        ),
        ({"exclude": ("text/*.txt",)}, r"exclude: .*de\.txt is also a file of a source"),
    ],
)
def test_settings_that_contradict_each_other_are_told(raw, tmp_path, changes, message):
    with pytest.raises(RecipeError, match=message):
        prepare(config(**changes), tmp_path / "corpus", base=raw)
    assert not (tmp_path / "corpus").exists()


def test_settings_are_read_by_a_generic_reader():
    data = {
        "sources": {"wiki": {"kind": "text", "format": "lines", "files": {"en": ["a.txt"]}}},
        "tokenizer": {"vocab_size": 8000, "model": "bpe"},
        "heldout_share": 0.02,
    }
    read = make_converter(forbid_extra_keys=True).structure(data, PrepareConfig)
    assert read.sources["wiki"].files == {"en": ("a.txt",)}
    assert read.tokenizer == TokenizerConfig(vocab_size=8000, model="bpe")
