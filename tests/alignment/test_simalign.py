"""The same links as simalign, which aligns one pair at a time, on real text."""

from __future__ import annotations

import lzma

import pytest
from tokenizers import BertWordPieceTokenizer
from transformers import BertTokenizerFast

from isoglot.alignment.align import align
from isoglot.alignment.config import AlignConfig
from tests.evaluation.tiny_tokenizers import save_model

simalign = pytest.importorskip("simalign")


def lines(file, number):
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        return [next(stream).strip() for _ in range(number)]


@pytest.fixture(scope="module")
def pairs(data_folder):
    """Captions in English and German, verses in English and Chinese."""
    folder = data_folder / "parallel"
    captions = [lines(folder / f"multi30k/val.{code}.txt.xz", 60) for code in ("en", "de")]
    verses = [lines(folder / f"bible/{name}.tsv.xz", 40) for name in ("en-web", "zh")]
    texts = [[line.split("\t")[-1] for line in side] for side in verses]
    # simalign splits at spaces, which Chinese has none of
    chinese = [" ".join(text) for text in texts[1]]
    return [*zip(*captions, strict=True), *zip(texts[0], chinese, strict=True)]


@pytest.fixture(scope="module")
def folder(pairs, tmp_path_factory):
    """A random BERT of four layers, with a WordPiece vocabulary of the pairs."""
    trained = BertWordPieceTokenizer(lowercase=False)
    trained.train_from_iterator((text for pair in pairs for text in pair), vocab_size=1500)
    place = tmp_path_factory.mktemp("model")
    trained.save_model(str(place))
    # the trainer numbers the tokens differently in every process
    vocabulary = (place / "vocab.txt").read_text().splitlines()
    (place / "vocab.txt").write_text("\n".join(vocabulary[:5] + sorted(vocabulary[5:])) + "\n")
    tokenizer = BertTokenizerFast(vocab=str(place / "vocab.txt"), do_lower_case=False)
    shape = {"num_hidden_layers": 4, "hidden_size": 64, "max_position_embeddings": 512}
    return save_model(tokenizer, place, **shape, initializer_range=0.02)


@pytest.mark.slow
def test_the_same_links(folder, pairs):
    theirs = simalign.SentenceAligner(model=str(folder), matching_methods="ai", layer=3)
    expected = [theirs.get_word_aligns(first, second) for first, second in pairs]
    for aligner, method in (("argmax", "inter"), ("itermax", "itermax")):
        config = AlignConfig(aligner=aligner, layer=3)  # type: ignore[arg-type]
        found = list(align(pairs, folder, config=config))
        assert sum(map(len, found)) > 500
        assert found == [links[method] for links in expected]
