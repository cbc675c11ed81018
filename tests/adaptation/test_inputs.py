from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from isoglot.adaptation.inputs import find_inputs, sources_of
from isoglot.adaptation.request import AdaptConfig
from isoglot.corpus.reading.reader import Record
from isoglot.corpus.reading.sources import find_subsets, group_files
from isoglot.errors import CorpusError
from tests.fetching.archives import zip_of
from tests.fetching.servers import serving

ENGLISH = ["The good teacher reads a letter.", "Nobody works at home today."] * 5
SWAHILI = ["Mwalimu mzuri anasoma barua.", "Hakuna anayefanya kazi leo."] * 5
WANTED = set(zip(ENGLISH, SWAHILI, strict=True))


def lines(path: Path, content: list[str]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(content) + "\n", encoding="utf-8")
    return str(path)


def records(config: AdaptConfig, folder: Path) -> dict[str, set[tuple[str, ...]]]:
    """What prepare would read, by language."""
    sources = sources_of(find_inputs(config, folder / "downloads").data)
    found: dict[str, set[tuple[str, ...]]] = {}
    for group in group_files(find_subsets(sources, Path("/nowhere"))):
        texts = {
            one.texts for one in group.subset.reader().read(group.files) if isinstance(one, Record)
        }
        found.setdefault(group.subset.language, set()).update(texts)
    return found


def pairs_of(name: str, *more: str, folder: Path) -> dict[str, set[tuple[str, ...]]]:
    config = AdaptConfig(encoder="m", pairs={"en-sw": (name, *more)})
    return records(config, folder)


def test_folders_patterns_and_formats_become_sources(tmp_path):
    lines(tmp_path / "raw/a.txt", ENGLISH[:1])
    lines(tmp_path / "raw/deep/b.jsonl", ['{"text": "Nobody works at home today."}'])
    lines(tmp_path / "raw/README.md", ["about"])
    lines(tmp_path / "raw/.hidden", ["hidden"])
    lines(tmp_path / "sw-1.txt", SWAHILI[:1])
    lines(tmp_path / "sw-2.txt", SWAHILI[1:2])
    config = AdaptConfig(
        encoder="m", text={"en": (f"{tmp_path}/raw",), "sw": (f"{tmp_path}/sw-*.txt",)}
    )
    assert records(config, tmp_path) == {
        "en": {(one,) for one in ENGLISH},
        "sw": {(one,) for one in SWAHILI},
    }
    sources = sources_of(find_inputs(config, tmp_path).data)
    assert {name: (one.format, list(one.files)) for name, one in sources.items()} == {
        "text": ("lines", ["en", "sw"]),
        "text-jsonl": ("jsonl", ["en"]),
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a.en", "a.sw"),
        ("News.en-sw.en", "News.en-sw.sw"),
        ("en.txt", "sw.txt"),
        ("a.eng.txt", "a.swh.txt"),
        ("en/part.txt", "sw/part.txt"),
        ("one.txt", "other.txt"),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_two_files_that_are_parallel(first, second, swapped, tmp_path):
    given = [lines(tmp_path / first, ENGLISH), lines(tmp_path / second, SWAHILI)]
    if swapped:
        given.reverse()
    assert pairs_of(*given, folder=tmp_path / "x") == {"en-sw": WANTED}


def test_a_folder_of_files_that_are_parallel(tmp_path):
    for part in (0, 1):
        lines(tmp_path / f"raw/{part}.en", ENGLISH[part : part + 1])
        lines(tmp_path / f"raw/{part}.sw", SWAHILI[part : part + 1])
    assert pairs_of(f"{tmp_path}/raw", folder=tmp_path) == {"en-sw": WANTED}
    patterns = (f"{tmp_path}/raw/*.en", f"{tmp_path}/raw/*.sw")
    assert pairs_of(*patterns, folder=tmp_path) == {"en-sw": WANTED}


def test_columns_and_parallel_files_together(tmp_path):
    tabbed = lines(tmp_path / "a.tsv", [f"{ENGLISH[0]}\t{SWAHILI[0]}"])
    others = [lines(tmp_path / "b.en", ENGLISH[1:2]), lines(tmp_path / "b.sw", SWAHILI[1:2])]
    assert pairs_of(tabbed, *others, folder=tmp_path) == {"en-sw": WANTED}


def test_csv_files_with_the_same_names_are_one_source(tmp_path):
    """Each has a delimiter of its own."""
    files = [
        lines(tmp_path / "a.csv", ["id;en;sw", f'7;"{ENGLISH[0]}";{SWAHILI[0]}']),
        lines(tmp_path / "b.csv", ["sw,note,en", f'"{SWAHILI[1]}",,"{ENGLISH[1]}"']),
    ]
    assert pairs_of(*files, folder=tmp_path) == {"en-sw": WANTED}
    config = AdaptConfig(encoder="m", pairs={"en-sw": tuple(files)})
    (source,) = sources_of(find_inputs(config, tmp_path).data).values()
    assert (source.format, source.options) == ("csv", {"first": "en", "second": "sw"})


def test_files_of_the_adaptation_itself_are_not_data(tmp_path):
    """OUT may lie in the folder that is given."""
    mine = lines(tmp_path / "raw/a.txt", ENGLISH)
    lines(tmp_path / "raw/adapted/heldout/text/en.txt", ENGLISH)
    own = lines(tmp_path / "raw/adapted/mine.txt", ENGLISH)
    downloads = tmp_path / "raw/adapted/downloads"
    for name, wanted in [("raw", mine), ("raw/**", mine), ("raw/adapted/mine.txt", own)]:
        config = AdaptConfig(encoder="m", text={"en": (f"{tmp_path}/{name}",)})
        assert [str(path) for path in find_inputs(config, downloads).files] == [wanted]


def test_pairs_with_one_column(tmp_path):
    alone = lines(tmp_path / "a.txt", ENGLISH)
    with pytest.raises(CorpusError, match=r"a.txt: has one column, and en-sw needs .* tab between"):
        pairs_of(alone, folder=tmp_path)
    three = [lines(tmp_path / name, ENGLISH) for name in ("b.en", "b.sw", "c.en")]
    with pytest.raises(CorpusError, match=r"c.en: has one column"):
        pairs_of(*three, folder=tmp_path)


def test_names_that_lead_nowhere(tmp_path):
    lines(tmp_path / "raw/en.txt", ENGLISH)
    (tmp_path / "empty").mkdir()
    for name, said in {
        "raw/eng.txt": "there is no such file; did you mean 'en.txt'",
        "raw/*.gz": "--text en: no file matches",
        "empty": "holds no data files",
        " ": "a name is empty",
        "/proc/version": "not on a disk",
    }.items():
        given = name if name.startswith((" ", "/")) else str(tmp_path / name)
        with pytest.raises(CorpusError, match=said):
            find_inputs(AdaptConfig(encoder="m", text={"en": (given,)}), tmp_path)


def test_a_file_for_two_languages_or_as_a_test(tmp_path):
    name = lines(tmp_path / "a.txt", ENGLISH)
    with pytest.raises(CorpusError, match=r"a.txt: is given for en and for sw. Name it once"):
        find_inputs(AdaptConfig(encoder="m", text={"en": (name,), "sw": (name,)}), tmp_path)
    with pytest.raises(CorpusError, match="is given for --test and for en"):
        find_inputs(AdaptConfig(encoder="m", text={"en": (name,)}, tests=(name,)), tmp_path)


def test_names_of_data_that_is_elsewhere(tmp_path, monkeypatch):
    """Names that fetch knows, with the language of the option; downloaded once, then read."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    files = {
        "T.en-sw.en": "\n".join(ENGLISH).encode(),
        "T.en-sw.sw": "\n".join(SWAHILI).encode(),
        "README": b"about",
    }
    with serving() as server:
        server.host("/object.pouta.csc.fi/OPUS-T/v1/moses/en-sw.txt.zip", zip_of(files))
        server.host("/data.statmt.org/cc-100/sw.txt.xz", lzma.compress(files["T.en-sw.sw"]))
        monkeypatch.setenv("ISOGLOT_MIRROR", server.url)
        config = AdaptConfig(
            encoder="m",
            text={"sw": ("cc100",)},
            pairs={"en-sw": ("opus:T/en-sw@v1",)},
        )
        wanted = {"sw": {(one,) for one in SWAHILI}, "en-sw": WANTED}
        assert records(config, tmp_path) == wanted
        server.files.clear()
        assert records(config, tmp_path) == wanted


def test_a_dataset_of_the_hub_by_its_name_alone(tmp_path, monkeypatch):
    asked = []

    def resolved(name: str, **_: object) -> list[Path]:
        asked.append(name)
        return [Path(lines(tmp_path / "a.txt", ENGLISH))]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("isoglot.adaptation.inputs.resolve", resolved)
    find_inputs(AdaptConfig(encoder="m", text={"en": ("owner/data",)}), tmp_path)
    assert asked == ["hf:owner/data"]
    (tmp_path / "owner").mkdir()
    with pytest.raises(CorpusError, match="owner/data: there is no such file"):
        find_inputs(AdaptConfig(encoder="m", text={"en": ("owner/data",)}), tmp_path)
