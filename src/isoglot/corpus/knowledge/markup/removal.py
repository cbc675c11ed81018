"""Removes from wikitext what is no running text: comments, references, templates, tables, files.

Each step is one pass over the marks of its kind, so the time is linear in the length of any page. A
mark without its closing mark removes only itself.

A few templates are replaced by their arguments (`{{nowrap|...}}`, `{{lang|fr|...}}`, measures): a
sentence would lose a word or a number. Expanding templates in general needs their definitions,
which article dumps lack.
"""

from __future__ import annotations

import re
from collections import Counter

GAP = "\x00"
"""Replaces a removed mark behind a link, so that the next word is not taken for the link's trail.

XML text never contains this character."""
_TAG = re.compile(
    r"<!--|<(nowiki|ref|references|math|chem|ce|gallery|timeline|syntaxhighlight|source|score"
    r"|imagemap|hiero|mapframe|maplink|graph|templatedata|templatestyles|inputbox|indicator|pre"
    r"|table|style|includeonly|categorytree|section)\b([^<>]*)>",
    re.IGNORECASE,
)
_BRACES = re.compile(r"\{[{|]|\}\}|\|\}(?!\})")
_BRACKETS = re.compile(r"\[\[(?!\[)|\]\]")
_LITERAL = str.maketrans({mark: f"&#{ord(mark)};" for mark in "[]{}|'<>=*#:;_"})

_SEPARATORS = " ,;:/،؛、，；：–-\u200e"
_SET_OFF = re.compile(rf"(?:[{re.escape(_SEPARATORS)}]|''+)+")
_OPENING, _CLOSING = ("(", "（", "["), (")", "）", "]")
_PUNCTUATION = (",", ".", ";", ":", "،", "؛", "。", "、", "，", "；")


def strip_tags(text: str) -> str:
    """Removes comments and the tags whose content is no text; nowiki content becomes literal."""
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
    """Removes templates and tables, nested ones too, and the punctuation that sets them off."""
    removed: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []
    number: Counter[str] = Counter()
    for mark in _BRACES.finditer(text):
        braces, at = mark.group(), mark.start()
        if "|" in braces and not _begins_line(text, at):
            continue
        if braces[0] == "{":
            opened.append((braces, at))
            number[braces] += 1
            continue
        partner = "{{" if braces == "}}" else "{|"
        if not number[partner]:
            continue
        while (last := opened.pop())[0] != partner:
            number[last[0]] -= 1
        number[partner] -= 1
        start = last[1]
        while removed and removed[-1][0] >= start:
            removed.pop()
        removed.append((start, mark.end()))
    return _tidied(_without(text, removed)) if removed else text


_MAX_MEETING_CHARS = 200
"""Characters before a removed template that are looked at."""


def _begins_line(text: str, at: int) -> bool:
    """Does the mark of a table at this place begin a line, indents and list marks aside?"""
    while at and text[at - 1] in " \t:*#":
        at -= 1
    return not at or text[at - 1] == "\n"


def _tidied(pieces: list[str]) -> str:
    """Joins the text around removed templates, without brackets and separators around them."""
    joined = pieces[:1]
    for piece in pieces[1:]:
        if len(joined[-1]) > 5 * _MAX_MEETING_CHARS:  # only its end is looked at, and copied
            joined[-1:] = joined[-1][:-_MAX_MEETING_CHARS], joined[-1][-_MAX_MEETING_CHARS:]
        joined[-1], following = _meet(joined[-1], piece)
        if following.strip(_SEPARATORS):
            joined.append(following)
        else:
            joined[-1] += following
    return "".join(joined)


def _meet(before: str, after: str) -> tuple[str, str]:
    """The text before and behind a removed template, punctuation adjusted."""
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
    """Removes links that show a file, with their captions; gives the text and their number."""
    starts = [link.span() for link in is_file.finditer(text)]
    if not starts:
        return text, 0
    ends = _closing_brackets(text)
    removed: list[tuple[int, int]] = []
    at = 0
    for start, behind in starts:
        if start < at:
            continue
        at = ends.get(start, -1)
        if at < 0:  # never closed: its line goes
            at = text.find("\n", behind)
            at = len(text) if at < 0 else at
        removed.append((start, at))
    return "".join(_without(text, removed)), len(removed)


def _closing_brackets(text: str) -> dict[int, int]:
    """The place of `[[` -> the place behind its `]]`, for those that are closed."""
    opened: list[int] = []
    ends: dict[int, int] = {}
    for bracket in _BRACKETS.finditer(text):
        if bracket.group() == "[[":
            opened.append(bracket.start())
        elif opened:
            ends[opened.pop()] = bracket.end()
    return ends


def _without(text: str, removed: list[tuple[int, int]]) -> list[str]:
    """The text around removed spans, which are sorted and disjoint."""
    kept, at = [], 0
    for start, end in removed:
        kept.append(text[at:start])
        at = end
    kept.append(text[at:])
    return kept


_TEMPLATES: dict[str, tuple[int, ...]] = {
    "small big abbr formatnum num nombre nihongo": (0,),
    "ill 仮リンク interlanguage_link link-interwiki": (0,),
    "lang langue lang_i native_name": (1,),
    "transl": (-1,),
    "nowrap nobr nobreak convert cvt unité unite unidad m": (0, 1),
    "date date- date_de_naissance date_de_décès": (0, 1, 2),
}
"""Template names (lower case, underscores) -> which of their unnamed arguments are shown."""
_ARGUMENTS = {name: places for names, places in _TEMPLATES.items() for name in names.split()}
_SYMBOLS = {
    "mdash": "—",
    "ndash": "–",
    "'": "'",
    "nbsp": " ",
    "·": " · ",
    "•": " • ",
    **dict.fromkeys(("snd", "spaced_ndash", "spnd", "dash"), " – "),
}
"""Template -> the character it shows."""
_RANGES = ("to", "and", "-", "–", "x", "by", "or", "à", "et")
_NAMES = sorted(_ARGUMENTS, key=len, reverse=True)
_REPLACED = re.compile(
    rf"\{{\{{\s*({'|'.join(re.escape(name).replace('_', '[ _]') for name in _NAMES)}|lang-[a-z-]+)"
    r"\s*\|([^{}]*(?:\{\{[^{}]*\}\}[^{}]*)*)\}\}",
    re.IGNORECASE,
)
_SYMBOL = re.compile(
    rf"\{{\{{\s*({'|'.join(re.escape(name).replace('_', '[ _]') for name in _SYMBOLS)})\s*\}}\}}",
    re.IGNORECASE,
)
_MAX_DEPTH = 3
"""Maximum nesting of replaced templates."""
_MAX_ARGUMENT_CHARS = 10_000
"""Arguments of a longer template are no word or number of a sentence; it is removed."""
_BAR = re.compile(r"\|(?![^\[\]]*\]\])(?![^{}]*\}\})")
"""A bar between arguments, not one inside a link or another template."""


def replace_templates(text: str) -> str:
    """Replaces these templates by the arguments they show."""
    text = _SYMBOL.sub(lambda match: _SYMBOLS.get(_key(match.group(1)), ""), text)
    for _ in range(_MAX_DEPTH):
        text, number = _REPLACED.subn(_replacement, text)
        if not number:
            break
    return text


def _replacement(match: re.Match[str]) -> str:
    name = _key(match.group(1))
    if len(match.group(2)) > _MAX_ARGUMENT_CHARS:
        return ""
    unnamed = [x.strip() for x in _BAR.split(match.group(2)) if "=" not in x or "[[" in x]
    chosen = _ARGUMENTS.get(name, (0,))
    if chosen == (0, 1) and len(unnamed) > 3 and unnamed[1] in _RANGES:
        chosen = (0, 1, 2, 3)
    there = [index for index in chosen if index < len(unnamed)] if unnamed else []
    return " ".join(unnamed[index] for index in there if unnamed[index])


def _key(name: str) -> str:
    return name.lower().replace(" ", "_")
