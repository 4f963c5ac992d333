"""Zip archives of all kinds: what is written, and which are refused."""

import os
import shutil
import stat
import struct
import zipfile

import pytest

from dre_jax.errors import DataError
from dre_jax.hpob.download.archive import unpack
from dre_jax.hpob.download.fetch import Refused

KEY = ["key.json", "key.json.gz"]


@pytest.fixture
def packed(tmp_path):
    """Writes an archive of `(name or ZipInfo, content)`, as zipfile lets it be."""

    def write(*members, compression=zipfile.ZIP_DEFLATED):
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, content in members:
                archive.writestr(name, content)
        return path

    return write


@pytest.fixture
def unpacked(tmp_path, heard):
    """Unpacks; the files by name."""

    def read(archive):
        folder = tmp_path / "content"
        unpack(archive, folder, KEY, watch=heard)
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    return read


def spoil(path, change):
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def info(name, mode):
    made = zipfile.ZipInfo(name)
    made.create_system, made.external_attr = 3, mode << 16
    return made


@pytest.mark.parametrize("top", ["", "data/", "some/where/"])
def test_good_archive(packed, unpacked, heard, top):
    beside = [("__MACOSX/data/._key.json", b"x"), ("__MACOSX/data/key.json", b"x"), ("README", b"x")]
    archive = packed((f"{top}key.json", b"{}" * 900_000), (f"{top}more.json.gz", b"more"), *beside)
    assert unpacked(archive) == {"key.json": b"{}" * 900_000, "more.json.gz": b"more"}
    assert heard.steps == [("unpack", done, 1_800_004) for done in (1 << 20, 1_800_000, 1_800_004)]


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_evil_names_are_not_written(packed, unpacked, tmp_path):
    names = ["../evil.json", "data/../../evil.json", "data/..", "/tmp/evil.json", "//evil.json", "C:/evil.json"]
    names += ["data/./evil.json", "data//evil.json", "data/sub/evil.json", "data\\..\\evil.json", "data/evil#.json"]
    names += [info(f"data/evil-{kind}", kind | 0o777) for kind in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR)]
    names += [info("data/link.json", stat.S_IFLNK | 0o777)]
    archive = packed(("data/key.json", b"{}"), *((name, b"/etc/passwd") for name in names))
    spoil(archive, lambda content: content.__setitem__(slice(None), content.replace(b"evil#", b"evil\0")))
    assert unpacked(archive) == {"key.json": b"{}", "link.json": b"/etc/passwd"}
    assert not (tmp_path / "content" / "link.json").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "content"]
    assert not (tmp_path.parent / "evil.json").exists()


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize("other", ["data/a.json", "data/A.json"])
def test_names_that_clash(packed, unpacked, other):
    with pytest.raises(Refused, match="must hold every name once"):
        unpacked(packed(("data/key.json", b"{}"), ("data/a.json", b"1"), (other, b"2")))


def test_bomb(packed, unpacked, tmp_path):
    archive = packed(("key.json", b"{}"))
    spoil(archive, lambda content: struct.pack_into("<I", content, content.index(b"PK\x01\x02") + 24, 3 * 10**9))
    with pytest.raises(Refused, match=r"must unpack to at most 100 MB, but claims 3000 MB"):
        unpacked(archive)
    assert not (tmp_path / "content").exists()


def encrypt(content):
    content[content.index(b"PK\x01\x02") + 8] |= 1


def claim_little(content):
    """The directory says ten bytes, the stream has ten thousand: no more than ten are written."""
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", 10)


def flip(content):
    content[60] ^= 0xFF
    content[61] ^= 0xFF


def cut_off(kept):
    return lambda content: content.__delitem__(slice(kept, None))


NOT_WHOLE = "must be a whole zip archive"


@pytest.mark.parametrize(
    ("change", "compression", "fault"),
    [
        (encrypt, zipfile.ZIP_DEFLATED, "is encrypted"),
        (claim_little, zipfile.ZIP_DEFLATED, NOT_WHOLE),
        (flip, zipfile.ZIP_STORED, NOT_WHOLE),
        (flip, zipfile.ZIP_DEFLATED, NOT_WHOLE),
        (flip, zipfile.ZIP_BZIP2, NOT_WHOLE),
        (flip, zipfile.ZIP_LZMA, NOT_WHOLE),
        *((cut_off(kept), zipfile.ZIP_DEFLATED, NOT_WHOLE) for kept in (0, 10, 100, -30, -1)),
    ],
)
def test_damaged(packed, unpacked, change, compression, fault):
    content = b'{"a": 1}' * 1000 + bytes(range(256)) * 9
    archive = packed(("key.json", content), ("b.json", bytes(range(256))), compression=compression)
    spoil(archive, change)
    with pytest.raises(Refused, match=fault):
        unpacked(archive)


def test_every_single_byte_spoilt(packed, tmp_path, heard, monkeypatch):
    """Whatever byte is wrong: unpacked as it should be, or refused; never another error, never another content."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # hundreds of them take seconds
    archive = packed(("d/key.json", b'{"a": 1}'), ("d/b.json", b"2"))
    whole = archive.read_bytes()
    for position in range(len(whole)):
        content = bytearray(whole)
        content[position] ^= 0x5A
        archive.write_bytes(content)
        folder = tmp_path / "content"
        try:
            unpack(archive, folder, KEY, watch=heard)
        except Refused:
            pass
        else:
            assert (folder / "key.json").read_bytes() == b'{"a": 1}'
        shutil.rmtree(folder, ignore_errors=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ([], "has none"),
        ([("a.json", b"")], "has none"),
        ([("a/key.json", b""), ("b/key.json", b"")], "has 2: a, b"),
        ([("a/key.json", b""), ("a/b/key.json.gz", b"")], "has 2: a, a/b"),
    ],
)
def test_no_single_folder_with_the_key(packed, unpacked, members, found):
    with pytest.raises(Refused, match=f"one folder that holds key.json or key.json.gz, but {found}"):
        unpacked(packed(*members))


def test_full_disk(packed, unpacked, small_disk):
    """In the middle of a file; it is no fault of the archive's."""
    archive = packed(("key.json", bytes(4_000_000)))
    said = r"key\.json cannot be written: File too large"
    with small_disk(1_500_000), pytest.raises(DataError, match=said) as raised:
        unpacked(archive)
    assert not isinstance(raised.value, Refused)
