"""Back-translation masked language modeling: MLM with generated tokens of another language.

Reads a draw of the text stream and predicts its masked tokens from the rest of it and from
pseudo-tokens of another language, which the model has generated. ERNIE-M (Ouyang et al., 2021)
section 3.1. Two passes:

    (a) [CLS] x1 x2 x3 x4 [SEP] M M      rule: generate. No gradient, no dropout. Each slot is
                                         filled from the sentence alone: p(y | x1 x2 x3 x4, M)
    (b) [CLS] x1 [MASK] x3 x4 [SEP] y y  rule: full. The pseudo-tokens replace the slots

The paper does not say how many pseudo-tokens there are (its Figure 5 tries 5 to 20 % of the
length), how they are chosen, in which language, or where their positions begin: all are settings.
The first pass encodes auxiliary rows, which hold this objective's sequences only.

A lower perplexity alone proves little: a slot that repeats a word of the sentence gives the answer
away. The metric `copied` is the share of pseudo-tokens that occur in their own sentence;
`in_script` the share, of those with letters, in a script of the target language.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from isoglot.corpus.scripts import NO_SCRIPT, scripts_of_languages, scripts_of_tokens
from isoglot.errors import CorpusError
from isoglot.models.sharding import placeholder_rows
from isoglot.objectives.base import (
    ForwardResult,
    Inference,
    LossSum,
    ObjectiveModule,
    TokenPrediction,
)
from isoglot.objectives.camlm import NUM_SPECIAL, SlotObjective, append_slots
from isoglot.objectives.masking import Masking, apply_mask, build_sequence, rounded_share
from isoglot.ranges import Range, Temperature
from isoglot.types import IGNORE, IntArray, MaskRule, Rows, Sequence, Text

if TYPE_CHECKING:
    from typing import Self

    from isoglot.corpus import Corpus
    from isoglot.corpus.engine.runner import Progress
    from isoglot.models.encoder import Encoder
    from isoglot.types import Batch, Example, Rng, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class BTMLM(SlotObjective):
    """Settings of back-translation masked language modeling."""

    name: ClassVar[str] = "btmlm"
    summary: ClassVar[str] = (
        "predict masked tokens from a text and pseudo-tokens of another language"
    )
    reads: ClassVar[tuple[str, ...]] = ("text",)
    paper: ClassVar[str] = "ERNIE-M 3.1"
    num_aux_sequences: ClassVar[int] = 1

    masking: Masking = field(default_factory=Masking)
    """Which tokens are masked in the second pass, and how."""
    pseudo_rate: Annotated[float, Range(0, 1, above=True)] = 0.2
    """Pseudo-tokens to generate, as a share of the text's tokens."""
    decoding: Literal["argmax", "sample"] = "argmax"
    """Generate the most likely token, or sample one."""
    temperature: Temperature = 1.0
    """Sampling: the logits are divided by it."""

    @override
    def prepare(self, corpus: Corpus, progress: Progress | None = None) -> Self:
        return replace(self, masking=self.masking.prepare(corpus, progress))

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        length = sizes + NUM_SPECIAL + rounded_share(self.pseudo_rate, sizes)
        return np.repeat(length, 2, axis=1).astype(np.int32)

    @override
    def num_positions(self, sizes: IntArray) -> IntArray:
        tokens, slots = sizes[:, 0], rounded_share(self.pseudo_rate, sizes)[:, 0]
        ends = self.slot_positions(slots, 0) + (tokens if self.positions == "continuous" else 0)
        return np.asarray(np.maximum(ends, tokens + NUM_SPECIAL), np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(self.masking.num_masked(sizes).sum(axis=1), np.int32)

    @override
    def build(self, example: Example, vocabulary: Vocabulary, rng: Rng) -> tuple[Sequence, ...]:
        assert isinstance(example, Text)
        assert example.target_language >= 0, "the stream draws target languages"
        number = int(rounded_share(self.pseudo_rate, np.array(len(example.ids))))
        sentence = build_sequence(example.ids, example.language, vocabulary, example.sentences)
        masked = apply_mask(sentence, self.masking, vocabulary, rng)

        def appended(sequence: Sequence, rule: MaskRule) -> Sequence:
            return append_slots(
                sequence,
                positions=self.slot_positions(np.arange(number, dtype=np.int32), len(example.ids)),
                targets=np.full(number, IGNORE, np.int32),
                language=example.target_language,
                sentence=int(example.sentences[-1]) + 1,
                rule=rule,
                vocabulary=vocabulary,
            )

        return appended(masked, MaskRule.FULL), appended(sentence, MaskRule.GENERATE)

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        return BTMLMModule(self, corpus, encoder.vocabulary_size)


class BTMLMModule(TokenPrediction):
    """Generates pseudo-tokens into the main rows before the forward pass."""

    suppressed: Tensor
    script_of: Tensor
    in_script: Tensor

    def __init__(self, settings: BTMLM, corpus: Corpus, vocabulary_size: int) -> None:
        super().__init__()
        with_text = [code for code, tokens in corpus.tokens_of_languages().items() if tokens]
        if len(with_text) < 2:
            raise CorpusError(
                f"btmlm generates tokens of another language, and {corpus.folder} has text in one "
                f"only ({', '.join(with_text)}). Prepare text of a second one, or remove btmlm."
            )
        self.settings = settings
        suppressed = torch.ones(vocabulary_size, dtype=torch.bool)
        suppressed[torch.from_numpy(corpus.vocabulary.ordinary)] = False
        scripts, names = scripts_of_tokens(corpus.token_texts())
        scripts = np.pad(scripts, (0, vocabulary_size - len(scripts)), constant_values=NO_SCRIPT)
        # derived from the corpus: not stored in checkpoints
        tables = {
            "suppressed": suppressed,
            "script_of": torch.from_numpy(scripts),
            "in_script": torch.from_numpy(scripts_of_languages(corpus, scripts, len(names))),
        }
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)
        self._ratios: dict[str, tuple[Tensor, Tensor]] = {}

    @override
    def before_forward(self, name: str, batch: Batch, inference: Inference) -> None:
        rows = batch.aux_rows[name]
        slots = batch.aux_markers.get(name, {}).get("slots", rows.ids.new_zeros(0))
        tokens = slots  # none, in a micro-batch without texts for this objective
        if len(slots):
            tokens = self._generate(rows, slots, inference)
            batch.rows.ids.view(-1)[batch.markers[name]["slots"]] = tokens
        elif inference.runs_together:
            inference.states(rows if len(rows.ids) else placeholder_rows(rows))
        self._ratios = self._measure(rows, slots, tokens)

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        found = TokenPrediction.loss(self, result)
        found.ratios.update(self._ratios)
        return found

    def _generate(self, rows: Rows, slots: Tensor, inference: Inference) -> Tensor:
        """A token for each slot, from the sentence alone."""
        states = inference.states(rows)
        tokens = []
        for found in inference.logits(states, slots):
            logits = found.masked_fill_(self.suppressed, -torch.inf)
            if self.settings.decoding == "sample":
                # Gumbel-max sampling: the host does not wait for the device
                logits = logits.float()
                noise = -torch.empty_like(logits).exponential_().log()
                logits = logits / self.settings.temperature + noise
            tokens.append(logits.argmax(dim=-1))
        return torch.cat(tokens)

    def _measure(
        self, rows: Rows, slots: Tensor, tokens: Tensor
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """(sum, count) of the pseudo-tokens: copied from the sentence, in the right script."""
        row = slots // rows.ids.shape[1]
        own = rows.sequences.flatten()[slots]
        sentence = (rows.sequences[row] == own[:, None]) & (rows.roles[row] == 0)
        copied = (sentence & (rows.ids[row] == tokens[:, None])).any(dim=1)
        scripts = self.script_of[tokens]
        letters = scripts != NO_SCRIPT
        languages = rows.languages.flatten()[slots]
        right = self.in_script[languages, scripts.clamp(min=0)] & letters
        everything = torch.ones_like(letters)
        return {
            "copied": (copied.sum(), everything.sum()),
            "in_script": (right.sum(), letters.sum()),
        }
