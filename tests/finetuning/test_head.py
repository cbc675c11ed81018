from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    EuroBertConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

from isoglot.errors import ModelError
from isoglot.finetuning.classification import SequenceClassificationHead
from isoglot.finetuning.question_answering import QuestionAnsweringHead
from isoglot.finetuning.tagging import TokenClassificationHead
from isoglot.tasks.examples import LabeledText, TaggedSentence


@pytest.fixture
def byte_level(tmp_path) -> Path:
    """A RoBERTa whose tokenizer marks words by the space before them, as byte-level ones do."""
    pieces = ["<s>", "</s>", "<pad>", "<unk>", "<mask>", "Ġ", *"abcdefgh", "Ġa", "ab", "Ġab"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("Ġ", "a"), ("a", "b"), ("Ġa", "b")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    named = {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "pad": "<pad>"}
    special = {f"{name}_token": piece for name, piece in named.items()}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(tmp_path)
    config = RobertaConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=23,
        pad_token_id=2,
        bos_token_id=0,
        eos_token_id=1,
    )
    RobertaForMaskedLM(config).save_pretrained(tmp_path)
    return tmp_path


def test_words_are_given_with_the_space_before_them(byte_level, settings):
    head = TokenClassificationHead(byte_level, settings, ["O"])
    example = TaggedSentence(id="0", words=("ab", "ab"), tags=("O", "O"))
    (piece,) = head.windows([example], training=True)
    pieces = head.tokenizer.convert_ids_to_tokens(piece.sequences[0]["input_ids"].tolist())
    assert pieces == ["<s>", "Ġab", "Ġab", "</s>"]
    plain = SequenceClassificationHead(byte_level, settings, ["x"])
    (piece,) = plain.windows([LabeledText(id="0", first="ab ab", label="x")], training=True)
    pieces = plain.tokenizer.convert_ids_to_tokens(piece.sequences[0]["input_ids"].tolist())
    assert pieces == ["<s>", "ab", "Ġab", "</s>"]


def test_no_sequence_is_longer_than_the_models_positions(byte_level, settings):
    head = SequenceClassificationHead(byte_level, settings, ["x"])
    assert head.max_length == 20
    examples = [LabeledText(id="0", first="ab " * 50, second="gh " * 50, label="x")]
    pieces = head.windows(examples, training=True)
    assert head.load_model()(**head.collate(pieces)).loss.isfinite()


def test_padding_changes_nothing(folder, settings):
    head = SequenceClassificationHead(folder, settings, ["x", "y"])
    examples = [LabeledText(id=str(i), first="kalo " * (3 * i + 1), label="x") for i in range(3)]
    pieces = head.windows(examples, training=False)
    torch.manual_seed(0)
    model = head.load_model().eval()
    with torch.no_grad():
        together = model(**head.collate(pieces)).logits
        alone = torch.cat([model(**head.collate([piece])).logits for piece in pieces])
    assert torch.allclose(together, alone, atol=1e-5)


def test_an_encoder_without_its_weights_is_refused(folder, settings, tmp_path):
    import shutil

    from safetensors.torch import load_file, save_file

    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    weights = load_file(broken / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if "layer.1." not in name}
    save_file(kept, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lacks weights of the encoder \(roberta.encoder.layer.1"):
        SequenceClassificationHead(broken, settings, ["x", "y"]).load_model()


def test_an_architecture_without_the_head_is_refused_before_training(tmp_path):
    EuroBertConfig().save_pretrained(tmp_path)
    SequenceClassificationHead.check_architecture(tmp_path, "text-classification")
    with pytest.raises(ModelError, match="no head for question-answering on a model of type euro"):
        QuestionAnsweringHead.check_architecture(tmp_path, "question-answering")
