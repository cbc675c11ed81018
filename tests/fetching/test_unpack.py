from __future__ import annotations

import io
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from isoglot.errors import FetchError
from isoglot.fetching.unpack import UnpackLimits, place_of, unpack
from tests.fetching.archives import tar_of, zip_of

URL = "https://example.org/data.zip"
FILES = {"top/a/one.txt": b"1\n", "top/a/two.txt": b"22\n", "top/README": b"about\n"}
ALL = {"/": ""}


def write(tmp_path: Path, content: bytes, name: str = "data.zip") -> Path:
    path = tmp_path / "downloads" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def unpacked(tmp_path, content, keep=ALL, name="data.zip", limits=None) -> dict[str, bytes]:
    out = tmp_path / "out"
    files = unpack(write(tmp_path, content, name), out, keep, url=URL, limits=limits)
    assert [path.name for path in (tmp_path / "downloads").iterdir()] == [name]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def nothing_written(tmp_path) -> bool:
    places = (tmp_path / "out").rglob("*") if (tmp_path / "out").exists() else ()
    return not list(places) and len(list((tmp_path / "downloads").iterdir())) == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.zip", zip_of(FILES)),
        ("data.tar", tar_of(FILES, "")),
        ("data.tgz", tar_of(FILES, "gz")),
        ("data.tar.bz2", tar_of(FILES, "bz2")),
        ("data.tar.xz", tar_of(FILES, "xz")),
    ],
)
def test_members_go_where_they_belong(tmp_path, name, content):
    keep = {"*/a/": "new/", "top/{file}": "about/{file}.md"}
    assert unpacked(tmp_path, content, keep, name) == {
        "new/one.txt": b"1\n",
        "new/two.txt": b"22\n",
        "about/README.md": b"about\n",
    }


def test_members_of_one_place_are_joined(tmp_path):
    assert unpacked(tmp_path, zip_of(FILES), {"**/*.txt": "all.txt"}) == {"all.txt": b"1\n22\n"}


def test_what_is_there_is_replaced(tmp_path):
    (tmp_path / "out/top/a").mkdir(parents=True)
    (tmp_path / "out/top/a/one.txt").write_text("old")
    assert unpacked(tmp_path, zip_of(FILES))["top/a/one.txt"] == b"1\n"


@pytest.mark.parametrize(
    ("name", "keep", "place"),
    [
        ("a/b/c.txt", {"a/": "x/"}, "x/b/c.txt"),
        ("a/b/c.txt", {"b/": "x/"}, None),
        ("a/b/c.txt", {"*/b/": "x/"}, "x/c.txt"),
        ("a/b/c.txt", {"{one}/{two}/c.txt": "{two}/{one}.tsv"}, "b/a.tsv"),
        ("a/b/c.txt", {"*/c.txt": "no", "**/c.txt": "yes"}, "yes"),
        ("a/a.txt", {"{one}/{one}.txt": "{one}"}, "a"),
        ("a/b.txt", {"{one}/{one}.txt": "{one}"}, None),
        ("a+b/c", {"a+b/c": "x"}, "x"),
        ("aab/c", {"a+b/c": "x"}, None),
        ("a/", {"a/": "x/"}, None),
    ],
)
def test_patterns(name, keep, place):
    assert place_of(name, keep) == place


@pytest.mark.parametrize(
    "member", ["../out.txt", "a/../../out.txt", "/etc/out.txt", "C:/out.txt", "..\\x"]
)
@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_a_member_that_leads_out_is_refused(tmp_path, member, pack):
    name = "data.zip" if pack is zip_of else "data.tgz"
    content = pack({"good.txt": b"1", member: b"2"})
    with pytest.raises(
        FetchError, match=r"data.zip: the archive's member .* leads out of the folder"
    ):
        unpacked(tmp_path, content, name=name)
    assert nothing_written(tmp_path)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_links_and_devices_of_a_tar_are_refused(tmp_path, kind):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        about = tarfile.TarInfo("link")
        about.type, about.linkname = kind, "/etc/passwd"
        archive.addfile(about)
    with pytest.raises(FetchError, match="'link' is a link or a device"):
        unpacked(tmp_path, buffer.getvalue(), name="data.tgz")
    assert nothing_written(tmp_path)


def test_links_of_a_zip_are_refused_if_they_are_wanted(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("repo/link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("repo/data/a.txt", "1")
    with pytest.raises(FetchError, match="'repo/link' is a link"):
        unpacked(tmp_path, buffer.getvalue())
    assert unpacked(tmp_path, buffer.getvalue(), {"repo/data/": ""}) == {"a.txt": b"1"}


def test_an_archive_that_expands_too_much_is_refused(tmp_path):
    content = zip_of({"a": bytes(5_000_000)})
    limits = UnpackLimits(max_ratio=10, min_bytes=1_000_000)
    with pytest.raises(FetchError, match="expands to 5,000,000 bytes or more"):
        unpacked(tmp_path, content, limits=limits)
    assert nothing_written(tmp_path)
    with pytest.raises(FetchError, match="more than 3 members"):
        unpacked(
            tmp_path, zip_of({str(n): b"" for n in range(9)}), limits=UnpackLimits(max_members=3)
        )


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path):
    """The table of contents says 10 bytes, and a million come."""
    content = bytearray(zip_of({"a": bytes(1_000_000)}))
    table = content.rindex(b"PK\x01\x02")
    struct.pack_into("<I", content, table + 24, 10)
    with pytest.raises(FetchError, match=r"damaged|expands"):
        unpacked(tmp_path, bytes(content))
    assert nothing_written(tmp_path)


@pytest.mark.parametrize(
    "name", ["data.zip", "data.tgz", "data.tar.bz2", "data.tar.xz", "data.tar"]
)
def test_what_is_damaged_is_refused(tmp_path, name):
    compression = {"data.tgz": "gz", "data.tar.bz2": "bz2", "data.tar.xz": "xz", "data.tar": ""}
    random = bytes(range(256)) * 40
    files = {"a": random, "b": random[::-1]}
    whole = zip_of(files) if name == "data.zip" else tar_of(files, compression[name])
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 255
    bad = [whole[: len(whole) // 2], b"<html>no archive", b""]
    # a plain tar has no checksum of its content
    for content in bad if name == "data.tar" else [*bad, bytes(flipped)]:
        with pytest.raises(FetchError, match=r"archive is damaged|not the expected file"):
            unpacked(tmp_path, content, name=name)
        assert nothing_written(tmp_path)


def test_an_archive_with_other_files_names_some(tmp_path):
    with pytest.raises(FetchError, match=r"none of the expected files \(x/\) but top/a/one.txt"):
        unpacked(tmp_path, zip_of(FILES), {"x/": "y/"})


def test_a_password_is_told(tmp_path):
    content = bytearray(zip_of({"a": b"1"}))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.index(mark) + at
        content[place] |= 1
    with pytest.raises(FetchError, match="has a password"):
        unpacked(tmp_path, bytes(content))
