"""An encoder-decoder: an `Encoder` as every other, and a decoder that reads its states.

transformers' `EncoderDecoderModel` on XLM-R's classes, whose decoder takes position ids (MASS needs
them). The encoder is the very `Encoder` of packed rows, so encoder objectives train it as they do
any; its LM head and, where they are shared, its embeddings are the decoder's too.

Languages are told by the first token, on both sides: each has a token of its own after those of the
tokenizer (`Vocabulary.language_token`), so that the exported folder is a plain one.

    Seq2Seq.build(settings, vocabulary, languages)
        size            random weights
        start: MLM      one encoder loaded into both halves, cross-attention random (XLM)
        start: MASS     an encoder-decoder folder, as it is
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isoglot.errors import ModelError
from isoglot.models import by_language, head
from isoglot.models.attention import kernels
from isoglot.models.by_language import ByLanguage
from isoglot.models.seq2seq_build import around, is_seq2seq, made, opened
from isoglot.models.writing import WritingConfig, Written, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.models.config import ModelConfig
    from isoglot.models.encoder import Encoder
    from isoglot.models.head import SiteLosses
    from isoglot.types import Decoding, Rows, Vocabulary


class Seq2Seq(nn.Module):
    """An encoder and a decoder, with a token for each language."""

    def __init__(
        self, encoder: Encoder, model: Any, vocabulary: Vocabulary, languages: Sequence[str]
    ) -> None:
        """Use `Seq2Seq.build`.

        Args:
            encoder: the encoder; its base model is the `model.encoder`.
            model: the transformers encoder-decoder.
            vocabulary: the tokenizer's words.
            languages: codes of the languages, by id.
        """
        super().__init__()
        assert encoder.model.base_model is model.encoder
        self.encoder, self.model = encoder, model
        self._head = head.LMHead(model.decoder)
        self.vocabulary, self.language_codes = vocabulary, tuple(languages)
        settings = encoder.settings.decoder
        assert settings is not None
        self.by_language = ByLanguage(
            model.decoder,
            len(languages),
            embeddings=encoder.settings.languages == "all",
            outputs=settings.cross_output == "language",
        )

    @classmethod
    def build(
        cls, settings: ModelConfig, vocabulary: Vocabulary, *, languages: Sequence[str]
    ) -> Seq2Seq:
        """Open or make the encoder-decoder that the settings name, for a corpus."""
        settings.check_start()
        if settings.freeze != "none":
            raise ModelError(
                "model.freeze is for encoders alone: a decoder reads what the body makes of its "
                "text. Leave it out, or leave model.decoder out."
            )
        if settings.attention == "auto":
            # every batch has a shape of its own, and FlexAttention compiles for each
            settings = replace(settings, attention="sdpa")
        if settings.start is None:
            found = made(settings, vocabulary, languages)
        elif is_seq2seq(settings.start):
            found = opened(settings, vocabulary, languages)
        else:
            found = around(settings, vocabulary, languages)
        encoder, model = found
        model.config.language_token_ids = {
            code: vocabulary.language_token(number) for number, code in enumerate(languages)
        }
        seq2seq = cls(encoder, model, vocabulary, languages)
        if settings.start is not None and is_seq2seq(settings.start):
            by_language.load(Path(settings.start), seq2seq.by_language, languages)
        elif settings.start is not None:
            seq2seq.begin_decoder()
        return seq2seq

    def begin_decoder(self) -> None:
        """Let the decoder begin as the encoder is now, but for cross-attention, which stays.

        A decoder with fewer layers has the encoder's first ones. The languages' tokens, which no
        encoder objective reads, begin as the first token of any sequence.
        """
        view, decoder = self.encoder.model, self.model.decoder
        decoder.roberta.load_state_dict(view.roberta.state_dict(), strict=False)
        decoder.lm_head.load_state_dict(view.lm_head.state_dict())
        with torch.no_grad():
            if self.by_language.embeddings is not None and self.encoder.languages is not None:
                self.by_language.embeddings.weight.copy_(self.encoder.languages.weight)
            for table in self._tables():
                table[self._language_rows()] = table[self.vocabulary.cls].clone()

    def decode(self, decoding: Decoding, states: Tensor, visible: Tensor) -> Tensor:
        """(B', T, D) the decoder's states.

        Args:
            decoding: what it is to write.
            states: (B, L, D) the encoder's states of the main rows.
            visible: (B, L) bool: the positions of the main rows that it may look at.
        """
        rows = decoding.rows
        with kernels("sdpa"), self.by_language.speaking(rows.languages[:, 0]):
            # padding is at the end, where causal attention does not look
            output = self.model.decoder.roberta(
                input_ids=rows.ids,
                position_ids=rows.positions + self.encoder.first_position,
                encoder_hidden_states=states[decoding.sources],
                encoder_attention_mask=visible[decoding.sources].long(),
                use_cache=False,
            )
        decoded: Tensor = output.last_hidden_state
        return decoded

    def losses(
        self, decoded: Tensor, positions: Tensor, targets: Tensor, *, smoothing: float
    ) -> SiteLosses:
        """The LM head's losses at flat indices of the decoder's rows."""
        return head.site_losses(
            self._head,
            decoded,
            positions,
            targets,
            torch.ones_like(positions, dtype=torch.float32),
            chunk=self.encoder.settings.head.chunk,
            smoothing=smoothing,
        )

    def write(self, rows: Rows, languages: Tensor, settings: WritingConfig) -> Written:
        """What the decoder writes when it reads padded rows, in a language for each."""
        visible = rows.sequences >= 0
        tokens = visible.sum(dim=1) - 2  # the language, the end
        limits = settings.limit(tokens).long().clamp(max=self.encoder.max_positions - 2)
        states = self.encoder(rows).hidden
        with kernels("sdpa"), self.by_language.speaking(languages):
            return write(
                self.model,
                states,
                visible,
                self.vocabulary.language_token(0) + languages,
                limits,
                settings,
                never=self.never,
            )

    @property
    def never(self) -> list[int]:
        """The ids that it does not write: special tokens but the end, and languages."""
        specials = [number for number in self.vocabulary.special if number != self.vocabulary.sep]
        return specials + self._language_rows()

    def _language_rows(self) -> list[int]:
        return [self.vocabulary.language_token(n) for n in range(len(self.language_codes))]

    def _tables(self) -> list[Tensor]:
        embeddings = self.encoder.model.get_input_embeddings().weight
        own = self.model.decoder.get_input_embeddings().weight
        return [embeddings] if own is embeddings else [embeddings, own]
