"""Zip archives of all kinds: what is written, and which are refused."""

import stat
import struct
import zipfile

import pytest

from dre_jax.errors import DataError
from dre_jax.hpob.download.archive import unpack


def packed(folder, *members):
    """Writes an archive of `(name or ZipInfo, content)`, as zipfile lets it be."""
    path = folder / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def unpacked(folder, archive):
    """Unpacks; the files by name, and the steps of the progress."""
    content, steps = folder / "content", []
    unpack(archive, content, "key", lambda *step: steps.append(step))
    return {str(path.relative_to(content)): path.read_bytes() for path in content.rglob("*") if path.is_file()}, steps


def info(name, mode):
    member = zipfile.ZipInfo(name)
    member.create_system, member.external_attr = 3, mode << 16
    return member


@pytest.mark.parametrize("top", ["", "data/", "some/where/"])
def test_good_archive(tmp_path, top):
    others = [("__MACOSX/data/._key.json", b"x"), ("__MACOSX/data/key.json", b"x"), ("README", b"x")]
    archive = packed(tmp_path, (f"{top}key.json", b"{}" * 900), (f"{top}more.json.gz", b"more"), *others)
    files, steps = unpacked(tmp_path, archive)
    assert files == {"key.json": b"{}" * 900, "more.json.gz": b"more"}
    assert steps == [("unpack", 1800, 1804), ("unpack", 1804, 1804)]


def test_evil_names_are_not_written(tmp_path):
    names = ["../evil.json", "data/../../evil.json", "data/..", "/tmp/evil.json", "//evil.json", "C:/evil.json"]
    names += ["data/./evil.json", "data//evil.json", "data/sub/evil.json", "data\\..\\evil.json", "data/evil#.json"]
    names += [info(f"data/evil-{kind}", kind | 0o777) for kind in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR)]
    names += [info("data/link.json", stat.S_IFLNK | 0o777)]
    archive = packed(tmp_path, ("data/key.json", b"{}"), *((name, b"/etc/passwd") for name in names))
    archive.write_bytes(archive.read_bytes().replace(b"evil#", b"evil\0"))
    assert unpacked(tmp_path, archive)[0] == {"key.json": b"{}", "link.json": b"/etc/passwd"}
    assert not (tmp_path / "content" / "link.json").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "content"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (  # another size in the first entry of the archive's directory
            lambda content: struct.pack_into("<I", content, content.index(b"PK\x01\x02") + 24, 3 * 10**9),
            "must unpack to at most 100,000,000, but claim 3,000,00",
        ),
        (lambda content: content.clear(), "must be a whole zip archive"),
    ],
)
def test_bomb_and_damage(tmp_path, change, message):
    archive = packed(tmp_path, ("key.json", b'{"a": 1}' * 1000), ("b.json", b"{}"))
    content = bytearray(archive.read_bytes())
    change(content)
    archive.write_bytes(content)
    with pytest.raises(DataError, match=message):
        unpacked(tmp_path, archive)


@pytest.mark.parametrize(
    ("names", "holders"),
    [([], "none"), (["a.json"], "none"), (["a/key.json", "b/key.json"], "a, b"), (["a/key.json", "key.json"], "., a")],
)
@pytest.mark.slow
def test_no_single_folder_with_the_key(tmp_path, names, holders):
    with pytest.raises(DataError, match=f"key.json or key.json.gz, .*{holders}"):
        unpacked(tmp_path, packed(tmp_path, *((name, b"") for name in names)))
