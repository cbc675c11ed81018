"""`isoglot fetch`: lists, sizes, downloads, settings to paste, and what is refused."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from isoglot.fetching import registry
from isoglot.fetching.registry import expand, parse_name
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.export import export_encoder
from tests.fetching.archives import zip_of
from tests.fetching.servers import Hosted, Server, serving
from tests.tiny_corpus import words

MOSES = zip_of({"T.en-sw.en": b"one\ntwo\n", "T.en-sw.sw": b"moja\nmbili\n"})
ROOT = Path(__file__).parent.parent.parent
RUN = "isoglot fetch --list --markdown"
OPUS = "/object.pouta.csc.fi/OPUS-T/v1/moses/en-sw.txt.zip"


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as running:
        monkeypatch.setenv("ISOGLOT_MIRROR", running.url)
        yield running


def test_everything_is_listed(isoglot):
    said = isoglot("fetch", "--list", columns=300)
    assert said.code == 0
    rows = said.out.splitlines()
    assert len(rows) == 2 + len(registry.entries())
    assert any(row.split()[:4] == ["mlqa", "test", "76", "MB"] for row in rows)
    assert any(row.split()[:3] == ["opus:CORPUS/PAIR", "pairs", "differs"] for row in rows)


def test_the_page_has_the_list(isoglot):
    text = (ROOT / "docs/fetch.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("<!-- isoglot fetch --list --markdown -->\n")
    listed = rest.partition("<!-- end -->")[0].strip()
    assert listed == isoglot("fetch", "--list", "--markdown").out.strip(), "run: " + RUN


def test_patterns_choose_from_the_list(isoglot):
    said = isoglot("fetch", "--list", "tydi*", "cc100:sw")
    assert [row.split()[0] for row in said.out.splitlines()[2:]] == [
        *("tydiqa", "tydiqa-primary", "cc100:LANGUAGE")
    ]
    said = isoglot("fetch", "--list", "tatoba")
    assert (said.code, said.err) == (
        1,
        "isoglot: No data is called 'tatoba'; did you mean 'tatoeba'?\n",
    )


def test_a_dry_run_asks_for_sizes_and_writes_nothing(isoglot, workdir, server):
    server.host("/data.statmt.org/cc-100/sw.txt.xz", bytes(2_500_000))
    said = isoglot("fetch", "cc100:sw", "mlqa", "--dry-run")
    assert said.code == 0, said.err
    rows = [row.split() for row in said.out.splitlines()]
    assert ["cc100:sw", "1", "2.5", "MB"] in [row[:4] for row in rows]
    assert ["mlqa", "1", "75.7", "MB", "CC", "BY-SA", "3.0"] in rows
    assert [method for method, _, _ in server.requests] == ["HEAD"]
    assert list(workdir.iterdir()) == []


def test_training_data_comes_with_a_prepare_file(isoglot, workdir, server):
    server.host(OPUS, MOSES)
    server.host("/data.statmt.org/cc-100/sw.txt.xz", lzma.compress(b"moja\n"))
    said = isoglot("fetch", "opus:T/en-sw@v1", "cc100:sw")
    assert said.code == 0, said.err
    assert "opus:T/en-sw@v1: 2 files, 19 bytes in raw" in said.out
    assert "# raw/sources.yaml: isoglot prepare raw/sources.yaml --out FOLDER" in said.out
    assert "License: Common Crawl's terms of use" in said.err
    text = Path("raw/sources.yaml").read_text(encoding="utf-8")
    assert text in said.out
    assert "- opus/T/v1/T.en-sw.en\n" in text
    again = isoglot("fetch", "cc100:sw")
    assert "cc100:sw: 1 file, 64 bytes in raw, verified, there already" in again.out
    assert len(server.requests) == 2


@pytest.mark.slow
def test_the_prepare_file_is_prepared(isoglot, workdir, server):
    lines = {
        side: "".join(
            f"{one} {two} .\n" for one, two in zip(words(side), words(side)[1:], strict=False)
        )
        for side in ("aa", "bb")
    }
    files = {f"T.en-sw.{code}": lines[side].encode() for code, side in (("en", "aa"), ("sw", "bb"))}
    server.host(OPUS, zip_of(files))
    assert isoglot("fetch", "opus:T/en-sw@v1", "-o", "data").code == 0
    said = isoglot(
        *("prepare", "data/sources.yaml", "--out", "corpus", "--workers", 1),
        *("--set", "tokenizer.vocab_size=340", "--set", "clean.min_script_share=0"),
    )
    assert said.code == 0, said.err
    assert Path("corpus/opus-T-v1/en-sw").is_dir()


def test_test_sets_go_to_eval_and_one_fault_does_not_stop_the_others(isoglot, workdir, server):
    place = expand(parse_name("esxnli"))[0].url.partition("://")[2]
    server.host(f"/{place}", b"language\tlabel\n")
    said = isoglot("fetch", "conll", "copa", "esxnli")
    assert said.code == 1
    assert "esxnli: 1 file, 15 bytes in eval" in said.out
    assert "isoglot: conll cannot be fetched. Its terms do not allow" in said.err
    assert "v2/COPA.zip: the server answers 404" in said.err
    assert Path("eval/esxnli/esxnli.tsv").is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "name something to fetch"),
        (["tatoba"], 1, "'tatoba': there is no data of this name; did you mean 'tatoeba'?"),
        (["XNLI"], 1, "'XNLI': there is no data of this name; did you mean 'xnli'?"),
        (["xnli,tatoba"], 1, "'tatoba': there is no data of this name; did you mean 'tatoeba'?"),
        (["opus:T"], 1, "'opus:T': opus needs more. Write opus:CORPUS/PAIR"),
        (["cls"], 1, "Ask at https://zenodo.org/records/3251672"),
        (["hf:one"], 1, "'hf:one': is not a dataset of the hub. Write hf:OWNER/DATASET"),
        (["ftp://x.org/a"], 1, "ftp://x.org/a: is not a web address. Write https://HOST/PATH"),
        (["xquad", "-l", "xx"], 1, "'xquad': has none of xx; its languages are ar, de"),
        (["xnli", "--mirror", "nowhere"], 2, "nowhere: is not a web address"),
        (["xnli", "--out", "file"], 2, "file is a file. Name a folder."),
        (["copa"], 1, "COPA.zip: the server answers 404 Not Found. The file has moved"),
        (["paws-x"], 1, "x-final.tar.gz: has 5 bytes there, and 30,282,057 are expected"),
        (["lama"], 1, "LAMA/data.zip: the server sends a web page instead of the file"),
        (["alignment"], 1, "test-sets.tar.gz: the download is not the expected file"),
        (["xling"], 1, "has none of the expected files (*/bli_datasets/) but other/a.txt"),
        (["http://x.org/a.zip"], 1, "x.org/a.zip: the archive's member '../a' leads out of the"),
    ],
)
def test_what_goes_wrong_is_told_in_a_sentence(isoglot, workdir, server, arguments, code, message):
    Path("file").touch()
    for name, content in {
        "paws-x": Hosted(b"wrong"),
        "lama": Hosted(b"<html>", kind="text/html"),
        "alignment": Hosted(b"no archive"),
        "xling": Hosted(zip_of({"other/a.txt": b"x"})),
    }.items():
        server.host("/" + expand(parse_name(name))[0].url.partition("://")[2], content)
    server.host("/x.org/a.zip", zip_of({"../a": b"x"}))
    said = isoglot("fetch", *arguments)
    assert said.code == code
    assert message in " ".join(said.err.replace("│", " ").split())
    assert "Traceback" not in said.err


@pytest.fixture
def model(corpus, workdir) -> Path:
    torch.manual_seed(0)
    settings = ModelConfig(size="tiny", num_layers=1, hidden_size=16, num_heads=2, max_positions=40)
    encoder = Encoder.build(settings, corpus.vocabulary)
    export_encoder(encoder, workdir / "model", tokenizer_folder=corpus.tokenizer_folder, card="")
    return workdir / "model"


def test_evaluate_says_what_to_fetch_and_fetches_it(isoglot, model, server, monkeypatch):
    said = isoglot("evaluate", model, "--tasks", "esxnli,muse")
    assert "isoglot fetch esxnli --out eval, or add --fetch." in said.err
    Path("eval").mkdir()
    said = isoglot("evaluate", model, "--tasks", "muse")
    assert "isoglot fetch muse --out eval, or add --fetch." in said.err
    said = isoglot("evaluate", model, "--tasks", "conll")
    assert "Its terms do not allow automatic downloads" in said.err
    rows = "".join(f"{word} {word}\n" for word in words("aa")[:8]).encode()
    for part in expand(parse_name("muse"), ("de",)):
        server.host("/" + part.url.partition("://")[2], rows)
    said = isoglot("evaluate", model, "--tasks", "muse", "--languages", "de", "--fetch")
    assert said.code == 0, said.err
    assert "muse: 4 files" in said.out
    assert "License: CC BY-NC 4.0" in said.err
    scores = json.loads(Path("results/model/results.json").read_text(encoding="utf-8"))["scores"]
    assert {score["language"] for score in scores} == {"de-en", "en-de"}
    asked = len(server.requests)
    assert isoglot("evaluate", model, "--tasks", "muse", "-l", "de", "--fetch").code == 0
    assert len(server.requests) == asked


def test_finetune_fetches_what_it_trains_on(isoglot, model, server):
    for part in expand(parse_name("xcopa"), ("sw",)):
        server.host("/" + part.url.partition("://")[2], b"{}\n")
    said = isoglot("finetune", model, "--tasks", "xcopa", "--languages", "sw", "--fetch")
    assert said.code == 1
    assert "v2/COPA.zip: the server answers 404" in said.err
    assert Path("eval/xcopa/data/sw/test.sw.jsonl").is_file()


def test_files_of_your_own_are_left_alone(isoglot, model, server):
    Path("eval/muse").mkdir(parents=True)
    rows = "".join(f"{word} {word}\n" for word in words("aa")[:8])
    Path("eval/muse/en-de.5000-6500.txt").write_text(rows, encoding="utf-8")
    assert isoglot("evaluate", model, "--tasks", "muse", "--fetch").code == 0
    assert server.requests == []
