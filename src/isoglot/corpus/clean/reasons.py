"""Every reason for which a line is dropped, in a sentence."""

from __future__ import annotations

REASONS: dict[str, str] = {
    # readers
    "blank": "The line is blank; in format `lines` it ends a document.",
    "header": "The line names the columns.",
    "endless": "The line is longer than 64 MiB.",
    "columns": "The line has another number of columns.",
    "not JSON": "The line is no JSON object.",
    "no field": "The object or row has no text in the field or column that is read.",
    "no text": "The sentence has no comment with its text.",
    "unmatched": "The id, or the text in one of the two languages, has no counterpart.",
    "repeated": "The id was there before.",
    "untranslated": "The unit has no target.",
    "other languages": "The unit is in other languages than the pair's.",
    "unaligned": "The paragraph has no counterpart in the other document.",
    # cleaning
    "encoding": "The text is not UTF-8, or holds U+FFFD, the sign of a wrong decoding before.",
    "empty": "Nothing is left of the text, or of one side of the pair.",
    "too short": "A text is shorter than `clean.min_characters`.",
    "too long": "A text is longer than `clean.max_characters`.",
    "few letters": "A text is mostly digits and punctuation (`clean.min_letters`).",
    "script": "Most letters are of another script than the language's (`clean.min_script`).",
    "language": "The text is identified as another language (`clean.language_confidence`).",
    "identical": "Both sides of the pair are the same.",
    "near-empty": "One side of the pair has next to nothing (`clean.near_empty`).",
    "length ratio": "One side of the pair is much longer than the other (`clean.max_ratio`).",
}
"""Reason -> what it means: the reasons of readers and of cleaning."""
