"""Wikitext to text and links: each mark on its own, then all of them mixed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.corpus.knowledge.markup.sentences import SentenceSplitter
from isoglot.corpus.knowledge.markup.text import LinkedText, MarkupCleaner
from isoglot.corpus.knowledge.mediawiki import Site
from isoglot.corpus.knowledge.wikipedia import _redirect, is_disambiguation

SPACES = {"file": 6, "datei": 6, "category": 14, "user": 2, "wikipedia": 4, "portal": 100}


def cleaner(language: str = "en") -> MarkupCleaner:
    return MarkupCleaner(Site(language=language, name=f"{language}wiki", namespaces=SPACES))


def links(linked: LinkedText) -> list[tuple[str, str]]:
    return [(linked.text[link.start : link.end], link.target) for link in linked.links]


@pytest.mark.parametrize(
    ("markup", "text", "expected"),
    [
        ("a [[cat]] b", "a cat b", [("cat", "Cat")]),
        ("[[Felis catus|the cat]].", "the cat.", [("the cat", "Felis catus")]),
        ("two [[cat]]s and [[dog|hound]]s", "two cats and hounds",
         [("cats", "Cat"), ("hounds", "Dog")]),
        ("''[[GQ]]''s prize", "GQs prize", [("GQ", "GQ")]),
        ("[[Weimar]]<ref>x</ref>the", "Weimarthe", [("Weimar", "Weimar")]),
        ("[[cat]]<!-- x -->s", "cats", [("cats", "Cat")]),
        ("in [[Paris (Texas)|]] and [[Paris, Texas|]]", "in Paris and Paris",
         [("Paris", "Paris (Texas)"), ("Paris", "Paris, Texas")]),
        ("[[foo_bar|''x'' &amp; y]]", "x & y", [("x & y", "Foo bar")]),
        ("[[foo| bar ]]baz", "bar baz", [("bar baz", "Foo")]),
        ("a[[foo| bar]] c", "a bar c", [("bar", "Foo")]),
        ("[[#History|below]], [[Foo#Bar|there]]", "below, there", []),
        ("[[:Category:Cats|cats]] [[Category:Cats]]", "cats ", []),
        ("[[de:Katze]][[:de:Katze|Katze]]", "Katze", []),
        ("[[wikt:cat|cat]] [[User:X|X]]", "cat X", []),
        ("[[Alien: Covenant]]", "Alien: Covenant", [("Alien: Covenant", "Alien: Covenant")]),
        ("[[Datei:a.jpg|thumb|A [[cat]] and [[dog]].]] Text", "Text", []),
        ("[[Image:a.jpg|thumb|never closed\nText", "\nText", []),
        ("{{Infobox|a={{b|[[c]]}}|d=}}'''Cat''' is", "Cat is", []),
        ("{|\n| [[a]]\n{|\n|b\n|}\n|}\nText", "\nText", []),
        ("x {{open [[a]] text", "x {{open a text", [("a", "A")]),
        ("a<ref name=x/> b<ref>{{cite|[[c]]}}</ref> d", "a b d", []),
        ("a <ref>never closed [[b]]", "a never closed b", [("b", "B")]),
        ("x<math>a_{b}</math>y<gallery>\nFile:a|[[b]]\n</gallery>z", "xyz", []),
        ("<nowiki>[[a]] ''b''</nowiki> [[c]]", "[[a]] ''b'' c", [("c", "C")]),
        ("'''''a''''' ''b'' '''c''' d'e ''''f''''", "a b c d'e 'f'", []),
        ("L'''Iliade'' de", "L'Iliade de", []),
        ("'''accessibility''' (''a'' b)", "accessibility (a b)", []),
        ("* one\n** [[two]]\n# three\n; four", "one\ntwo\nthree\nfour", [("two", "Two")]),
        ("a<br />b &nbsp; c&ndash;d __NOTOC__", "a b c–d ", []),
        ("see [http://x.org the site] now", "see the site now", []),
        ("Cat ({{lang-la}}, ''{{x}}''; born 1900) is", "Cat (born 1900) is", []),
        ("B ([[A]]: {{x}}; in ''C'', {{y}}, {{z}} {{w}}) is", "B (A; in C) is", [("A", "A")]),
        ("{{nihongo|{{nowrap|R ½}}|x {{sfrac|1|2}}}} is{{transl}}{{transl|a=b}}", "R ½ is", []),
        ("a {{x}} {{y}} b{{z}} {{w}}c", "a b c", []),
        ("Cat ({{x}}) is", "Cat is", []),
        ("Cat (born 1900; {{x}}) is {{y}}, was", "Cat (born 1900) is, was", []),
        ("{{nowrap|[[a|b]] c}} {{convert|3|km|mi}} {{lang|fr|mot}}{{mdash}}x", "b c 3 km mot—x",
         [("b", "A")]),
        ("[[a [[b]] c", "[[a b c", [("b", "B")]),
        ("[[Kyrios|lord ['x']]]", "lord ['x']", [("lord ['x']", "Kyrios")]),
        ("[[|x]] [[a| ]]", "x ", []),
    ],
)  # fmt: skip
def test_each_mark(markup, text, expected):
    cleaned = cleaner().clean(markup)
    assert (cleaned.lead.text, links(cleaned.lead)) == (text, expected)
    assert markup.count("[[") == len(expected) + cleaned.dropped.total()


def test_reasons_are_counted():
    markup = (
        "[[a]] [[b#c|d]] [[Category:x]] [[fr:y]] [[wikt:z]] [[User:u]] [[File:f|[[g]]]] {{t|[[h]]}}"
        "[[i| ]] [[never"
    )
    cleaned = cleaner().clean(markup)
    assert links(cleaned.lead) == [("a", "A")]
    assert cleaned.dropped == {
        "section": 1, "category": 1, "interlanguage": 1, "other project": 1, "namespace": 1,
        "file": 1, "not in text": 2, "empty anchor": 1, "malformed": 1,
    }  # fmt: skip


def test_the_lead_ends_at_the_first_heading_and_hatnotes_are_no_lead():
    cleaned = cleaner().clean(
        ":''See also [[x]].''\n'''Cat''' is.\n\n== [[H]] ==\n[[b]]\n=== c ===\nd"
    )
    assert cleaned.lead.text.strip() == "Cat is."
    assert cleaned.body.text.split() == ["b", "d"]
    assert cleaned.dropped == {"not in text": 2}


@pytest.mark.parametrize(
    ("language", "markup", "anchor"),
    [
        ("de", "[[Katze]]n", "Katzen"),
        ("ru", "[[кот]]ами", "котами"),
        ("hi", "[[जर्मनी]]का", "जर्मनीका"),
        ("zh", "[[柏林]]是", "柏林"),
        ("ja", "[[猫]]は", "猫"),
        ("ko", "[[서울]]은", "서울"),
        ("zh", "[[a|-{zh-hans:联邦州; zh-hant:邦}-]]", "联邦州"),
    ],
)
def test_trails_differ_by_language(language, markup, anchor):
    ((found, _),) = links(cleaner(language).clean(markup).lead)
    assert found == anchor


MARKS = """[[ ]] {{ }} {| |} | '' ''' <ref> </ref> <!-- --> a B. &amp; <br> # : File: == ( ) é
<nowiki> </nowiki> -{ }- [http://x ] Category:""".split()


@given(st.lists(st.sampled_from([*MARKS, " ", "\n"]), max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_markup_gives_clean_spans_and_counts_that_add_up(marks):
    markup = "".join(marks)
    cleaned = cleaner().clean(markup)
    kept = 0
    for linked in (cleaned.lead, cleaned.body):
        assert "\x00" not in linked.text
        sentences = list(SentenceSplitter("en").split(linked))
        found = [(s.text, start, end, target) for s in sentences for start, end, target in s.links]
        for (text, start, end, target), expected in zip(found, links(linked), strict=True):
            assert not text or (text[start:end], target) == expected
        kept += len(linked.links)
        assert all(anchor and anchor == anchor.strip() for anchor, _ in links(linked))
    assert markup.count("[[") == kept + cleaned.dropped.total()
    assert min(cleaned.dropped.values(), default=0) >= 0


@pytest.mark.parametrize(
    "mark", ["<ref>", "{{", "[[", "[[File:a|", "{|\n", "<!-", "'''", "-{", "(", "[[a|[b"]
)
def test_time_is_in_proportion_to_length(mark):
    """An unclosed mark must not be searched for again and again: that would be quadratic."""

    def seconds(repeats: int) -> float:
        began = time.process_time()
        cleaner().clean(mark * repeats)
        return time.process_time() - began

    short, long = (min(seconds(repeats) for _ in range(3)) for repeats in (4000, 32_000))
    assert long < 3 * 8 * max(short, 0.0005), "8 times the length takes 8 times the time, not 64"


LONG = {
    "unclosed files": "[[File:a\n",
    "nested files": "[[File:a|[[",
    "tables closed as templates": "\n{|}}",
    "table marks in one line": "a{|",
    "templates in a row": "{{a}} ",
    "templates and slashes": "{{a}}/",
    "elisions in one line": "l'''a'' ",
    "arguments": "|a",
    "spaces": " ",
    "url": "a",
    "urls": "[//a",
}
START = {"arguments": "{{small|", "spaces": "{{", "url": "[//"}
END = {"arguments": "}}"}


@pytest.mark.parametrize("name", LONG)
def test_time_is_linear_in_the_length_of_any_page(name):
    """Four times the length takes about four times as long, not sixteen."""
    clean = cleaner("en").clean

    def seconds(size: int) -> float:
        text = START.get(name, "") + LONG[name] * (size // len(LONG[name])) + END.get(name, "")
        begin = time.process_time()
        cleaned = clean(text)
        is_disambiguation("A", text, frozenset())
        _redirect("#a" + text)
        list(SentenceSplitter("en").split(cleaned.lead))
        return time.process_time() - begin

    short = min(seconds(20_000) for _ in range(2))
    assert seconds(80_000) < 10 * max(short, 0.005)


def test_files_are_removed_with_their_captions_whatever_they_hold():
    markup = (
        "a [[File:x.png|thumb|of [[b|c]] and [[d]]]] e [[Image:y]] f [[File:open [[g]]\nh [[[i]]]"
    )
    cleaned = cleaner("en").clean(markup).lead
    assert cleaned.text.split() == ["a", "e", "f", "h", "[i]"]
    assert links(cleaned) == [("i", "I")]


def test_templates_and_tables_close_their_own_kind_only():
    markup = "a {{b {{c}} d\n{| e\n}} f\n|}\ng {{h}} i }} j"
    assert cleaner("en").clean(markup).lead.text.split() == ["a", "f", "g", "i", "}}", "j"]
