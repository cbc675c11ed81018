"""Development pairs, the folder for sentences, and the speed of both encoders."""

from __future__ import annotations

import itertools
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from tokenizers import decoders
from transformers import AutoTokenizer

from isoglot.adaptation.carry_out import Adaptation
from isoglot.adaptation.display import STEPS, StepDisplay
from isoglot.adaptation.folder import AdaptFolder
from isoglot.adaptation.request import AdaptConfig
from isoglot.adaptation.scoring import (
    export_sentences,
    own_vectors,
    score_development,
    sentences_per_second,
    write_development_pairs,
)
from isoglot.corpus.tokenization.vocabulary import open_tokenizer, text_decoder
from isoglot.intervals import unpack_rows
from isoglot.models.sentence_export import SentenceHead, export_sentence_transformers
from isoglot.models.transplant.build_tokenizer import grow_tokenizer
from isoglot.models.transplant.tokens import TokenizerTokens
from tests.models.transplant.tiny_tokenizers import of_words
from tests.tiny_corpus import words

TEXTS = (
    "the dog saw the mwalimu mzuri",
    "mwalimu mwalimu mzuri the dog",
    "the mzuri ( mwalimu ) .",
    "the dog saw the dog",
    "mwalimu",
)
PLAN = SimpleNamespace(new_words=0, prepare=SimpleNamespace(knowledge=None), step_seconds={})
FIRST = [f"{a} {b}." for a, b in zip(words("aa")[:12], words("aa")[20:32], strict=True)]


@pytest.mark.parametrize("kind", ["unigram", "wordpiece", "bytes"])
def test_a_text_is_tokenized_again_to_the_same_ids(kind, tmp_path):
    folder = of_words(kind, tmp_path / "plain", ["the", "dog", "saw"], letters="malwiuzr().")
    grow_tokenizer(TokenizerTokens.open(folder), ["mwalimu", "mzuri"], tmp_path / "grown")
    tokenizer = open_tokenizer(tmp_path / "grown")
    if kind == "bytes":  # the small tokenizer has no decoder, which those of real models have
        tokenizer.backend_tokenizer.decoder = decoders.ByteLevel()
    decode = text_decoder(tokenizer)
    for text in TEXTS:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert tokenizer(decode(ids), add_special_tokens=False)["input_ids"] == ids
        assert decode(ids).split() == text.split()
    assert decode([]) == ""


def test_encoders_are_timed_in_turns(random_model, monkeypatch):
    """A machine that gets slower with every pass slows both alike: the first is hardly favored."""
    now = itertools.accumulate(itertools.count())
    monkeypatch.setattr("isoglot.adaptation.scoring.time.monotonic", lambda: float(next(now)))
    first, second = sentences_per_second([random_model, random_model], FIRST)
    assert first > second > 0
    # passes take 1, 3, ..., 15 seconds; the median of the first's is 9, of the second's 11
    assert first == pytest.approx(len(FIRST) / 9)
    assert second == pytest.approx(len(FIRST) / 11)


def test_development_pairs_are_the_held_out_pairs_of_the_corpus(corpus, random_model, tmp_path):
    counts = write_development_pairs(corpus, tmp_path / "development")
    files = sorted((tmp_path / "development").glob("*.tsv"))
    assert {file.stem for file in files} == set(counts)
    tokenizer = AutoTokenizer.from_pretrained(corpus.tokenizer_folder)
    for file in files:
        table = corpus.table("pairs", file.stem, "heldout")
        ids = {tuple(table.ids(table.columns[0], row).tolist()) for row in range(table.num_rows)}
        for line in file.read_text("utf-8").splitlines():
            first = tokenizer(line.split("\t")[0], add_special_tokens=False)["input_ids"]
            assert tuple(first) in ids
    found = score_development(random_model, tmp_path / "development")
    assert {name: unpack_rows(layers[2]).shape[1] for name, layers in found.items()} == counts


def test_the_encoder_before_is_scored_with_the_vectors_of_its_own_modules(random_model, tmp_path):
    """LaBSE's are the first token: the mean would make it look worse than it is."""
    first = tmp_path / "first"
    head = SentenceHead(pooling="cls")
    export_sentence_transformers(random_model, first, head, max_length=40)
    found = own_vectors(first)
    assert found is not None
    assert found.name == "first token of the last layer"
    assert own_vectors(random_model) is None  # sentence-transformers takes the mean
    (first / "1_Pooling/config.json").write_text('{"pooling_mode_max_tokens": true}')
    assert own_vectors(first) is None  # what cannot be computed is not scored
    asked: list[object] = []
    console = Console(file=StringIO())

    def stop(_work: object, name: str, model: Path, sentences: Path | None) -> None:
        asked.append((name, model, sentences))
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isoglot.adaptation.scoring.score", stop)
        export_sentence_transformers(random_model, first, head, max_length=40)
        for encoder, sentences in ((first, first.resolve()), (random_model, None)):
            with pytest.raises(InterruptedError):
                Adaptation(
                    config=AdaptConfig(encoder=str(encoder), text={"en": ("en.txt",)}),
                    plan=PLAN,  # type: ignore[arg-type]
                    folder=AdaptFolder(tmp_path / "out"),
                    display=StepDisplay(console, STEPS),
                    console=console,
                ).until_training()
            assert asked.pop() == ("before", encoder.resolve(), sentences)


def test_without_development_pairs_the_folder_has_the_mean_of_the_last_layer(
    random_model, tmp_path
):
    (tmp_path / "development").mkdir()
    console = Console(file=StringIO())
    vectors = export_sentences(
        random_model, tmp_path / "sentences", tmp_path / "development", console
    )
    assert vectors == "the mean state of the last layer"
    assert (tmp_path / "sentences/modules.json").is_file()
