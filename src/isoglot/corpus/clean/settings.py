"""The settings of cleaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isoglot.errors import require

UnicodeForm = Literal["NFC", "NFKC"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanConfig:
    """How texts are made normal, and which records are dropped."""

    unicode: UnicodeForm = "NFC"
    """The form of Unicode: composed (NFC), or with compatible characters made one as well (NFKC:
    full-width letters, ligatures, superscripts), as XLM-R's tokenizer does."""
    min_characters: int = 1
    """Shortest text that is kept, in characters."""
    max_characters: int = 5000
    """Longest text that is kept, in characters."""
    min_letters: float = 0.4
    """Least share of letters in a text, spaces not counted; the rest is digits and punctuation."""
    min_script: float = 0.2
    """Least share of a text's letters that must be in the scripts of its language; names and code
    in other scripts are nothing wrong. A language whose scripts are not known is not judged."""
    language_confidence: float | None = None
    """A text is dropped if it is identified as another language with this probability or more; none
    for no identification. Short sentences are easily mistaken: 0.9 is a good value."""
    max_ratio: float = 5.0
    """A pair is dropped if one side is more than this many times as long as the other, in UTF-8
    bytes: by characters, Chinese would seem four times as short as English."""
    ratio_floor: int = 30
    """A side shorter than this many bytes counts as this long when sides are compared."""
    near_empty: int = 3
    """A pair is dropped if one side has no more bytes than this and the other `ratio_floor`."""

    def __post_init__(self) -> None:
        require(self.min_characters >= 0, "clean.min_characters must be 0 or more")
        require(
            self.max_characters >= max(self.min_characters, 1),
            "clean.max_characters must be 1 or more, and not below clean.min_characters",
        )
        for name in ("min_letters", "min_script", "language_confidence"):
            share = getattr(self, name)
            require(share is None or 0 <= share <= 1, f"clean.{name} must be from 0 to 1")
        require(self.max_ratio >= 1, "clean.max_ratio must be 1 or more")
        require(self.ratio_floor >= 1, "clean.ratio_floor must be 1 or more")
        require(self.near_empty >= 0, "clean.near_empty must be 0 or more")
