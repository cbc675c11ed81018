"""Removes from wikitext all that is no running text: comments, references, templates, tables.

Every step is one pass over the marks of its kind, so a page costs time in proportion to its length
whatever it holds. What is never closed removes nothing but its mark.
"""

from __future__ import annotations

import re

GAP = "\x00"
"""Put where a mark behind a link was removed, so that the word behind it does not join the link.

Text from XML never has this character."""
_TAG = re.compile(
    r"<!--|<(nowiki|ref|references|math|chem|ce|gallery|timeline|syntaxhighlight|source|score"
    r"|imagemap|hiero|mapframe|maplink|graph|templatedata|templatestyles|inputbox|indicator|pre"
    r"|table|style|includeonly|categorytree|section)\b([^<>]*)>",
    re.IGNORECASE,
)
_BRACES = re.compile(r"\{[{|]|\}\}|\|\}(?!\})")
_BRACKETS = re.compile(r"\[\[|\]\]")
_LITERAL = str.maketrans({mark: f"&#{ord(mark)};" for mark in "[]{}|'<>=*#:;_"})

_SEPARATORS = " ,;:/،؛、，；：–-\u200e"
_SET_OFF = re.compile(rf"(?:[{re.escape(_SEPARATORS)}]|''+)+")
_OPENING, _CLOSING = ("(", "（", "["), (")", "）", "]")
_PUNCTUATION = (",", ".", ";", ":", "،", "؛", "。", "、", "，", "；")


def strip_tags(text: str) -> str:
    """Without comments and without the tags whose content is no text; nowiki's becomes literal."""
    kept: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while (tag := _TAG.search(text, at)) is not None:
        kept.append(text[at : tag.start()])
        name = (tag.group(1) or "").lower()
        if not name:
            end = text.find("-->", tag.end())
            at = len(text) if end < 0 else end + 3
            continue
        if kept[-1].endswith("]]"):
            kept.append(GAP)
        at = tag.end()
        if tag.group(2).endswith("/") or name in unclosed:
            continue
        closing = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, at)
        if closing is None:
            unclosed.add(name)
            continue
        if name == "nowiki":
            kept.append(text[at : closing.start()].translate(_LITERAL))
        at = closing.end()
    kept.append(text[at:])
    return "".join(kept)


def strip_braces(text: str) -> str:
    """Without templates and tables, however nested; the punctuation round them is tidied."""
    removed: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []
    for mark in _BRACES.finditer(text):
        braces, at = mark.group(), mark.start()
        if "|" in braces and not _begins_line(text, at):
            continue
        if braces[0] == "{":
            opened.append((braces, at))
            continue
        partner = "{{" if braces == "}}" else "{|"
        depth = len(opened) - 1
        while depth >= 0 and opened[depth][0] != partner:
            depth -= 1
        if depth < 0:
            continue
        start = opened[depth][1]
        del opened[depth:]
        while removed and removed[-1][0] >= start:
            removed.pop()
        removed.append((start, mark.end()))
    return _tidied(_without(text, removed)) if removed else text


def _begins_line(text: str, at: int) -> bool:
    """Is there nothing but indentation before this place of its line?"""
    return not text[text.rfind("\n", 0, at) + 1 : at].strip(" \t:*#")


def _tidied(pieces: list[str]) -> str:
    """Joins what stood between templates; brackets and separators that set one off go with it."""
    joined = pieces[:1]
    for piece in pieces[1:]:
        joined[-1], following = _meet(joined[-1], piece)
        if following.strip(_SEPARATORS):
            joined.append(following)
        else:
            joined[-1] += following
    return "".join(joined)


def _meet(before: str, after: str) -> tuple[str, str]:
    """What stood before and behind a template, as they read without it."""
    opened = before.rstrip(" '")
    if opened.endswith(_OPENING):
        after = after[match.end() :] if (match := _SET_OFF.match(after)) else after
        closed = after.lstrip(" '")
        return (opened[:-1].rstrip(" "), closed[1:]) if closed[:1] in _CLOSING else (before, after)
    follows = after.lstrip(" ")
    if follows.lstrip(_SEPARATORS)[:1] in _CLOSING[:2]:
        return before.rstrip(_SEPARATORS), follows.lstrip(_SEPARATORS)
    if follows[:1] in _PUNCTUATION:
        return before.rstrip(_SEPARATORS), follows
    return before, GAP + after if before.endswith("]]") else after


def strip_files(text: str, is_file: re.Pattern[str]) -> tuple[str, int]:
    """Without the links that show a file, captions and links in them included; and their number."""
    removed: list[tuple[int, int]] = []
    at = 0
    while (link := is_file.search(text, at)) is not None:
        at, depth = link.end(), 1
        while depth and (bracket := _BRACKETS.search(text, at)) is not None:
            depth += 1 if bracket.group() == "[[" else -1
            at = bracket.end()
        if depth:  # never closed: its line goes
            at = text.find("\n", link.end())
            at = len(text) if at < 0 else at
        removed.append((link.start(), at))
    return "".join(_without(text, removed)), len(removed)


def _without(text: str, removed: list[tuple[int, int]]) -> list[str]:
    """What is left round some stretches of a text, which are in order and apart."""
    kept, at = [], 0
    for start, end in removed:
        kept.append(text[at:start])
        at = end
    kept.append(text[at:])
    return kept
