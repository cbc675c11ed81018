"""An encoder-decoder: an `Encoder`, and a decoder that attends to its states and generates text.

transformers' `EncoderDecoderModel` on XLM-R's classes, whose decoder takes position ids (MASS needs
them). The encoder runs packed rows, so that encoder objectives train it like any other; its LM head
and, where they are shared, its embeddings are the decoder's too.

The first token of a sequence names its language, on both sides: each language has a token after
those of the tokenizer (`Vocabulary.language_token`), so that an exported folder is a plain one.

    Seq2Seq.build(settings, vocabulary, languages)
        size                            random weights
        init_from: masked LM            loaded into both halves, cross-attention random (XLM)
        init_from: encoder-decoder      loaded as it is (MASS)

`generate` is transformers' own, with a key-value cache: greedy search, beam search or sampling. XLM
(Conneau and Lample, 2019) translates greedily, at most 1.3 * n + 5 tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from isoglot.errors import ModelError
from isoglot.models import language_parts
from isoglot.models.attention import attention_kernels
from isoglot.models.language_parts import LanguageParts
from isoglot.models.lm_head import LMHead, target_losses
from isoglot.models.seq2seq_loading import from_encoder, from_scratch, from_seq2seq, is_seq2seq
from isoglot.models.sharding import placeholder_rows, whole_weight
from isoglot.types import Decoding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isoglot.models.config import GenerationConfig, ModelConfig
    from isoglot.models.encoder import Encoder
    from isoglot.models.lm_head import TargetLosses
    from isoglot.types import Rows, Vocabulary


class Seq2Seq(nn.Module):
    """An encoder and a decoder, with a token for each language."""

    def __init__(
        self, encoder: Encoder, model: Any, vocabulary: Vocabulary, languages: Sequence[str]
    ) -> None:
        """Use `Seq2Seq.build`; `model` is a transformers encoder-decoder around the encoder."""
        super().__init__()
        assert encoder.model.base_model is model.encoder
        self.encoder, self.model = encoder, model
        self._lm_head = LMHead(model.decoder)
        self.vocabulary, self.language_codes = vocabulary, tuple(languages)
        settings = encoder.settings.decoder
        assert settings is not None
        self.language_parts = LanguageParts(
            model.decoder,
            len(languages),
            embeddings=encoder.settings.language_embeddings == "all",
            outputs=settings.cross_attention_output == "language",
        )

    @classmethod
    def build(
        cls, settings: ModelConfig, vocabulary: Vocabulary, *, languages: Sequence[str]
    ) -> Seq2Seq:
        """Load or create the encoder-decoder that the settings name, for a corpus."""
        settings.check_source()
        if settings.freeze != "none":
            raise ModelError(
                "model.freeze is for an encoder alone: a decoder attends to the states of the "
                "body. Leave it out, or leave model.decoder out."
            )
        if settings.attention == "auto":
            # every batch has its own shape, and FlexAttention is compiled for each
            settings = replace(settings, attention="sdpa")
        pretrained = settings.init_from is not None and is_seq2seq(settings.init_from)
        if settings.init_from is None:
            encoder, model = from_scratch(settings, vocabulary, languages)
        elif pretrained:
            encoder, model = from_seq2seq(settings, vocabulary, languages)
        else:
            encoder, model = from_encoder(settings, vocabulary, languages)
        model.config.language_token_ids = {
            code: vocabulary.language_token(number) for number, code in enumerate(languages)
        }
        seq2seq = cls(encoder, model, vocabulary, languages)
        if settings.init_from is not None and pretrained:
            language_parts.load(Path(settings.init_from), seq2seq.language_parts, languages)
        elif settings.init_from is not None:
            seq2seq.init_decoder()
        return seq2seq

    def init_decoder(self, *, language_tokens_trained: bool = False) -> None:
        """Copy the encoder's weights into the decoder, all but cross-attention.

        A decoder with fewer layers gets the encoder's first ones. Language tokens that no encoder
        objective has read (`start_with: language`) become copies of the [CLS] token.
        """
        encoder, decoder = self.encoder.model, self.model.decoder
        decoder.roberta.load_state_dict(encoder.roberta.state_dict(), strict=False)
        decoder.lm_head.load_state_dict(encoder.lm_head.state_dict())
        with torch.no_grad():
            if self.language_parts.embeddings is not None and self.encoder.languages is not None:
                self.language_parts.embeddings.weight.copy_(self.encoder.languages.weight)
            tokens = self._language_token_ids()
            for weight in [] if language_tokens_trained else self._embedding_tables():
                with whole_weight(weight) as table:
                    table[tokens] = table[self.vocabulary.cls].clone()

    def decode(self, decoding: Decoding, states: Tensor, visible: Tensor) -> Tensor:
        """(B', T, D) the decoder's states, with teacher forcing.

        Cross-attention sees the `visible` positions (B, L) of the encoder's `states` (B, L, D).
        """
        rows = decoding.rows
        with attention_kernels("sdpa"), self.language_parts.active(rows.languages[:, 0]):
            # padding is at the end, where causal attention does not look
            output = self.model.decoder.roberta(
                input_ids=rows.ids,
                position_ids=rows.positions + self.encoder.first_position,
                encoder_hidden_states=states[decoding.source_rows],
                encoder_attention_mask=visible[decoding.source_rows].long(),
                use_cache=False,
            )
        decoded: Tensor = output.last_hidden_state
        return decoded

    def decode_placeholder(self, rows: Rows, states: Tensor) -> Tensor:
        """The decoder's states of one token, where a process has nothing to decode with others."""
        one = placeholder_rows(rows)
        everything = torch.ones_like(states[:1, :, 0], dtype=torch.bool)
        decoding = Decoding(
            rows=one,
            source_rows=one.ids[0],
            target_positions=one.ids[0],
            targets=one.ids[0],
            target_slices={},
        )
        return self.decode(decoding, states[:1], everything)

    def losses(
        self, decoded: Tensor, positions: Tensor, targets: Tensor, *, label_smoothing: float
    ) -> TargetLosses:
        """The LM head's losses at flat indices of the decoder's rows."""
        return target_losses(
            self._lm_head,
            decoded,
            positions,
            targets,
            torch.ones_like(positions, dtype=torch.float32),
            chunk_size=self.encoder.settings.lm_head.chunk_size,
            label_smoothing=label_smoothing,
        )

    def generate(self, rows: Rows, languages: Tensor, settings: GenerationConfig) -> Generated:
        """Generate from padded source rows, each in a language of its own."""
        visible = rows.sequences >= 0
        tokens = visible.sum(dim=1) - 2  # without the language token and the end
        max_lengths = settings.max_lengths(tokens).long()
        max_lengths = max_lengths.clamp(max=self.encoder.max_positions - 2)
        states = self.encoder(rows).hidden
        with attention_kernels("sdpa"), self.language_parts.active(languages):
            return generate(
                self.model,
                states,
                visible,
                self.vocabulary.language_token(0) + languages,
                max_lengths,
                settings,
                suppress_tokens=self.suppress_tokens,
            )

    @property
    def suppress_tokens(self) -> list[int]:
        """Ids that are never generated: special tokens but the end, and language tokens."""
        special = [number for number in self.vocabulary.special if number != self.vocabulary.sep]
        return special + self._language_token_ids()

    def _language_token_ids(self) -> list[int]:
        return [self.vocabulary.language_token(n) for n in range(len(self.language_codes))]

    def _embedding_tables(self) -> list[Tensor]:
        encoder = self.encoder.model.get_input_embeddings().weight
        decoder = self.model.decoder.get_input_embeddings().weight
        return [encoder] if decoder is encoder else [encoder, decoder]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """Generated sequences, one a row."""

    ids: Tensor
    """(B, T), without the first token and the end; padding after it."""
    lengths: Tensor
    """(B,) tokens of each; 0 where only the end was generated."""
    truncated: Tensor
    """(B,) bool: did the sequence reach its limit before its end?"""


def generate(
    model: Any,
    states: Tensor,
    visible: Tensor,
    first_tokens: Tensor,
    max_lengths: Tensor,
    settings: GenerationConfig,
    *,
    suppress_tokens: Sequence[int] = (),
) -> Generated:
    """Generate a sequence for each row with a transformers encoder-decoder in evaluation mode.

    `states` (B, L, D) are the encoder's, `visible` (B, L) is False for padding; `first_tokens` and
    `max_lengths` (B,) are the first token and the most tokens of each sequence.
    """
    options: dict[str, Any] = {"num_beams": 1, "do_sample": False}
    if settings.method == "beam":
        options["num_beams"] = settings.num_beams
        options |= {"length_penalty": settings.length_penalty, "early_stopping": True}
    elif settings.method == "sample":
        options |= {"do_sample": True, "top_k": 0, "temperature": settings.temperature}
    found: Tensor = model.generate(
        encoder_outputs=BaseModelOutput(last_hidden_state=states),
        attention_mask=visible.long(),
        decoder_start_token_id=first_tokens.tolist(),
        max_length=1 + int(max_lengths.max()),
        suppress_tokens=list(suppress_tokens),
        **options,
    )
    ids = found[:, 1:]
    is_end = ids == model.config.eos_token_id
    without_end = torch.full_like(max_lengths, ids.shape[1])
    ends = torch.where(is_end.any(dim=1), is_end.int().argmax(dim=1), without_end)
    lengths = torch.minimum(ends, max_lengths)
    beyond = torch.arange(ids.shape[1], device=ids.device) >= lengths[:, None]
    return Generated(
        ids=ids.masked_fill(beyond, model.config.pad_token_id)[:, : int(lengths.max())],
        lengths=lengths,
        truncated=~is_end.any(dim=1) | (ends > max_lengths),
    )
