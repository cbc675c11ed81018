"""More tokens and fewer: the others stay, bit for bit, and the tokenizer's ids agree."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers.processors import RobertaProcessing

from isoglot.corpus.tokenization.build import TokenizerConfig, train_tokenizer
from isoglot.errors import IsoglotError, ModelError
from isoglot.models.transplant.build_tokenizer import trim_content
from isoglot.models.transplant.config import TransplantConfig
from isoglot.models.transplant.run import grow, trim, trim_to_tokens
from isoglot.models.transplant.tokens import TokenizerTokens
from isoglot.models.transplant.used_tokens import most_split_words, new_words
from tests.models.transplant.tiny_tokenizers import (
    KINDS,
    model_for,
    of_words,
    opened,
    save,
    unigram,
)
from tests.tiny_corpus import LANGUAGES, write_raw

WORDS = ["house", "houses", "big", "dog", "the"]
TEXT = "the dogs big house"


def ids_of(folder, text):
    return opened(folder)[1](text)["input_ids"]


def same_weights(one, other):
    before, after = opened(one)[0].state_dict(), opened(other)[0].state_dict()
    assert before.keys() == after.keys()
    return all(torch.equal(tensor, after[name]) for name, tensor in before.items())


@pytest.mark.parametrize("kind", KINDS)
def test_grow_then_trim_returns_the_original(tmp_path, kind):
    source = model_for(of_words(kind, tmp_path / "source", WORDS, "dogsabmnuy"))
    number = len(opened(source)[1])
    report = grow(source, tmp_path / "large", ["nyumba", "mbwa", "House", "nyumba"])
    assert report.after.tokens == number + 3
    assert report.kinds["case"] == 1
    trim_to_tokens(tmp_path / "large", tmp_path / "back", range(number))
    assert same_weights(source, tmp_path / "back")
    old, new = (opened(folder)[1] for folder in (source, tmp_path / "back"))
    assert new.get_vocab() == old.get_vocab()
    assert ids_of(tmp_path / "back", TEXT) == ids_of(source, TEXT)


@pytest.mark.parametrize("kind", KINDS)
def test_grown_words_are_one_token_and_the_rest_is_untouched(tmp_path, kind):
    source = model_for(of_words(kind, tmp_path / "source", WORDS, "dogsabmnuy"))
    grow(source, tmp_path / "large", ["nyumba"])
    (old, before), (new, after) = opened(source), opened(tmp_path / "large")
    number = len(before)
    own = after.get_vocab()["nyumba"]
    assert own == number
    assert after("the nyumba big")["input_ids"][2:-2] == [own]
    assert own not in after("the nyumbas")["input_ids"]
    assert after(TEXT)["input_ids"] == before(TEXT)["input_ids"]
    table = old.get_input_embeddings().weight
    assert torch.equal(new.get_input_embeddings().weight[:number], table)
    pieces = before("nyumba", add_special_tokens=False)["input_ids"]
    assert len(pieces) > 1
    torch.testing.assert_close(new.get_input_embeddings().weight[own], table[pieces].mean(0))


@pytest.mark.parametrize(
    ("kind", "architecture"),
    [
        *(("unigram", name) for name in ("xlm-r", "electra", "modernbert")),
        *((kind, "roberta") for kind in KINDS[1:]),
    ],
)
def test_a_trimmed_model_gives_the_same_logits(tmp_path, kind, architecture):
    folder = of_words(kind, tmp_path / "source", WORDS, "dogsxyzqw")
    source = model_for(folder, architecture=architecture)
    (tmp_path / "en.txt").write_text(TEXT + "\n")
    (tmp_path / "xx.txt").write_text("x y\n")
    report = trim(source, tmp_path / "small", texts=[tmp_path / "en.txt", tmp_path / "xx.txt"])
    assert report.after.tokens < report.before.tokens
    assert report.after.bytes < report.before.bytes
    (old, before), (new, after) = opened(source), opened(tmp_path / "small")
    kept = [before.get_vocab()[token] for token, _ in sorted(after.get_vocab().items(), key=_id)]
    first, second = before(TEXT)["input_ids"], after(TEXT)["input_ids"]
    assert [kept[index] for index in second] == first
    with torch.no_grad():
        one = old(input_ids=torch.tensor([first])).logits[..., kept]
        two = new(input_ids=torch.tensor([second])).logits
    torch.testing.assert_close(one, two, rtol=0, atol=2e-6)


def _id(item):
    return item[1]


TRAINERS = {
    "unigram": (models.Unigram, trainers.UnigramTrainer, pre_tokenizers.Metaspace),
    "bytes": (models.BPE, trainers.BpeTrainer, pre_tokenizers.ByteLevel),
    "sentencepiece-bpe": (models.BPE, trainers.BpeTrainer, pre_tokenizers.Metaspace),
    "wordpiece": (models.WordPiece, trainers.WordPieceTrainer, pre_tokenizers.BertPreTokenizer),
}


@pytest.mark.parametrize("kind", TRAINERS)
def test_trained_tokenizers_split_kept_text_as_before(tmp_path, kind):
    """Two of three languages stay; their text has the same tokens, under ids that agree."""
    write_raw(tmp_path / "raw", sentences=120, pairs=1)
    files = [tmp_path / f"raw/text/{language}.txt" for language in LANGUAGES]
    model, trainer, before_words = TRAINERS[kind]
    tokenizer = Tokenizer(model())
    tokenizer.pre_tokenizer = before_words()
    unknown = {"unk_token": "<unk>"} if kind == "unigram" else {}
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer.train(
        list(map(str, files)),
        trainer(vocab_size=420, special_tokens=special, show_progress=False, **unknown),
    )
    source = model_for(save(tokenizer, tmp_path / "source"))
    report = trim(source, tmp_path / "small", texts=files[:2])
    assert 0 < report.after.tokens < report.before.tokens
    before, after = TokenizerTokens.open(source), TokenizerTokens.open(tmp_path / "small")
    names = dict(after.by_id)
    lines = [line for file in files[:2] for line in file.read_text().splitlines()]
    for old, new in zip(before.encode(lines), after.encode(lines), strict=True):
        assert [before.ids[names[index]] for index in new] == old


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_text_that_spells_a_special_token_stays_text(tmp_path, model):
    """With the tokenizers that are trained here, which spell unknown characters in bytes."""
    write_raw(tmp_path / "raw", sentences=120, pairs=1)
    files = [tmp_path / f"raw/text/{language}.txt" for language in LANGUAGES]
    sentences = [line for file in files for line in file.read_text().splitlines() if line]
    folder = tmp_path / "source"
    train_tokenizer(sentences, TokenizerConfig(vocab_size=700, model=model), folder)
    trim(model_for(folder), tmp_path / "small", texts=files[:1])
    tokens = TokenizerTokens.open(tmp_path / "small")
    names = dict(tokens.by_id)
    ((*spelled,), (*unseen,)) = tokens.encode(["<s> <0x41>", "é"])
    assert not {"<s>", "<0x41>"} & {names[index] for index in spelled}
    assert [names[index] for index in unseen[-2:]] == ["<0xC3>", "<0xA9>"]


def test_rare_tokens_may_go(tmp_path):
    source = model_for(of_words("unigram", tmp_path / "source", WORDS, "dogs"))
    (tmp_path / "en.txt").write_text("the big house\nthe house\n")
    once = trim(source, tmp_path / "a", texts=[tmp_path / "en.txt"])
    twice = trim(source, tmp_path / "b", texts=[tmp_path / "en.txt"], min_count=2)
    assert once.after.tokens == twice.after.tokens + 1


def test_other_processors_get_the_new_ids(tmp_path):
    tokens = TokenizerTokens.open(of_words("bytes", tmp_path, WORDS))
    tokens.tokenizer.backend_tokenizer.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokens = TokenizerTokens(tokens.tokenizer, tmp_path)
    content = trim_content(tokens.content, [0, 2, *range(3, tokens.vocabulary.size)])
    assert content["post_processor"]["sep"] == ["</s>", 1]
    assert content["post_processor"]["cls"] == ["<s>", 0]


def test_words_worth_a_token(tmp_path):
    tokens = TokenizerTokens.open(of_words("unigram", tmp_path / "t", ["the"], "dogcat"))
    (tmp_path / "text").write_text("the dog, the dog! (cat) the 123 gad gad gad\n")
    assert most_split_words(tokens, [tmp_path / "text"], 2) == ["gad", "dog"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_that_is_one_token_is_not_added(tmp_path, kind):
    source = model_for(of_words(kind, tmp_path / "source", WORDS, "nyumba"))
    report = grow(source, tmp_path / "large", ["house", "nyumba", "house"])
    assert report.after.tokens == report.before.tokens + 1
    assert report.notes[0] == "1 of the words are not added: 1 are one token already."
    with pytest.raises(ModelError, match=r"no word to add: .* 1 are one token already"):
        grow(source, tmp_path / "none", ["house"])


def test_a_word_that_is_spelled_like_a_token_inside_words(tmp_path):
    """It would share that token's vector: it is not added, and not counted as added."""
    source = model_for(unigram(tmp_path / "source", ["▁the", "▁", "mba", "m", "b", "a", "n", "y"]))
    tokens = TokenizerTokens.open(source)
    assert new_words(tokens, ["mba", "nyb", "the"]) == (
        ["nyb"],
        {
            "one token already": 1,
            "spelled like a token inside words, whose vector they would share": 1,
        },
    )
    (tmp_path / "text").write_text("the mba mba mba mba nyb nyb bany the\n")
    report = grow(source, tmp_path / "large", texts=[tmp_path / "text"], number=2)
    assert report.after.tokens == report.before.tokens + 2
    assert {"nyb", "bany"} <= TokenizerTokens.open(tmp_path / "large").ids.keys()


def test_tokens_per_word_before_and_after(tmp_path):
    source = model_for(of_words("unigram", tmp_path / "source", ["the"], "dogcat"))
    (tmp_path / "sw").write_text("the dog gad\nthe gad\n")
    (tmp_path / "ha").write_text("the cat\n")
    texts = [tmp_path / "sw", tmp_path / "ha"]
    report = grow(source, tmp_path / "large", texts=texts, number=2)
    before, after = TokenizerTokens.open(source), TokenizerTokens.open(tmp_path / "large")
    for one, text in zip(report.splits, texts, strict=True):
        lines = text.read_text().splitlines()
        assert one.file == str(text)
        assert one.words == sum(len(line.split()) for line in lines)
        assert one.before == sum(len(before.encode([line])[0]) for line in lines)
        assert one.after == sum(len(after.encode([line])[0]) for line in lines)
    # gad is worth most, then dog or cat: of two more tokens one is left to the other file
    assert report.splits[0].after < report.splits[0].before
    assert not any("not 2" in note for note in report.notes)
    report = grow(source, tmp_path / "larger", texts=texts, number=2000)
    assert report.notes[0].startswith("3 words of the text are added, not 2,000: it has no more")
    assert [one.after for one in report.splits] == [one.words for one in report.splits]


def test_translations_are_for_new_words_alone(tmp_path):
    """With dictionaries first, tokens that the model has keep their vectors."""
    source = model_for(of_words("unigram", tmp_path / "source", ["at", "horse", "the"], "abey"))
    (tmp_path / "tr.txt").write_text("at horse\nbeya the\n")
    settings = TransplantConfig(dictionaries=(str(tmp_path / "tr.txt"),), source_column="second")
    report = grow(source, tmp_path / "large", ["beya"], settings)
    assert report.kinds["dictionary"] == 1
    old, new = opened(source)[0], opened(tmp_path / "large")[0]
    rows = old.get_input_embeddings().weight
    grown = new.get_input_embeddings().weight
    assert torch.equal(grown[: len(rows)], rows)
    assert torch.equal(grown[-1], rows[TokenizerTokens.open(source).ids["▁the"]])


def test_bad_input(tmp_path):
    source = model_for(of_words("unigram", tmp_path / "source", WORDS))
    out = tmp_path / "out"
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(ModelError, match=r"empty\.txt holds no text"):
        trim(source, out, texts=[tmp_path / "empty.txt"])
    with pytest.raises(ModelError, match=r"empty\.txt holds no text"):
        grow(source, out, texts=[tmp_path / "empty.txt"])
    with pytest.raises(ModelError, match="'two words' is not one word"):
        grow(source, out, ["two words"])
    with pytest.raises(ModelError, match="no word to add"):
        grow(source, out, [])
    with pytest.raises(IsoglotError, match="initialize: none would lose the model"):
        grow(source, out, ["new"], TransplantConfig(initialize="none"))
    assert not out.exists()
