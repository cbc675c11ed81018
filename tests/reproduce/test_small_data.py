"""Generated files lie where `isoglot fetch` puts the real ones, and where the scripts look."""

import re
import subprocess

import pytest
from reproduce.pages import FOLDER
from reproduce.small_data import write_data

from isoglot.corpus.knowledge.dump_files import FileSlice
from isoglot.corpus.knowledge.mediawiki import Page, PageReader
from isoglot.fetching.registry import expand, parse_name

NAMES = [
    "opus:Europarl/bg-en",
    "iitb",
    "floresv1",
    "cc100:zh",
    "cc100:no",
    "newscrawl:ro/2016",
    "wikipedia-dump:be_tarask",
    "wikipedia-dump:nan",
    "wikidata",
    "muse-dictionary:en-de",
    "xnli",
    "mlqa",
    "mlqa-translate-train",
    "squad",
    "paws-x",
    "tydiqa",
    "xquad",
]


def pattern(place: str) -> str:
    """A place of the registry as a regular expression; the version of OPUS is asked for later."""
    parts = re.split(r"(\{\w+\}|\*\*|\*)", place.replace("/latest/", "/*/"))
    found = "".join("[^/]+" if part.startswith(("{", "*")) else re.escape(part) for part in parts)
    return found + ("[^/]+(/[^/]+)*" if place.endswith("/") else "")


@pytest.mark.parametrize("name", NAMES)
def test_files_are_at_the_places_of_the_registry(name, tmp_path):
    write_data(name, tmp_path, ["wikipedia-dump:de", name])
    written = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    places = [
        place
        for part in expand(parse_name(name))
        for place in (part.to, *part.keep.values())
        if place
    ]
    assert written
    for file in written:
        assert any(re.fullmatch(pattern(place), file) for place in places), file
    if "/" not in name and name not in ("xnli", "paws-x", "xquad"):  # all languages are not made
        for place in places:
            assert any(re.fullmatch(pattern(place), file) for file in written), place


def in_the_scripts(*lines: str) -> list[str]:
    """What functions of common.sh print."""
    source = f"set -- --dry-run; source {FOLDER / 'common.sh'}"
    command = ["bash", "-c", "; ".join([source, *lines])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_scripts_look_where_files_are():
    codes = ["nan", "yue", "be_tarask", "no", "en", "arz"]
    dumps = in_the_scripts(*(f"dump {code}" for code in codes))
    for code, file in zip(codes, dumps, strict=True):
        (part,) = expand(parse_name(f"wikipedia-dump:{code}"))
        assert file == f"data/{part.to}"
    for code, file in zip(["zh", "no"], in_the_scripts("cc100 zh", "cc100 no"), strict=True):
        (part,) = expand(parse_name(f"cc100:{code}"))
        assert file == f"data/{part.to}"
    (moses,) = in_the_scripts("moses Europarl en bg")
    (part,) = expand(parse_name("opus:Europarl/bg-en"))
    places = {place.replace("/latest/", "/*/") for place in part.keep.values()}
    assert set(re.findall(r"'data/([^']+)'", moses)) == places
    assert in_the_scripts("opus_names MultiUN/ar Tanzil/sw") == [
        "opus:MultiUN/ar-en",
        "opus:Tanzil/en-sw",
    ]


def test_a_dump_has_articles_with_links(tmp_path):
    write_data("wikipedia-dump:de", tmp_path, [])
    (file,) = tmp_path.rglob("*.bz2")
    pages = [page for page in PageReader(FileSlice(path=file)) if isinstance(page, Page)]
    assert len(pages) > 20
    assert all("[[" in page.text and page.title in page.text for page in pages)
