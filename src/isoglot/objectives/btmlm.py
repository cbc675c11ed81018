"""Back-translation masked language modelling: hidden tokens of a text, with words written for it.

Reads a draw of the text stream and predicts its hidden tokens from the rest of it and from
pseudo-tokens of another language, which the model itself has just written. ERNIE-M (Ouyang et al.,
2021) section 3.1. Two passes:

    (a) [CLS] x1 x2 x3 x4 [SEP] M M      rule: generate. No gradient, no dropout. Each slot is
                                         filled from the sentence alone: p(y | x1 x2 x3 x4, M)
    (b) [CLS] x1 [MASK] x3 x4 [SEP] y y  rule: full. The pseudo-tokens stand where the slots stood

The paper does not say how many pseudo-tokens there are (its Figure 5 tries 5 to 20 % of the
length), how they are chosen, in which language, or where their positions begin: all are settings.
The first pass goes through side rows that hold this objective's sequences only, so it costs nothing
for what other objectives read.

A lower perplexity alone proves little: a slot that repeats a word of the sentence gives the answer
away. `copied` is the share of pseudo-tokens that occur in their own sentence; `in script` the share
of those with letters that are written in a script of the language asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from isoglot.corpus.scripts import NO_SCRIPT, scripts_of_languages, scripts_of_pieces
from isoglot.errors import CorpusError, require
from isoglot.objectives.base import Encoded, Inference, LossSum, ObjectiveModule, Prediction
from isoglot.objectives.masking import Masking, share
from isoglot.objectives.slots import NUM_EDGES, Slotted, with_slots
from isoglot.objectives.whole import masked, whole
from isoglot.types import IGNORE, IntArray, Rows, Rule, Sequence, Text

if TYPE_CHECKING:
    from typing import Self

    from isoglot.corpus import Corpus, Progress
    from isoglot.models.encoder import Encoder
    from isoglot.types import Batch, Example, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class BTMLM(Slotted):
    """Settings of back-translation masked language modelling."""

    name: ClassVar[str] = "btmlm"
    line: ClassVar[str] = "predict hidden tokens of a text, helped by words of another language"
    reads: ClassVar[tuple[str, ...]] = ("text",)
    paper: ClassVar[str] = "ERNIE-M 3.1"
    num_side: ClassVar[int] = 1

    masking: Masking = field(default_factory=Masking)
    """What is hidden in the second pass, and how."""
    pseudo_rate: float = 0.2
    """Pseudo-tokens to write, as a share of the text's tokens."""
    choice: Literal["argmax", "sample"] = "argmax"
    """Write the likeliest token, or draw one."""
    temperature: float = 1.0
    """Drawing: the logits are divided by it."""

    def __post_init__(self) -> None:
        require(0 < self.pseudo_rate <= 1, "btmlm.pseudo_rate must be above 0 and at most 1")
        require(self.temperature > 0, "btmlm.temperature must be above 0")

    @override
    def prepared(self, corpus: Corpus, progress: Progress | None = None) -> Self:
        return replace(self, masking=self.masking.prepared(corpus, progress))

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        length = sizes + NUM_EDGES + share(self.pseudo_rate, sizes)
        return np.repeat(length, 2, axis=1).astype(np.int32)

    @override
    def reach(self, sizes: IntArray) -> IntArray:
        tokens, slots = sizes[:, 0], share(self.pseudo_rate, sizes)[:, 0]
        ends = self.slot_positions(slots, 0) + (tokens if self.positions == "continuous" else 0)
        return np.asarray(np.maximum(ends, tokens + NUM_EDGES), np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.asarray(self.masking.budget(sizes).sum(axis=1), np.int32)

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        assert isinstance(example, Text)
        assert example.other_language >= 0, "the stream was opened with other languages"
        number = int(share(self.pseudo_rate, np.array(len(example.ids))))
        sentence = whole(example.ids, example.language, example.sentences, vocabulary)
        hidden = masked(sentence, self.masking, vocabulary, rng)

        def appended(sequence: Sequence, rule: Rule) -> Sequence:
            return with_slots(
                sequence,
                positions=self.slot_positions(np.arange(number, dtype=np.int32), len(example.ids)),
                targets=np.full(number, IGNORE, np.int32),
                language=example.other_language,
                sentence=int(example.sentences[-1]) + 1,
                rule=rule,
                vocabulary=vocabulary,
            )

        return appended(hidden, Rule.FULL), appended(sentence, Rule.GENERATE)

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        return BackTranslation(self, corpus, encoder.vocabulary_size)


class BackTranslation(Prediction):
    """Writes pseudo-tokens into the rows before the pass; the loss is the LM head's."""

    never: Tensor
    script_of: Tensor
    in_script: Tensor

    def __init__(self, settings: BTMLM, corpus: Corpus, vocabulary_size: int) -> None:
        super().__init__()
        with_text = [code for code, tokens in corpus.tokens_of_languages().items() if tokens]
        if len(with_text) < 2:
            raise CorpusError(
                f"btmlm writes words of another language, and {corpus.folder} has one only "
                f"({', '.join(with_text)}). Prepare text of a second one, or leave btmlm out."
            )
        self.settings = settings
        never = torch.ones(vocabulary_size, dtype=torch.bool)
        never[torch.from_numpy(corpus.vocabulary.ordinary)] = False
        scripts, names = scripts_of_pieces(corpus.pieces())
        scripts = np.pad(scripts, (0, vocabulary_size - len(scripts)), constant_values=NO_SCRIPT)
        # facts of the corpus, not of the training: no checkpoint needs them
        tables = {
            "never": never,
            "script_of": torch.from_numpy(scripts),
            "in_script": torch.from_numpy(scripts_of_languages(corpus, scripts, len(names))),
        }
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)
        self._written: dict[str, tuple[Tensor, Tensor]] = {}

    @override
    def before_pass(self, name: str, batch: Batch, inference: Inference) -> None:
        rows = batch.side[name]
        slots = batch.side_sites.get(name, {}).get("slots", rows.ids.new_zeros(0))
        tokens = slots  # none, in a micro-batch without texts for this objective
        if len(slots):
            tokens = self._write(rows, slots, inference)
            batch.rows.ids.view(-1)[batch.sites[name]["slots"]] = tokens
        self._written = self._judge(rows, slots, tokens)

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        found = Prediction.loss(self, encoded)
        found.ratios.update(self._written)
        return found

    def _write(self, rows: Rows, slots: Tensor, inference: Inference) -> Tensor:
        """A token for each slot."""
        states = inference.states(rows)
        tokens = []
        for found in inference.logits(states, slots):
            logits = found.masked_fill_(self.never, -torch.inf)
            if self.settings.choice == "sample":
                # the largest of the logits with Gumbel noise: a draw that no device waits for
                logits = logits.float()
                noise = -torch.empty_like(logits).exponential_().log()
                logits = logits / self.settings.temperature + noise
            tokens.append(logits.argmax(dim=-1))
        return torch.cat(tokens)

    def _judge(self, rows: Rows, slots: Tensor, tokens: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """(sum, count) of what was written: copied from the sentence, in the right script."""
        row = slots // rows.ids.shape[1]
        own = rows.sequences.flatten()[slots]
        sentence = (rows.sequences[row] == own[:, None]) & (rows.parts[row] == 0)
        copied = (sentence & (rows.ids[row] == tokens[:, None])).any(dim=1)
        scripts = self.script_of[tokens]
        letters = scripts != NO_SCRIPT
        languages = rows.languages.flatten()[slots]
        right = self.in_script[languages, scripts.clamp(min=0)] & letters
        everything = torch.ones_like(letters)
        return {
            "copied": (copied.sum(), everything.sum()),
            "in script": (right.sum(), letters.sum()),
        }
