"""The files of an adaptation, all below one folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AdaptFolder:
    """The places of an adaptation's files."""

    path: Path

    @property
    def request(self) -> Path:
        """The settings as they were given: the same command continues, another one is refused."""
        return self.path / "adapt.yaml"

    @property
    def downloads(self) -> Path:
        """What was fetched from elsewhere."""
        return self.path / "downloads"

    @property
    def sample(self) -> Path:
        """`LANGUAGE.txt`: lines of each language, none of them held out."""
        return self.path / "sample"

    @property
    def heldout(self) -> Path:
        """`text/LANGUAGE.txt` and `pairs/A-B.tsv`: what the scores before and after are of."""
        return self.path / "heldout"

    @property
    def development(self) -> Path:
        """`A-B.tsv`: held-out pairs of the corpus, on which a layer and a pooling are chosen."""
        return self.path / "development"

    @property
    def steps(self) -> Path:
        """`STEP.json`: the inputs and the result of each finished step."""
        return self.path / "steps"

    @property
    def kept_out(self) -> Path:
        """All held-out texts, for `exclude` of prepare: lines, and both sides of pairs."""
        return self.heldout / "kept-out.jsonl"

    @property
    def linking(self) -> Path:
        """Held-out mentions and facts, as files of entity-linking and object-entailment."""
        return self.path / "linking"

    @property
    def findings(self) -> Path:
        """What was found out about the encoder, the data and the machine (JSON)."""
        return self.path / "findings.json"

    @property
    def plan(self) -> Path:
        """prepare.yaml, recipe.yaml and plan.json; edited files are used as they are."""
        return self.path / "plan"

    @property
    def encoder(self) -> Path:
        """The encoder with added words, where the vocabulary grows."""
        return self.path / "encoder"

    @property
    def corpus(self) -> Path:
        """The prepared corpus."""
        return self.path / "corpus"

    @property
    def run(self) -> Path:
        """The training run: checkpoints, metrics.jsonl, TensorBoard."""
        return self.path / "run"

    @property
    def scores(self) -> Path:
        """Scores before and after (JSON)."""
        return self.path / "scores.json"

    @property
    def report(self) -> Path:
        """The page with the scores before and after."""
        return self.path / "report.html"

    @property
    def model(self) -> Path:
        """The adapted encoder, as a transformers folder."""
        return self.path / "model"

    @property
    def sentence_model(self) -> Path:
        """The adapted encoder, as a sentence-transformers folder."""
        return self.path / "sentence-transformers"
