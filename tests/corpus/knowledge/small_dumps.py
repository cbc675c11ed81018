"""Two small Wikipedias and a Wikidata, written by hand as dumps are."""

from __future__ import annotations

import bz2
import json
from pathlib import Path
from xml.sax.saxutils import escape

_SITE = """<siteinfo><sitename>Wikipedia</sitename><dbname>{language}wiki</dbname>
<case>first-letter</case><namespaces><namespace key="0" case="first-letter" />
<namespace key="14" case="first-letter">{category}</namespace></namespaces></siteinfo>"""

ENGLISH = {
    "Paris": "'''Paris''' is the capital of [[France]]. The [[Seine|river Seine]] runs by. "
    "[[Paris|It]] has [[Bridge|bridges]].\n\n== History ==\nIt was founded by the [[Parisii]].",
    "France": "'''France''' is a country in [[Europe]]. Its capital is [[Lutetia|Paris]].",
    "Seine": "The '''Seine''' is a river in [[France]]. It runs through [[paris]]s.",
    "Lutetia": "#REDIRECT [[Old Paris]]",
    "Old Paris": "#REDIRECT [[Paris]]",
    "Ring": "#REDIRECT [[Round]]",
    "Round": "#REDIRECT [[Ring]]",
    "Europe": "'''Europe''' is a continent. See [[Mercury]] and [[Ring]] and [[Nowhere|no page]].",
    "Mercury": "'''Mercury''' may be:\n* [[Mercury (planet)]]\n{{disambiguation}}",
    "Bridge": "A '''bridge''' is built over [[Seine|water]].",
}
GERMAN = {
    "Paris": "'''Paris''' ist die Hauptstadt von [[Frankreich]] und liegt an der [[Seine]].",
    "Frankreich": "'''Frankreich''' ist ein Land in [[Europa]]. Die Hauptstadt ist [[Paris]].",
    "Europa": "'''Europa''' ist ein Erdteil. [[Frankreich]] liegt in Europa.",
}
ITEMS = {
    90: ({"en": "Paris", "de": "Paris"}, [("P17", 142), ("P31", 515)]),
    142: ({"en": "France", "de": "Frankreich"}, [("P36", 90), ("P30", 46), ("P30", 46)]),
    46: ({"en": "Europe", "de": "Europa"}, []),
    1471: ({"en": "Seine"}, [("P17", 142)]),
    308: ({"en": "Mercury"}, [("P31", 4167410)]),
}


def write_dumps(folder: Path) -> Path:
    """The dumps, and the file that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    for language, category, pages in (("en", "Category", ENGLISH), ("de", "Kategorie", GERMAN)):
        parts = [_page(number, *page) for number, page in enumerate(pages.items(), start=1)]
        site = _SITE.format(language=language, category=category)
        xml = f'<mediawiki xml:lang="{language}">{site}\n' + "\n".join(parts) + "\n</mediawiki>\n"
        (folder / f"{language}wiki.xml.bz2").write_bytes(bz2.compress(xml.encode()))
    lines = [json.dumps(_item(number, *item)) for number, item in ITEMS.items()]
    lines.append(
        json.dumps({"type": "property", "id": "P36", "labels": _labels({"en": "capital"})})
    )
    (folder / "wikidata.json.bz2").write_bytes(
        bz2.compress(("[\n" + ",\n".join(lines) + "\n]\n").encode())
    )
    named = (
        "wikipedia: {en: [enwiki.xml.bz2], de: [dewiki.xml.bz2]}\nwikidata: [wikidata.json.bz2]\n"
    )
    (folder / "dumps.yaml").write_text(named)
    return folder / "dumps.yaml"


def _page(number: int, title: str, text: str) -> str:
    target = text.partition("[[")[2].partition("]]")[0]
    redirect = f'<redirect title="{escape(target)}" />' if text.startswith("#REDIRECT") else ""
    return (
        f"<page><title>{escape(title)}</title><ns>0</ns><id>{number}</id>{redirect}<revision>"
        f"<id>{number + 100}</id><model>wikitext</model><format>text/x-wiki</format>"
        f'<text xml:space="preserve">{escape(text)}</text></revision></page>'
    )


def _item(number: int, titles: dict[str, str], claims: list[tuple[str, int]]) -> dict[str, object]:
    statements: dict[str, list[object]] = {}
    for relation, value in claims:
        number_ = {"entity-type": "item", "numeric-id": value, "id": f"Q{value}"}
        snak = {
            "snaktype": "value",
            "property": relation,
            "datatype": "wikibase-item",
            "datavalue": {"value": number_, "type": "wikibase-entityid"},
        }
        statement = {"mainsnak": snak, "type": "statement", "rank": "normal"}
        statements.setdefault(relation, []).append(statement)
    sites = {f"{code}wiki": {"site": f"{code}wiki", "title": t} for code, t in titles.items()}
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": _labels(titles),
        "aliases": {},
        "claims": statements,
        "sitelinks": sites,
    }


def _labels(texts: dict[str, str]) -> dict[str, dict[str, str]]:
    return {code: {"language": code, "value": text} for code, text in texts.items()}
