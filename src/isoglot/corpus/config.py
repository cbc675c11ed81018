"""The settings of a preparation."""

from __future__ import annotations

from dataclasses import dataclass, field

from isoglot.corpus.cells import SourceConfig
from isoglot.corpus.clean import CleanConfig
from isoglot.corpus.duplicates import DuplicatesConfig
from isoglot.corpus.pieces import TokenizerConfig
from isoglot.errors import require


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareConfig:
    """What a corpus is made of."""

    base: str = ""
    """Folder that paths are relative to, itself relative to the settings' folder; `$NAME` is a
    variable of the environment."""
    sources: dict[str, SourceConfig]
    """Name -> one source of raw text; the name becomes a folder of the corpus."""
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    """The tokenizer: trained on the corpus, or taken from a folder."""
    clean: CleanConfig = field(default_factory=CleanConfig)
    """Which records are dropped."""
    duplicates: DuplicatesConfig = field(default_factory=DuplicatesConfig)
    """Which repeated lines are dropped."""
    exclude: tuple[str, ...] = ()
    """Evaluation files or patterns: lines that occur in them are dropped, and counted by file."""
    exclude_shortest: int = 10
    """Shortest text of an evaluation file that is looked for: bytes of its letters and digits."""
    dropped: str | None = None
    """Folder into which every dropped line is written with its reason; relative to where the
    command runs."""
    heldout_share: float = 0.01
    """Share of the distinct sentences that are kept out of training."""
    heldout_seed: int = 0
    """Which sentences are held out."""
    shard_tokens: int = 4_000_000
    """A new shard begins after about this many tokens."""

    def check(self) -> None:
        """Refuses settings that make no corpus, or contradict each other."""
        share, tokens, duplicates = self.heldout_share, self.shard_tokens, self.duplicates
        require(0 <= share < 1, f"heldout_share: {share} is not from 0 to below 1.")
        require(0 < tokens <= 2**30, f"shard_tokens: {tokens} is not from 1 to 2^30.")
        require(
            0 < duplicates.similarity <= 1,
            f"duplicates.similarity: {duplicates.similarity} is not above 0 and at most 1.",
        )
        require(
            duplicates.partitions is None or duplicates.partitions > 0,
            f"duplicates.partitions: {duplicates.partitions} is not 1 or more.",
        )
        require(
            duplicates.scope != "none" or not duplicates.near,
            "duplicates: `near` looks for lines in a scope, and the scope is `none`. Set "
            "`scope: source` or `scope: language`, or leave `near` out.",
        )
        others = self.tokenizer.training_settings()
        require(
            self.tokenizer.folder is None or not others,
            f"tokenizer: `folder` names a tokenizer to take as it is; {' and '.join(others)} "
            "would be for training another. Leave out the one or the other.",
        )
