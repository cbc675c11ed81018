"""Knowledge distillation: be like a monolingual teacher on the text of the teacher's language.

Depends on MLM: the student's states are those of MLM's forward pass, on masked text. The teacher is
any masked language model, frozen, with a tokenizer of its own; its input, the same text in its own
tokens, is an auxiliary row. MetaXLM (Chi et al., 2021) section 5.3, Table 3, which does not say
what is compared; here it is a setting, `match`:

    word_states     states of words, first token to first token, through a linear map; mean square
    sentence_mean   the mean of all states, through a linear map; mean square
    logits          predictions of a masked word that is one token in both: KL over the shared
                    tokens, at a temperature

For states the teacher reads the unmasked text. For logits every token that overlaps one masked for
the student is masked for the teacher, too. The teacher's text is cut to the number of tokens that
the student's has; words beyond the cut are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from typing_extensions import override

from isoglot.errors import CorpusError, RecipeError, nearest, require
from isoglot.folders import model_folder
from isoglot.languages import find
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.lm_head import select_positions
from isoglot.models.sharding import placeholder_rows, runs_together
from isoglot.objectives.base import ForwardResult, Inference, LossSum, Objective, ObjectiveModule
from isoglot.objectives.contrast.pooling import check_layer, pool
from isoglot.objectives.masking import build_sequence
from isoglot.objectives.token_alignment import TokenizerPair, shared_tokens
from isoglot.ranges import Range, Temperature
from isoglot.types import IGNORE, IntArray, Sequence

if TYPE_CHECKING:
    from isoglot.corpus import Corpus
    from isoglot.corpus.engine.runner import Progress
    from isoglot.objectives.token_alignment import TokenAlignment
    from isoglot.types import Batch, Rng, Vocabulary

STUDENT, TEACHER = "student", "teacher"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distill(Objective):
    """Settings of knowledge distillation."""

    name: ClassVar[str] = "distill"
    summary: ClassVar[str] = "match the states or the predictions of a monolingual teacher"
    reads: ClassVar[tuple[str, ...]] = ("text",)
    paper: ClassVar[str] = "MetaXLM 5.3"
    num_aux_sequences: ClassVar[int] = 1
    target_marker: ClassVar[str | None] = STUDENT
    base_markers: ClassVar[tuple[str, ...]] = (STUDENT,)

    teacher: str | None = None
    """Folder, run or Hugging Face name of the teacher, a masked language model with tokenizer."""
    languages: tuple[str, ...] = ("en",)
    """The languages of the teacher; texts in others are not distilled."""
    match: Literal["word_states", "sentence_mean", "logits"] = "word_states"
    """Match hidden states of words, the mean hidden state, or predictions of masked words."""
    layer: Annotated[int | None, Range(-1000, 1000)] = None
    """The student's layer that is compared with the teacher's last; none means the last."""
    temperature: Temperature = 2.0
    """Logits: both sides are divided by it."""
    max_tokens: Annotated[int, Range(3, 2**17)] = 512
    """Most tokens of the teacher's input, special ones included."""

    @override
    def __post_init__(self) -> None:
        Objective.__post_init__(self)
        require(len(self.languages) > 0, "distill.languages must name a language")
        require(
            self.layer is None or self.match != "logits",
            "distill.layer: logits come from the last layer; remove it",
        )

    @override
    def depends_on(self) -> tuple[str, ...]:
        return ("mlm",)

    @override
    def models(self) -> tuple[str, ...]:
        if self.teacher is None:
            raise RecipeError(
                "objectives.distill.teacher: name the model to learn from, a folder with its "
                "tokenizer or a Hugging Face name."
            )
        return (self.teacher,)

    @override
    def accepts_language(self, language: str) -> bool:
        return find(language, self.languages) is not None

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return np.minimum(sizes + 2, self.max_tokens).astype(np.int32)

    @override
    def prepare(self, corpus: Corpus, progress: Progress | None = None) -> Objective:
        (named,) = self.models()
        found = [find(language, corpus.languages) for language in self.languages]
        languages = [language for language in found if language is not None]
        if not languages:
            raise CorpusError(
                f"objectives.distill.languages: {corpus.folder} has none of "
                f"{', '.join(self.languages)}; {nearest(self.languages[0], corpus.languages)}"
            )
        teacher = str(model_folder(named))
        settings = {field.name: getattr(self, field.name) for field in fields(Distill)}
        return PreparedDistill(
            **{**settings, "teacher": teacher},
            tokenizers=TokenizerPair(str(corpus.tokenizer_folder), teacher),
            language_ids=tuple(corpus.languages.index(language) for language in languages),
        )

    @override
    def build_module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        bound = self.prepare(corpus)
        assert isinstance(bound, PreparedDistill)
        return DistillModule(bound, encoder, corpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDistill(Distill):
    """Distillation on one corpus, with the tokenizers to read its text."""

    tokenizers: TokenizerPair
    """The corpus's and the teacher's."""
    language_ids: tuple[int, ...]
    """Ids of the teacher's languages in the corpus."""

    @override
    def build_from(
        self, bases: tuple[Sequence, ...], vocabulary: Vocabulary, rng: Rng
    ) -> tuple[Sequence, ...]:
        (student,) = bases
        theirs = self.tokenizers.vocabulary()
        language = int(student.languages[0])
        if language not in self.language_ids:
            return (build_sequence(np.zeros(0, np.int32), language, theirs),)
        aligned = self.tokenizers.align(student, vocabulary)
        limit = min(len(student), self.max_tokens) - 2
        ids = aligned.second_ids[:limit].copy()
        if self.match == "logits":
            masked = np.flatnonzero(student.targets != IGNORE).tolist()
            ids[[token for token in aligned.overlapping(masked) if token < limit]] = theirs.mask
        pairs = np.array(
            [pair for pair in self._matched(aligned, student) if pair[1] <= len(ids)], np.int64
        ).reshape(-1, 2)
        markers = {STUDENT: pairs[:, 0], TEACHER: pairs[:, 1]}
        return (replace(build_sequence(ids, language, theirs), markers=markers),)

    def _matched(self, aligned: TokenAlignment, student: Sequence) -> list[tuple[int, int]]:
        """(position in the student's sequence, in the teacher's) of each comparison."""
        if self.match == "sentence_mean":
            return [(0, 0)]
        if self.match == "word_states":
            return [(mine, theirs + 1) for mine, theirs in aligned.word_starts()]
        return [
            (mine, theirs + 1)
            for mine, theirs in aligned.single_token_words()
            if student.targets[mine] != IGNORE
        ]


class DistillModule(ObjectiveModule):
    """The model half: the frozen teacher, and a map from the student's width to the teacher's."""

    mine: Tensor
    theirs: Tensor

    def __init__(self, settings: PreparedDistill, encoder: Encoder, corpus: Corpus) -> None:
        super().__init__()
        assert settings.teacher is not None
        check_layer(settings.name, settings.layer, encoder)
        self.settings, self.layer = settings, settings.layer
        self.teacher = _open_teacher(settings.teacher, settings.max_tokens)
        self.map: nn.Linear | None = None
        if settings.match == "logits":
            shared = shared_tokens(corpus.tokenizer_folder, Path(settings.teacher))
            for name, ids in zip(("mine", "theirs"), shared, strict=True):
                self.register_buffer(name, torch.from_numpy(ids), persistent=False)
        else:
            self.map = nn.Linear(encoder.hidden_size, self.teacher.hidden_size)
        # in a tuple, so that the encoder is no submodule: checkpoints hold it elsewhere
        self._encoder = (encoder,)
        self._teacher_output: Tensor | None = None
        """The teacher's output for a micro-batch, for the loss of the same one."""

    @override
    def train(self, mode: bool = True) -> DistillModule:
        super().train(mode)
        self.teacher.eval()
        return self

    @override
    @torch.no_grad()
    def before_forward(self, name: str, batch: Batch, inference: Inference) -> None:
        self._teacher_output = None
        places = batch.aux_markers.get(name, {}).get(TEACHER)
        nothing = places is None or not len(places)
        if nothing and not runs_together(self.teacher):
            return
        rows = batch.aux_rows[name]
        rows = rows if len(rows.ids) else placeholder_rows(rows)
        # the teacher's padding id, as the corpus's may be no id of the teacher
        pad = int(self.teacher.model.config.pad_token_id or 0)
        rows = replace(rows, ids=torch.where(rows.sequences < 0, pad, rows.ids))
        states = self.teacher(rows)
        if places is None or nothing:
            return
        match self.settings.match:
            case "word_states":
                self._teacher_output = _exact(select_positions(states.hidden, places))
            case "sentence_mean":
                self._teacher_output = pool(states.hidden, rows, places, "mean")
            case "logits":
                selected = select_positions(states.hidden, places)
                chunks = selected.split(self.teacher.settings.lm_head.chunk_size)
                self._teacher_output = torch.cat(
                    [self._log_probabilities(self.teacher, some, self.theirs) for some in chunks]
                )

    @override
    def loss(self, result: ForwardResult) -> LossSum:
        outputs, self._teacher_output = self._teacher_output, None
        if outputs is None:
            return result.empty_loss(self._metric)
        places = result.batch.markers[result.name][STUDENT]
        if self.map is None:
            return self._divergences(select_positions(result.hidden_states, places), outputs)
        if self.settings.match == "word_states":
            states = select_positions(result.hidden_states, places)
        else:
            states = pool(result.hidden_states, result.batch.rows, places, "mean")
        with torch.autocast(states.device.type, enabled=False):
            mapped = self.map(_exact(states))
        losses = (mapped - outputs).square().mean(dim=1)
        alike = F.cosine_similarity(mapped.detach(), outputs, dim=1)
        return LossSum(total=losses.sum(), metrics={self._metric: alike.sum()})

    @property
    def _metric(self) -> str:
        return "agreement" if self.map is None else "cosine"

    def _divergences(self, states: Tensor, outputs: Tensor) -> LossSum:
        """KL from the teacher's predictions to the student's; logits of one chunk at a time."""
        (encoder,) = self._encoder
        losses, agree = [], []
        chunk = encoder.settings.lm_head.chunk_size
        for some, theirs in zip(states.split(chunk), outputs.split(chunk), strict=True):
            mine = checkpoint(
                self._log_probabilities, encoder, some, self.mine, use_reentrant=False
            )
            divergences = (theirs.exp() * (theirs - mine)).sum(dim=1)
            losses.append(divergences * self.settings.temperature**2)
            agree.append(mine.detach().argmax(dim=1) == theirs.argmax(dim=1))
        return LossSum(
            total=torch.cat(losses).sum(), metrics={self._metric: torch.cat(agree).sum()}
        )

    def _log_probabilities(self, encoder: Encoder, states: Tensor, shared: Tensor) -> Tensor:
        """(n, S) log-probabilities of the shared tokens, at the temperature."""
        logits = _exact(encoder.lm_head(states)[:, shared])
        return F.log_softmax(logits / self.settings.temperature, dim=1)


def _open_teacher(folder: str, max_tokens: int) -> Encoder:
    teacher = Encoder.from_pretrained(
        folder, ModelConfig(init_from=folder, language_embeddings="none")
    )
    if max_tokens > teacher.max_positions:
        raise RecipeError(
            f"objectives.distill.max_tokens: the teacher {folder} has {teacher.max_positions} "
            f"positions and is to read {max_tokens} tokens. Set it to {teacher.max_positions}."
        )
    return teacher.requires_grad_(requires_grad=False).eval()


def _exact(numbers: Tensor) -> Tensor:
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))
