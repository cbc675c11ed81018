"""What is trained: an encoder, or an encoder-decoder. The run asks here, and treats both alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transformers import AutoConfig

from isoglot.corpus.tokenizer import open_tokenizer
from isoglot.errors import CorpusError
from isoglot.models import Encoder, Seq2Seq, export, export_seq2seq, is_seq2seq
from isoglot.models.seq2seq_export import language_token
from isoglot.pretrain.seq2seq import Seq2SeqTrainee
from isoglot.pretrain.trainee import Trainee

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isoglot.corpus import Corpus
    from isoglot.models import ModelConfig
    from isoglot.objectives import Objective
    from isoglot.pretrain.config import PretrainConfig


def check_start(model: ModelConfig, corpus: Corpus) -> None:
    """Refuse a start folder whose tokenizer is not the corpus's, languages' tokens apart."""
    if model.start is None or not Path(model.start).is_dir():
        return
    if model.decoder is None or not is_seq2seq(model.start):
        corpus.check_tokenizer(model.start)
        return
    found = getattr(AutoConfig.from_pretrained(model.start), "base_tokenizer", None)
    if found is not None and found != corpus.manifest.tokenizer.fingerprint:
        raise CorpusError(
            f"{model.start} was trained with another tokenizer than the one of {corpus.folder}. "
            "Prepare the corpus with the tokenizer of the corpus that it was trained on."
        )


def build_trainee(
    model: ModelConfig, objectives: Mapping[str, Objective], corpus: Corpus, *, row_length: int
) -> Trainee:
    """The model that a run begins with, with its objectives."""
    if model.decoder is None:
        encoder = Encoder.build(model, corpus.vocabulary, languages=corpus.languages)
        encoder.check_length(row_length)
        return Trainee(encoder, objectives, corpus)
    _check_language_tokens(corpus)
    seq2seq = Seq2Seq.build(model, corpus.vocabulary, languages=corpus.languages)
    seq2seq.encoder.check_length(row_length)
    return Seq2SeqTrainee(seq2seq, objectives, corpus)


def _check_language_tokens(corpus: Corpus) -> None:
    """Refuse languages whose tokens would be spelled as tokens that are there already."""
    words = open_tokenizer(corpus.tokenizer_folder).get_vocab()
    taken = [code for code in corpus.languages if language_token(code) in words]
    if taken:
        raise CorpusError(
            f"The language {taken[0]!r} would be written {language_token(taken[0])}, and the "
            f"tokenizer of {corpus.folder} has such a token already. Give the language another "
            "name in the prepare file, and prepare again."
        )


def begin_decoder(
    trainee: Trainee, config: PretrainConfig, objectives: Mapping[str, Objective], stage: int
) -> None:
    """In the first stage that decodes after others that did not, the decoder begins as encoder.

    One that was trained already, as it came with the start folder, stays what it is.
    """
    if config.model.start is not None and is_seq2seq(config.model.start):
        return

    def decodes(number: int) -> bool:
        return any(objectives[name].decodes for name in config.objectives_in(number))

    first = stage > 0 and decodes(stage) and not any(map(decodes, range(stage)))
    if first and isinstance(trainee, Seq2SeqTrainee):
        trainee.seq2seq.begin_decoder()


def export_trainee(
    trainee: Trainee, folder: Path, corpus: Corpus, *, card: str, recipe_text: str | None
) -> list[str]:
    """Write the model as a plain Hugging Face folder; gives what it could not hold."""
    if isinstance(trainee, Seq2SeqTrainee):
        return export_seq2seq(
            trainee.seq2seq,
            folder,
            tokenizer_folder=corpus.tokenizer_folder,
            base_tokenizer=corpus.manifest.tokenizer.fingerprint,
            card=card,
            recipe_text=recipe_text,
        )
    return export(
        trainee.encoder,
        folder,
        tokenizer_folder=corpus.tokenizer_folder,
        card=card,
        recipe_text=recipe_text,
    )
