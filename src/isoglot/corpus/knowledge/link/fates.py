"""What can become of a link, a page or a claim on its way into the store, in users' words.

Each has exactly one fate, so that for every language kept and dropped add up to what was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = "kept"

RED_LINK = "red link"
"""The target is no page, and no sitelink names it."""
DISAMBIGUATION = "disambiguation page"
"""The target (the page) lists meanings of a name; the wiki or Wikidata says so."""
NO_SITELINK = "no sitelink"
"""The page is no item's."""
LOOP = "redirect loop"
"""Redirects lead in a circle, or further than the settings follow them."""
SELF_LINK = "self link"
"""The target is the entity of the page that the link stands on."""
NO_DESCRIPTION = "no description"
"""The entity is described in none of the wanted languages."""
NO_TOKENS = "no tokens"
"""The tokenizer leaves nothing of the anchor text (of the lead)."""
TOO_LONG = "too long"
"""The anchor text has more tokens than the settings allow."""
SPECIAL = "special token"
"""The text spells a special token and the tokenizer takes it for one."""
SHARED = "shared token"
"""The anchor text shares a token with the mention before it."""
REPEATED = "repeated"
"""The same is there already: the page is in two dumps, the claim in two statements."""

REDIRECT = "redirect"
"""A page that is no description, but a pointer to one."""
NO_LEAD = "no lead"
"""The page has no text before its first section."""

NO_SUBJECT = "subject without description"
NO_OBJECT = "object without description"
SELF_CLAIM = "subject is object"
RARE = "rare relation"
"""The relation has fewer triples than the settings ask for."""


def told(reasons: Mapping[str, int]) -> dict[str, int]:
    """Reasons in the order of the alphabet, without those that nothing was dropped for."""
    return {reason: number for reason, number in sorted(reasons.items()) if number}
