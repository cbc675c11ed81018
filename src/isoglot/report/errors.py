"""What a user can get wrong when asking for a report."""

from __future__ import annotations

from isoglot.errors import IsoglotError


class ReportError(IsoglotError):
    """A file that a report needs is missing or damaged, or holds nothing of what was asked for."""
