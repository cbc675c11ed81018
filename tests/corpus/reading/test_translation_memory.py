from __future__ import annotations

import gzip

import pytest

from isoglot.corpus.reading.reader import Record, Skipped
from isoglot.corpus.reading.translation_memory import (
    TmxReader,
    XliffReader,
    read_elements,
    same_language,
)
from isoglot.errors import CorpusError

TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd" [<!ENTITY own SYSTEM "file:///etc/hostname">]>
<tmx version="1.4"><header srclang="en"/><body>
<tu tuid="1"><!-- a note --><prop>x</prop>
 <tuv xml:lang="EN-US"><seg>A <bpt i="1">&lt;b></bpt><hi>bold</hi><ept i="1">&lt;/b></ept> word
  &amp; more&nbsp;&own;</seg></tuv>
 <tuv xml:lang="de-DE"><seg>Ein <ph>{{0}}</ph>fettes Wort</seg></tuv>
 <tuv xml:lang="fr"><seg>Un mot</seg></tuv></tu>
<tu><tuv lang="en"><seg>Café</seg></tuv><tuv lang="fr"><seg>Café noir</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg/></tuv><tuv xml:lang="de"><seg>leer</seg></tuv></tu>
</body></tmx>
"""

XLIFF_1 = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en-US" target-language="de"><body><group>
<trans-unit id="1"><source>Open <g id="1">the</g> <x id="2"/>file</source>
 <target>Die Datei <ph id="3">%s</ph>öffnen</target>
 <alt-trans><source>Open</source><target>Auf</target></alt-trans></trans-unit>
<trans-unit id="2"><source>Close</source></trans-unit>
<trans-unit id="3"><source>Save</source><target/></trans-unit>
</group></body></file>
<file source-language="fr" target-language="de"><body>
<trans-unit id="4"><source>Chat</source><target>Katze</target></trans-unit></body></file></xliff>
"""

XLIFF_2 = """<xliff version="2.0" srcLang="en" trgLang="de"
 xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f"><unit id="u">
<segment><source>One <pc id="1">bold</pc><ph id="2"/>.</source><target>Ein <mrk id="m">Fettes</mrk>.
</target></segment><ignorable><source> </source></ignorable>
<segment><source>Two.</source></segment></unit></file></xliff>
"""


def spaced(found):
    return [
        Record(tuple(" ".join(text.split()) for text in item.texts))
        if isinstance(item, Record)
        else item
        for item in found
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_a_translation_memory_gives_the_pair_asked_for(tmp_path, encoding):
    path = tmp_path / "memory.tmx.gz"
    path.write_bytes(gzip.compress(TMX.format(encoding=encoding).encode(encoding)))
    german = list(TmxReader(languages=("en", "de")).read([path]))
    assert spaced(german) == [
        Record(("A bold word & more &own;", "Ein fettes Wort")),
        Skipped("unmatched"),
        Record(("", "leer")),
    ]
    assert [item.line for item in german] == [4, 9, 10]
    french = list(TmxReader(languages=("fra", "eng")).read([path]))
    assert spaced(french)[1] == Record(("Café noir", "Café"))
    british = TmxReader(languages=("en", "de"), first="en-GB").read([path])
    assert list(british) == [Skipped("unmatched")] * 3


def test_bad_bytes_spoil_one_unit(tmp_path):
    path = tmp_path / "memory.tmx"
    data = TMX.format(encoding="utf-8").encode()
    path.write_bytes(data.replace(b"Ein <ph>", b"Ein \xff\x00<ph>").replace(b"leer", b"l&#x1F;eer"))
    assert list(TmxReader(languages=("en", "de")).read([path])) == [
        Skipped("encoding"),
        Skipped("unmatched"),
        Record(("", "l\x1feer")),
    ]


def test_xliff_1_and_2(tmp_path):
    one, two = tmp_path / "one.xlf", tmp_path / "two.xlf"
    one.write_text(XLIFF_1, "utf-8")
    two.write_text(XLIFF_2, "utf-8")
    assert spaced(XliffReader(languages=("en", "de")).read([one, two])) == [
        Record(("Open the file", "Die Datei öffnen")),
        Skipped("untranslated"),
        Skipped("untranslated"),
        Skipped("other languages"),
        Record(("One bold.", "Ein Fettes.")),
        Skipped("untranslated"),
    ]
    turned = spaced(XliffReader(languages=("de", "en")).read([one]))
    assert turned[0] == Record(("Die Datei öffnen", "Open the file"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<xliff/>", r"x\.tmx: is not TMX: its root element is <xliff>, not <tmx>"),
        ("words", r"x\.tmx, line 1: the XML is damaged"),
        (
            "<tmx>\n<tu>\n<tuv></tu></tmx>",
            r"x\.tmx, line 3: the XML is damaged \(Opening and ending",
        ),
        ("<tmx>\n<tu></tu>\n<tu>", r"x\.tmx, line 3: .*it may be cut short\)"),
        ("<tmx>\nAT&T\n</tmx>", r"x\.tmx, line 2: the XML is damaged"),
        (
            '<?xml version="1.0" encoding="klingon"?><tmx/>',
            r"the encoding 'klingon', which is unknown or not an encoding",
        ),
    ],
)
def test_what_is_no_tmx_is_refused_with_the_line(tmp_path, content, message):
    (tmp_path / "x.tmx").write_text(content)
    with pytest.raises(CorpusError, match=message):
        list(TmxReader(languages=("en", "de")).read([tmp_path / "x.tmx"]))


def test_entities_that_grow_without_end_are_refused(tmp_path):
    bomb = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
    unit = '<tu><tuv xml:lang="en"><seg>&e12;</seg></tuv><tuv xml:lang="de"><seg>x</seg></tuv></tu>'
    (tmp_path / "x.tmx").write_text(f'<!DOCTYPE t [<!ENTITY e0 "lol">{bomb}]><tmx>{unit}</tmx>')
    with pytest.raises(CorpusError, match=r"line 1: the XML is damaged \(Maximum entity"):
        list(TmxReader(languages=("en", "de")).read([tmp_path / "x.tmx"]))


def test_nothing_that_was_read_is_kept(tmp_path):
    unit = "<group><note>x</note><trans-unit><source>words</source></trans-unit></group>\n"
    (tmp_path / "x.xlf").write_text(f"<xliff><file><body>{unit * 30_000}</body></file></xliff>")
    count = 0
    for element in read_elements(tmp_path / "x.xlf", "xliff", ["trans-unit"]):
        count += 1
        # the last one that was read is still there, emptied
        assert len(list(element.getparent().itersiblings(preceding=True))) <= 1
    assert count == 30_000


@pytest.mark.parametrize(
    ("tag", "language", "same"),
    [
        ("en-US", "en", True),
        ("EN", "eng", True),
        ("zh-Hant-TW", "zh_Hant", True),
        ("zh-Hans", "zh_Hant", False),
        ("en", "en_GB", False),
        ("", "en", False),
    ],
)
def test_language_tags(tag, language, same):
    assert same_language(tag, language) is same


PLAIN_TMX = (
    "<tmx><body><tu><tuv xml:lang='en'><seg>caf\u00e9</seg></tuv>"
    "<tuv xml:lang='fr'><seg>le caf\u00e9</seg></tuv></tu></body></tmx>"
)


def texts_of(path):
    found = TmxReader(languages=("en", "fr")).read([path])
    return [one.texts for one in found if isinstance(one, Record)]


@pytest.mark.parametrize(
    "encoding",
    ["zlib", "base64", "rot13", "rot_13", "hex", "bz2", "quopri", "uu", "idna", "punycode",
     "unicode_escape", "raw_unicode_escape", "undefined", "utf-7", "klingon"],
)  # fmt: skip
def test_what_is_no_encoding_of_text_is_refused(tmp_path, encoding):
    content = f'<?xml version="1.0" encoding="{encoding}"?>{PLAIN_TMX}'
    (tmp_path / "x.tmx").write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"x\.tmx: declares the encoding .*Convert it to UTF-8"):
        texts_of(tmp_path / "x.tmx")


@pytest.mark.parametrize("declared", ["", "utf-8", "UTF-16", "utf-32", "ISO-10646-UCS-2"])
@pytest.mark.parametrize(
    "written",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"],
)
def test_a_file_is_read_in_the_encoding_that_its_bytes_show(tmp_path, declared, written):
    said = f' encoding="{declared}"' if declared else ""
    content = f'<?xml version="1.0"{said}?>{PLAIN_TMX}'
    (tmp_path / "x.tmx").write_bytes(content.encode(written))
    assert texts_of(tmp_path / "x.tmx") == [("caf\u00e9", "le caf\u00e9")]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "iso-8859-15", "windows-1250"])
def test_single_byte_encodings_are_those_that_are_declared(tmp_path, encoding):
    content = f'<?xml version="1.0" encoding="{encoding}"?>{PLAIN_TMX}'
    (tmp_path / "x.tmx").write_bytes(content.encode(encoding))
    assert texts_of(tmp_path / "x.tmx") == [("caf\u00e9", "le caf\u00e9")]


def test_bytes_that_are_missing_at_the_end_are_noticed(tmp_path):
    (tmp_path / "x.tmx").write_bytes(PLAIN_TMX.encode("utf-16")[:-1])
    with pytest.raises(CorpusError, match="damaged"):
        texts_of(tmp_path / "x.tmx")


def test_an_entity_between_elements_is_no_text(tmp_path):
    content = PLAIN_TMX.replace("<tu>", "<tu>&unknown;").replace("<tuv", "&other;<tuv")
    (tmp_path / "x.tmx").write_text(content)
    assert texts_of(tmp_path / "x.tmx") == [("caf\u00e9", "le caf\u00e9")]
