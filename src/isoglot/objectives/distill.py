"""Knowledge distillation: be like a monolingual teacher on the text of the teacher's language.

Rides on MLM: the student's side is MLM's own pass, on the text with tokens hidden. The teacher is
any masked language model, frozen, with a tokenizer of its own; its input is a side row, the same
text in its own tokens. MetaXLM (Chi et al., 2021) section 5.3, Table 3, which does not say what is
compared; here it is a setting:

    words        states of words, first piece to first piece, through a linear map; mean square
    sentence     the mean of all states, through a linear map; mean square
    vocabulary   what both guess for a hidden word that is one piece in both: KL over the tokens
                 that both have, at a temperature

For words and sentences the teacher reads the text whole. For guesses it is shown no more than the
student: whatever touches a hidden token is a mask there too. A text of which the teacher needs more
tokens than the student is cut for it; words beyond the cut are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from typing_extensions import override

from isoglot.errors import CorpusError, RecipeError, nearest, require
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.models.head import at_sites
from isoglot.models.hub import local_folder
from isoglot.objectives.base import Encoded, Inference, LossSum, Objective, ObjectiveModule
from isoglot.objectives.contrast.pooling import pool
from isoglot.objectives.same_words import TwoTokenizers
from isoglot.objectives.shared_tokens import shared_tokens
from isoglot.objectives.whole import whole
from isoglot.types import IGNORE, IntArray, Sequence

if TYPE_CHECKING:
    from isoglot.corpus import Corpus, Progress
    from isoglot.objectives.same_words import BothWays
    from isoglot.types import Batch, Example, Rows, Vocabulary

STUDENT, TEACHER = "student", "teacher"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distill(Objective):
    """Settings of knowledge distillation."""

    name: ClassVar[str] = "distill"
    line: ClassVar[str] = "have the states, or the guesses, of a monolingual teacher"
    reads: ClassVar[tuple[str, ...]] = ("text",)
    paper: ClassVar[str] = "MetaXLM 5.3"
    num_side: ClassVar[int] = 1
    counts: ClassVar[str | None] = STUDENT
    host_sites: ClassVar[tuple[str, ...]] = (STUDENT,)

    teacher: str | None = None
    """Folder or Hugging Face name of the teacher, a masked language model with its tokenizer."""
    languages: tuple[str, ...] = ("en",)
    """The languages that the teacher knows; texts of others are left to the other objectives."""
    compare: Literal["words", "sentence", "vocabulary"] = "words"
    """What the student is to share: states of words, the mean state, or guesses of hidden words."""
    layer: int | None = None
    """The student's layer that is compared with the teacher's last; none means the last."""
    temperature: float = 2.0
    """Guesses: what logits are divided by, on both sides."""
    longest: int = 512
    """Most tokens that the teacher reads at a time, special ones included."""

    def __post_init__(self) -> None:
        require(self.temperature > 0, "distill.temperature must be above 0")
        require(len(self.languages) > 0, "distill.languages must name a language")
        require(self.longest >= 3, "distill.longest must be 3 or more")
        require(
            self.layer is None or self.compare != "vocabulary",
            "distill.layer: guesses are made from the last layer; leave it out",
        )

    @override
    def hosts(self) -> tuple[str, ...]:
        return ("mlm",)

    @override
    def wants(self, language: str) -> bool:
        return language in self.languages

    @override
    def lengths(self, sizes: IntArray) -> IntArray:
        return np.minimum(sizes + 2, self.longest).astype(np.int32)

    @override
    def max_targets(self, sizes: IntArray) -> IntArray:
        return np.zeros(len(sizes), np.int32)

    @override
    def build(
        self, example: Example, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        return ()

    @override
    def prepared(self, corpus: Corpus, progress: Progress | None = None) -> Objective:
        if self.teacher is None:
            raise RecipeError(
                "objectives.distill.teacher: name the model to learn from, a folder with its "
                "tokenizer or a Hugging Face name."
            )
        for language in self.languages:
            if language not in corpus.languages:
                raise CorpusError(
                    f"objectives.distill.languages: {corpus.folder} has nothing for "
                    f"{language!r}; {nearest(language, corpus.languages)}"
                )
        teacher = str(local_folder(self.teacher))
        told = {field.name: getattr(self, field.name) for field in fields(Distill)}
        return DistillOn(
            **{**told, "teacher": teacher},
            tokenizers=TwoTokenizers(str(corpus.tokenizer_folder), teacher),
            ids=tuple(corpus.languages.index(language) for language in self.languages),
        )

    @override
    def module(self, encoder: Encoder, corpus: Corpus) -> ObjectiveModule:
        bound = self.prepared(corpus)
        assert isinstance(bound, DistillOn)
        return Student(bound, encoder, corpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillOn(Distill):
    """Distillation for one corpus: it can read its text."""

    tokenizers: TwoTokenizers
    """The corpus's and the teacher's."""
    ids: tuple[int, ...]
    """The corpus's numbers of the teacher's languages."""

    @override
    def ride(
        self, hosted: tuple[Sequence, ...], vocabulary: Vocabulary, rng: np.random.Generator
    ) -> tuple[Sequence, ...]:
        (student,) = hosted
        others = self.tokenizers.vocabulary()
        language = int(student.languages[0])
        if language not in self.ids:
            return (_row(np.zeros(0, np.int32), language, others),)
        both = self.tokenizers.read(student, vocabulary)
        most = min(len(student), self.longest) - 2
        ids = both.ids[:most].copy()
        if self.compare == "vocabulary":
            hidden = np.flatnonzero(student.targets != IGNORE).tolist()
            ids[[token for token in both.touching(hidden) if token < most]] = others.mask
        pairs = np.array(
            [pair for pair in self._compared(both, student) if pair[1] <= len(ids)], np.int64
        ).reshape(-1, 2)
        sites = {STUDENT: pairs[:, 0], TEACHER: pairs[:, 1]}
        return (replace(_row(ids, language, others), sites=sites),)

    def _compared(self, both: BothWays, student: Sequence) -> list[tuple[int, int]]:
        """(place in the student's sequence, place in the teacher's) of what is compared."""
        if self.compare == "sentence":
            return [(0, 0)]
        if self.compare == "words":
            return [(mine, theirs + 1) for mine, theirs in both.words()]
        return [
            (mine, theirs + 1)
            for mine, theirs in both.whole_words()
            if student.targets[mine] != IGNORE
        ]


class Student(ObjectiveModule):
    """The model half: the frozen teacher, and the map from the student's width to its own."""

    mine: Tensor
    theirs: Tensor

    def __init__(self, settings: DistillOn, encoder: Encoder, corpus: Corpus) -> None:
        super().__init__()
        assert settings.teacher is not None
        layers = int(encoder.model.config.num_hidden_layers)
        if settings.layer is not None and not 0 <= settings.layer <= layers:
            raise RecipeError(
                f"objectives.distill.layer: {settings.layer} does not exist in an encoder of "
                f"{layers} layers: choose one from 0 to {layers}."
            )
        self.settings, self.layer = settings, settings.layer
        self.teacher = _open_teacher(settings.teacher, settings.longest)
        self.map: nn.Linear | None = None
        if settings.compare == "vocabulary":
            shared = shared_tokens(corpus.tokenizer_folder, Path(settings.teacher))
            for name, ids in zip(("mine", "theirs"), shared, strict=True):
                self.register_buffer(name, torch.from_numpy(ids), persistent=False)
        else:
            self.map = nn.Linear(encoder.hidden_size, self.teacher.hidden_size)
        # in a tuple, so that the encoder is not a submodule: it has its own place in checkpoints
        self._encoder = (encoder,)
        self._said: Tensor | None = None
        """What the teacher says of a micro-batch, for the loss of the same one."""

    @override
    def train(self, mode: bool = True) -> Student:
        super().train(mode)
        self.teacher.eval()
        return self

    @override
    @torch.no_grad()
    def before_pass(self, name: str, batch: Batch, inference: Inference) -> None:
        self._said = None
        places = batch.side_sites.get(name, {}).get(TEACHER)
        if places is None or not len(places):
            return
        rows = _with_padding(batch.side[name], int(self.teacher.model.config.pad_token_id or 0))
        states = self.teacher(rows)
        match self.settings.compare:
            case "words":
                self._said = _exact(at_sites(states.hidden, places))
            case "sentence":
                self._said = pool(states.hidden, rows, places, "mean")
            case "vocabulary":
                self._said = torch.cat(
                    [
                        self._guesses(self.teacher, at_sites(states.hidden, some), self.theirs)
                        for some in places.split(self.teacher.settings.head.chunk)
                    ]
                )

    @override
    def loss(self, encoded: Encoded) -> LossSum:
        said, self._said = self._said, None
        if said is None:
            nothing = encoded.losses.sum() * 0.0
            return LossSum(total=nothing, metrics={self._metric: nothing.detach()})
        places = encoded.batch.sites[encoded.name][STUDENT]
        if self.map is None:
            return self._divergences(at_sites(encoded.states, places), said)
        if self.settings.compare == "words":
            states = at_sites(encoded.states, places)
        else:
            states = pool(encoded.states, encoded.batch.rows, places, "mean")
        with torch.autocast(states.device.type, enabled=False):
            mapped = self.map(_exact(states))
        losses = (mapped - said).square().mean(dim=1)
        alike = F.cosine_similarity(mapped.detach(), said, dim=1)
        return LossSum(total=losses.sum(), metrics={self._metric: alike.sum()})

    @property
    def _metric(self) -> str:
        return "agreement" if self.map is None else "cosine"

    def _divergences(self, states: Tensor, said: Tensor) -> LossSum:
        """KL from the teacher's guesses to the student's; a chunk's logits exist at a time."""
        (encoder,) = self._encoder
        losses, agree = [], []
        chunk = encoder.settings.head.chunk
        for some, theirs in zip(states.split(chunk), said.split(chunk), strict=True):
            mine = checkpoint(self._guesses, encoder, some, self.mine, use_reentrant=False)
            divergences = (theirs.exp() * (theirs - mine)).sum(dim=1)
            losses.append(divergences * self.settings.temperature**2)
            agree.append(mine.detach().argmax(dim=1) == theirs.argmax(dim=1))
        return LossSum(
            total=torch.cat(losses).sum(), metrics={self._metric: torch.cat(agree).sum()}
        )

    def _guesses(self, encoder: Encoder, states: Tensor, shared: Tensor) -> Tensor:
        """(n, S) log-probabilities of the shared tokens, softened."""
        logits = _exact(encoder.lm_head(states)[:, shared])
        return F.log_softmax(logits / self.settings.temperature, dim=1)


def _row(ids: IntArray, language: int, vocabulary: Vocabulary) -> Sequence:
    """The teacher's input, without regard to where sentences end."""
    sequence = whole(ids, language, np.zeros(len(ids), np.int32), vocabulary)
    return replace(sequence, sentences=np.zeros(len(sequence), np.int32))


def _open_teacher(folder: str, longest: int) -> Encoder:
    teacher = Encoder.open(folder, ModelConfig(start=folder, languages="none"))
    if longest > teacher.max_positions:
        raise RecipeError(
            f"objectives.distill.longest: the teacher {folder} has {teacher.max_positions} "
            f"positions and is to read {longest} tokens. Set it to {teacher.max_positions}."
        )
    return teacher.requires_grad_(requires_grad=False).eval()


def _with_padding(rows: Rows, pad: int) -> Rows:
    """The rows with the teacher's own padding: the corpus's may be no token of it."""
    return replace(rows, ids=torch.where(rows.sequences < 0, pad, rows.ids))


def _exact(numbers: Tensor) -> Tensor:
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))
