"""Words are linked where their pieces are; states are those of the plain model."""

from __future__ import annotations

import copy

import pytest
import torch
from tokenizers import processors
from transformers import AutoModel

from isoglot.evaluate import FeatureSettings
from isoglot.evaluate.alignment import align
from isoglot.evaluate.linking import link
from isoglot.evaluate.pieces import specials
from isoglot.tasks.examples import WordAligned
from tests.tiny_corpus import words


def pair(first, second):
    return WordAligned(
        first=tuple(first), second=tuple(second), sure=frozenset(), possible=frozenset()
    )


PAIRS = [
    pair(words("aa")[start : start + m], words("bb")[start : start + n])
    for start, m, n in ((0, 3, 4), (5, 1, 2), (9, 4, 4))
]


@torch.no_grad()
def expected(folder, tokenizer, example, settings):
    """The word links of every layer from the plain model, one pair at a time."""
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    sides = [[tokenizer(word, add_special_tokens=False)["input_ids"] for word in side]
             for side in (example.first, example.second)]  # fmt: skip
    flat = [[piece for word in side for piece in word] for side in sides]
    owner = [[index for index, word in enumerate(side) for _ in word] for side in sides]
    start, end = [tokenizer.cls_token_id], [tokenizer.sep_token_id]

    def layers(ids):
        return model(torch.tensor([ids]), output_hidden_states=True).hidden_states

    if settings.reads_together:
        states = [layer[0] for layer in layers(start + flat[0] + end + flat[1] + end)]
        m = len(flat[0])
        both = [(s[1 : 1 + m], s[2 + m : -1]) for s in states]
    else:
        both = [
            (one[0][1:-1], other[0][1:-1])
            for one, other in zip(*(layers(start + ids + end) for ids in flat), strict=True)
        ]
    return [
        {(owner[0][i], owner[1][j]) for i, j in link(*vectors, settings).nonzero().tolist()}
        for vectors in both
    ]


@pytest.mark.parametrize("aligner", ["transport", "entropic", "argmax", "itermax"])
@pytest.mark.parametrize("together", [None, True, False])
def test_against_the_plain_model(folder, encoder, tokenizer, aligner, together):
    settings = FeatureSettings(aligner=aligner, together=together)
    found = align(encoder, tokenizer, PAIRS, settings)
    assert len(found) == 4, "three layers and the embeddings"
    for number, example in enumerate(PAIRS):
        by_layer = [links[number] for links in found]
        assert by_layer == expected(folder, tokenizer, example, settings)


def test_who_is_encoded_together():
    assert FeatureSettings().reads_together
    assert not FeatureSettings(aligner="itermax").reads_together
    assert FeatureSettings(aligner="argmax", together=True).reads_together


def test_long_sentences_are_cut_and_empty_ones_have_no_links(encoder, tokenizer):
    long = pair(words("aa")[:60], words("bb")[:60])
    found = align(encoder, tokenizer, [long, pair([], ["x"])], FeatureSettings())
    assert all(links[0] for links in found)
    assert all(links[1] == set() for links in found)


def test_a_sentence_is_aligned_with_itself(encoder, tokenizer):
    same = pair(words("aa")[:6], words("aa")[:6])
    found = align(encoder, tokenizer, [same], FeatureSettings(aligner="argmax"))
    assert all(links[0] == {(i, i) for i in range(6)} for links in found)


@pytest.mark.parametrize("aligner", ["transport", "itermax"])
def test_special_tokens_may_have_any_name_and_none_is_needed(encoder, tokenizer, aligner):
    settings = FeatureSettings(aligner=aligner)
    usual = align(encoder, tokenizer, PAIRS, settings)
    renamed = copy.deepcopy(tokenizer)
    renamed.cls_token = renamed.sep_token = None
    assert specials(renamed) == ([tokenizer.cls_token_id], [tokenizer.sep_token_id])
    assert align(encoder, renamed, PAIRS, settings) == usual
    renamed.backend_tokenizer.post_processor = processors.Sequence([])
    assert specials(renamed) == ([], [])
    assert all(align(encoder, renamed, PAIRS, settings)[0])
