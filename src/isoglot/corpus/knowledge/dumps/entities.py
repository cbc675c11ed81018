"""The entities of a part of a Wikidata dump (`latest-all.json`): one JSON object a line.

Lines of items without an article in a wanted language are passed over without being parsed: they
are most of a dump, and nothing that is trained on can come from them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoglot.corpus.knowledge.dumps.records import Records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from isoglot.corpus.knowledge.dumps.unpack import Part

_SITELINKS = b'"sitelinks":'


@dataclass(frozen=True, slots=True)
class Entity:
    """An item, a property or something else that has an id."""

    offset: int
    """Unpacked bytes between the start of the part and its line."""
    id: str
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no entity."""

    offset: int
    """Unpacked bytes between the start of the part and the line."""
    fault: str


class Passed:
    """A line that was passed over, since its item has no article in a wanted language."""


PASSED = Passed()


class Entities:
    """Iterates over the entities of a part, once; then `cut_short` says if the dump ends early."""

    def __init__(self, part: Part, wikis: Collection[str]) -> None:
        """`wikis` are the database names of the wanted Wikipedias; none: every item is wanted."""
        self._last = part.end is None
        self._records = Records(part, b"\n", b"\n", preceding=b"\n")
        names = b"|".join(re.escape(wiki.encode()) for wiki in sorted(wikis))
        self._wanted = re.compile(rb'"(?:%s)"\s*:' % names) if wikis else None
        self.cut_short = False

    def __iter__(self) -> Iterator[Entity | BadLine | Passed]:
        """The entities, in order."""
        closed = opened = False
        for record in self._records:
            line = record.data.strip(b" \t\r\n,")
            if not line or line in (b"[", b"]"):
                opened, closed = opened or line == b"[", closed or line == b"]"
                continue
            if not (line.startswith(b"{") and line.endswith(b"}")):
                yield BadLine(record.offset + 1, "it is no JSON object")
                continue
            if self._wanted is not None and line.startswith(b'{"type":"item"'):
                start = line.rfind(_SITELINKS)
                if start >= 0 and self._wanted.search(line, start) is None:
                    yield PASSED
                    continue
            yield _entity(line, record.offset + 1)
        self.cut_short = self._last and not closed


def _entity(line: bytes, offset: int) -> Entity | BadLine:
    """The entity a line describes."""
    try:
        content = json.loads(line)
    except ValueError as error:
        return BadLine(offset, str(error))
    name = content.get("id")
    if not isinstance(name, str) or not name[1:].isdigit():
        return BadLine(offset, "it has no id")
    return Entity(offset, name, content)
