"""Real test sets, packed as their publishers pack them: tasks read what was fetched.

Pieces of the files under ISOGLOT_DATA are hosted at the registry's addresses. After fetching, the
examples that the task reads must be those that it reads from ISOGLOT_DATA.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isoglot.fetching.fetch import fetch
from isoglot.fetching.registry import expand, parse_name
from isoglot.tasks import find_task
from tests.fetching.archives import tar_of, zip_of
from tests.fetching.conftest import quick

Files = dict[str, bytes]
"""Path at the mirror (host and path) -> content."""


def content(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes())


def rows_of(path: Path) -> list[dict[str, str]]:
    text = content(path).decode()
    return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


def table(rows: Iterable[dict[str, str]], columns: list[str]) -> bytes:
    lines = ["\t".join(columns), *("\t".join(row[name] for name in columns) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def addresses(name: str, places: dict[str, bytes]) -> Files:
    """Addresses of the registry for files that go to places, as they are."""
    known = {part.to: part.url for part in expand(parse_name(name))}
    return {known[place].partition("://")[2]: one for place, one in places.items()}


def address(name: str, number: int = 0) -> str:
    return expand(parse_name(name))[number].url.partition("://")[2]


def tatoeba(data: Path) -> Files:
    found = {}
    for code in ("swh", "deu", "hin"):
        lines = content(data / f"tatoeba/{code}-eng.tsv.xz").decode().removesuffix("\n").split("\n")
        for column, side in enumerate((code, "eng")):
            place = f"tatoeba/v1/tatoeba.{code}-eng.{side}"
            found[place] = "".join(f"{line.split(chr(9))[column]}\n" for line in lines).encode()
    return addresses("tatoeba", found)


def xquad(data: Path) -> Files:
    codes = ("de", "ro")
    return addresses(
        "xquad",
        {f"xquad/xquad.{one}.json": content(data / f"xquad/{one}.json.xz") for one in codes},
    )


def xcopa(data: Path) -> Files:
    return addresses(
        "xcopa",
        {
            f"xcopa/data/sw/{split}.sw.jsonl": content(data / f"xcopa/{split}.sw.jsonl.xz")
            for split in ("val", "test")
        },
    )


def esxnli(data: Path) -> Files:
    return addresses("esxnli", {"esxnli/esxnli.tsv": content(data / "nli/esxnli.tsv.xz")})


def sick(data: Path) -> Files:
    names = [path.name.removesuffix(".xz") for path in (data / "nli/sick").iterdir()]
    places = {f"nli/sick/{name}": content(data / f"nli/sick/{name}.xz") for name in names}
    return addresses("sick", places)


def xnli(data: Path) -> Files:
    columns = ["language", "gold_label", "sentence1", "sentence2"]
    files = {"__MACOSX/._XNLI-1.0": b"\0", "XNLI-1.0/README.md": b"about"}
    for split in ("dev", "test"):
        rows = [
            {
                "language": code,
                "gold_label": row["label"],
                "sentence1": row[f"sentence1_{code}"],
                "sentence2": row[f"sentence2_{code}"],
            }
            for code in ("en", "es", "sw", "ur")
            for row in rows_of(data / f"nli/xnli/{code}.{split}.tsv.xz")
        ]
        files[f"XNLI-1.0/xnli.{split}.tsv"] = table(rows, columns)
    train = "premise\thypo\tlabel\nA man sleeps .\tA man is awake .\tcontradictory\n"
    translated = {"XNLI-MT-1.0/multinli/multinli.train.en.tsv": train.encode()}
    return {address("xnli"): zip_of(files), address("xnli", 1): zip_of(translated)}


def paws_x(data: Path) -> Files:
    files = {
        f"x-final/de/{split}_2k.tsv": content(data / f"pawsx/de.{split}.tsv.xz")
        for split in ("dev", "test")
    }
    return {address("paws-x"): tar_of(files)}


def germeval(data: Path) -> Files:
    places = {
        f"germeval2014/NER-de-{split}.tsv": content(data / f"ner/germeval2014/{split}.tsv.xz")
        for split in ("dev", "test")
    }
    return addresses("germeval2014", {**places, "germeval2014/NER-de-train.tsv": b"1\tEr\tO\tO\n"})


def masakhaner(data: Path) -> Files:
    return addresses(
        "masakhaner",
        {
            f"masakhaner/data/swa/{split}.txt": content(
                data / f"ner/masakhaner/swa.{split}.conll.xz"
            )
            for split in ("train", "dev", "test")
        },
    )


def uner(data: Path) -> Files:
    """Universal NER has columns of numbers, words, tags and more; its repositories come as zip."""
    found = {}
    for part in expand(parse_name("uner")):
        treebank = part.url.split("UNER_")[1].split("/")[0]
        files = {f"UNER_{treebank}-master/README.md": b"about", "x/none.iob2": b"1\tx\tO\t-\t-\n"}
        if treebank == "Chinese-GSD":
            for split in ("dev", "test"):
                files[f"UNER_{treebank}-master/zh_gsd-ud-{split}.iob2"] = numbered(
                    content(data / f"ner/uner/zh_gsd.{split}.tsv.xz").decode(),
                    "{n}\t{w}\t{t}\t-\t-",
                )
        found[part.url.partition("://")[2]] = zip_of(files)
    return found


def numbered(text: str, line: str) -> bytes:
    """Lines of words and tags with the number of each word in its sentence."""
    made, number = [], 0
    for one in text.split("\n"):
        number = number + 1 if one.strip() else 0
        word, _, tag = one.partition("\t")
        made.append(line.format(n=number, w=word, t=tag) if one.strip() else "")
    return "\n".join(made).encode()


def ud_pos(data: Path) -> Files:
    columns = "{n}\t{w}\t_\t{t}\t_\t_\t0\troot\t_\t_"
    names = {
        "UD_German-GSD/de_gsd-ud-test": "de_gsd.test",
        "UD_Thai-PUD/th_pud-ud-test": "th_pud.test",
    }
    files = {
        f"ud-treebanks-v2.5/{place}.conllu": numbered(
            content(data / f"ud_pos/{name}.tsv.xz").decode(), columns
        )
        for place, name in names.items()
    }
    return {
        address("ud-pos"): tar_of({**files, "ud-treebanks-v2.5/UD_German-GSD/LICENSE.txt": b"x"})
    }


def tydiqa(data: Path) -> Files:
    places = {}
    for split, codes in (("dev", "ar en fi ko ru sw"), ("train", "en ko sw")):
        files = [
            json.loads(content(data / f"tydiqa/{code}.{split}.json.xz")) for code in codes.split()
        ]
        joined = {"version": "v1.1", "data": [one for file in files for one in file["data"]]}
        places[f"tydiqa/tydiqa-goldp-v1.1-{split}.json"] = json.dumps(joined).encode()
    return addresses("tydiqa", places)


def alignment(data: Path) -> Files:
    folder = data / "word_align/xlm-align"
    files = {
        f"alignment-test-sets/{path.parent.name}/{path.stem}": content(path)
        for path in sorted(folder.glob("*/*.xz"))
    }
    return {address("alignment"): tar_of(files)}


def awesome(data: Path) -> Files:
    folder = data / "word_align/awesome-align"
    places = {
        f"awesome-align/examples/{path.stem}": content(path)
        for path in folder.glob("*.xz")
        if not path.stem.endswith(".out")
    }
    more = {f"awesome-align/examples/jaen.{one}": text for one, text in JAEN.items()}
    return addresses("alignment-awesome", {**places, **more})


JAEN = {"src-tgt": "猫 です ||| a cat\n".encode(), "gold": b"1-2\n"}


def xling(data: Path) -> Files:
    folder = data / "bli/xling-eval"
    files = {
        f"xling-eval-008a/bli_datasets/{path.parent.name}/{path.stem}": content(path)
        for path in sorted(folder.glob("*/*.xz"))
    }
    return {address("xling"): zip_of({**files, "xling-eval-008a/README.md": b"about"})}


def analogy(data: Path) -> Files:
    names = [path.stem for path in (data / "analogy").iterdir()]
    return addresses(
        "analogy", {f"analogy/{name}": content(data / f"analogy/{name}.xz") for name in names}
    )


def similarity(data: Path) -> Files:
    names = [path.stem for path in (data / "word_similarity").iterdir()]
    return addresses(
        "word-similarity",
        {f"word_similarity/{name}": content(data / f"word_similarity/{name}.xz") for name in names},
    )


def xfactr(data: Path) -> Files:
    lama, root = data / "lama", "X-FACTR-c1938/data"
    files = {
        f"{root}/TREx-relations.jsonl": content(lama / "xfactr_templates/TREx-relations.jsonl.xz")
    }
    templates = content(lama / "xfactr_templates/relations.el.jsonl.xz")
    files[f"{root}/greek/relations.el.jsonl"] = templates
    for code in ("el", "en"):
        files[f"{root}/alias/mTRExf/{code}.txt"] = content(lama / f"xfactr_aliases/{code}.tsv.xz")
    facts: dict[str, list[str]] = {}
    for line in content(lama / "xfactr_mtrexf.jsonl.xz").decode().splitlines():
        facts.setdefault(json.loads(line)["predicate_id"], []).append(line)
    for relation, lines in facts.items():
        files[f"{root}/mTRExf/sub/{relation}.jsonl"] = ("\n".join(lines) + "\n").encode()
    objects = addresses(
        "xfactr",
        {
            f"lama/mlama_candidates/{code}.json": content(lama / f"mlama_candidates/{code}.json.xz")
            for code in "el en es fr he ko ru tr vi".split()
        },
    )
    return {address("xfactr"): zip_of(files), **objects}


CASES: dict[str, tuple[Callable[[Path], Files], tuple[str, ...] | None, int]] = {
    "tatoeba": (tatoeba, ("sw", "de", "hi"), 3),
    "xquad": (xquad, ("de", "ro"), 2),
    "xcopa": (xcopa, ("sw",), 2),
    "esxnli": (esxnli, None, 2),
    "sick": (sick, ("en", "nl", "ja"), 8),
    "xnli": (xnli, None, 8),
    "paws-x": (paws_x, None, 2),
    "germeval2014": (germeval, None, 2),
    "masakhaner": (masakhaner, ("sw",), 3),
    "uner": (uner, None, 2),
    "ud-pos": (ud_pos, None, 2),
    "tydiqa": (tydiqa, None, 9),
    "alignment": (alignment, None, 4),
    "alignment-awesome": (awesome, None, 3),
    "xling": (xling, None, 16),
    "analogy": (analogy, None, 5),
    "word-similarity": (similarity, None, 1),
    "xfactr": (xfactr, None, 2),
}
"""Task -> its files, the languages that are fetched, and the splits that are compared."""
WITH_SUMS = {"tatoeba"}
"""Tasks whose hosted files are those of the publisher byte for byte."""


def compared(task, fetched: Path, given: Path) -> Iterator[tuple[list[object], list[object]]]:
    known = {(split.language, split.name): split for split in task.splits(given)}
    for split in task.splits(fetched):
        if (split.language, split.name) in known:
            yield task.read(split), task.read(known[split.language, split.name])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_tasks_read_what_was_fetched(name, server, tmp_path, data_folder, request):
    if name not in WITH_SUMS:
        request.getfixturevalue("without_sums")
    build, languages, number = CASES[name]
    for path, one in build(data_folder / "eval").items():
        server.host(f"/{path}", one)
    fetch(name, tmp_path, languages=languages, config=quick(server.url), announce=lambda _: None)
    pairs = list(compared(find_task(name), tmp_path, data_folder / "eval"))
    assert len(pairs) == number
    for found, expected in pairs:
        assert found
        assert found == expected


@pytest.mark.slow
def test_wikiann_is_read_as_the_hub_has_it(hub, tmp_path, data_folder):
    names = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]
    feature = {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"}
    texts = {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"}
    about = {"info": {"features": {"tokens": texts, "ner_tags": feature}}}
    files = {}
    for split, said in (("dev", "validation"), ("test", "test")):
        text = content(data_folder / f"eval/ner/wikiann/de.{split}.tsv.xz").decode()
        sentences = [
            [line.split("\t") for line in block.split("\n")]
            for block in text.strip("\n").split("\n\n")
            if block.strip()
        ]
        made = pa.table(
            {
                "tokens": [[word.partition(":")[2] for word, *_ in one] for one in sentences],
                "ner_tags": [[names.index(line[-1]) for line in one] for one in sentences],
            }
        ).replace_schema_metadata({"huggingface": json.dumps(about)})
        buffer = io.BytesIO()
        pq.write_table(made, buffer)
        files[f"de/{said}-00000-of-00001.parquet"] = buffer.getvalue()
    hub.put("unimelb-nlp/wikiann", files)
    fetch("wikiann", tmp_path, config=quick(), announce=lambda _: None)
    pairs = list(compared(find_task("wikiann"), tmp_path, data_folder / "eval"))
    assert len(pairs) == 2
    for found, expected in pairs:
        assert found == expected


SQUAD = json.dumps(
    {
        "data": [
            {
                "title": "t",
                "paragraphs": [
                    {
                        "context": "It is late.",
                        "qas": [
                            {
                                "id": "1",
                                "question": "What?",
                                "answers": [{"text": "late", "answer_start": 6}],
                            }
                        ],
                    }
                ],
            }
        ]
    }
).encode()
COPA = (
    b'{"premise": "a", "choice1": "b", "choice2": "c", "question": "cause", "label": 0, "idx": 0}\n'
)
BUCC = {
    "bucc2018/de-en/de-en.training.de": b"de-1\teins\n",
    "bucc2018/de-en/de-en.training.en": b"en-1\tone\n",
    "bucc2018/de-en/de-en.training.gold": b"de-1\ten-1\n",
}


def handmade(name: str) -> Files:
    """The smallest files of tasks of which there is no real data here."""
    match name:
        case "mlqa":
            member = "MLQA_V1/test/test-context-de-question-de.json"
            return {address("mlqa"): zip_of({member: SQUAD})}
        case "mlqa-translate-train":
            member = "mlqa-translate-train/de_squad-translate-train-train-v1.1.json"
            return {address(name): tar_of({member: SQUAD})}
        case "squad" | "squad-v2":
            return {address(name): SQUAD, address(name, 1): SQUAD}
        case "copa":
            return {address("copa"): zip_of({"COPA/train.jsonl": COPA, "COPA/val.jsonl": COPA})}
        case "bucc":
            training, sample = (
                next(
                    part.url.partition("://")[2]
                    for part in expand(parse_name("bucc"))
                    if f"de-en.{one}" in part.url
                )
                for one in ("training", "sample")
            )
            small = {member.replace("training", "sample"): one for member, one in BUCC.items()}
            return {training: tar_of(BUCC, "bz2"), sample: tar_of(small, "bz2")}
        case "muse":
            places = [
                f"muse/{pair}.{span}.txt"
                for pair in ("en-de", "de-en")
                for span in ("0-5000", "5000-6500")
            ]
            return addresses("muse", dict.fromkeys(places, b"one eins\n"))
        case "lama":
            return {address("lama"): zip_of({"data/Squad/test.jsonl": b"{}\n"})}
        case "mlama":
            files = {"mlama1.1/sw/P19.jsonl": b"{}\n", "mlama1.1/sw/templates.jsonl": b"{}\n"}
            return {address("mlama"): zip_of(files)}
        case "tydiqa-primary":
            return {address(name): gzip.compress(b"{}\n"), address(name, 1): gzip.compress(b"{}\n")}
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("mlqa", {("de", "test"): 1}),
        ("squad", {("en", "train"): 1, ("en", "dev"): 1}),
        ("squad-v2", {("en", "train"): 1, ("en", "dev"): 1}),
        ("copa", {("en", "train"): 1, ("en", "dev"): 1}),
        ("bucc", {("de-en", "test"): 1, ("de-en", "dev"): 1}),
        ("muse", {(pair, name): 1 for pair in ("en-de", "de-en") for name in ("train", "test")}),
        ("mlqa-translate-train", {("de", "train"): 1}),
        ("lama", {("en", "test"): None}),
        ("mlama", {("sw", "test"): None}),
        ("tydiqa-primary", {("sw", "train"): None, ("sw", "dev"): None}),
    ],
)
def test_small_files_of_other_tasks(name, splits, server, tmp_path, without_sums):
    for path, one in handmade(name).items():
        server.host(f"/{path}", one)
    fetch(name, tmp_path, languages=("de",), config=quick(server.url), announce=lambda _: None)
    task = find_task("squad" if name == "mlqa-translate-train" else name)
    found = {(split.language, split.name): split for split in task.splits(tmp_path)}
    assert splits.keys() <= found.keys()
    for key, number in splits.items():
        assert number is None or len(task.read(found[key])) == number
