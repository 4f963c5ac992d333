"""HPO-B's data from wherever they are to where they should be, or nothing at all."""

import dataclasses
import fcntl
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest

from dre_jax.data import list_spaces, load_space, write_dataset
from dre_jax.errors import DataError
from dre_jax.hpob.download import download, sources
from dre_jax.hpob.download.contents import Expected
from dre_jax.hpob.download.download import MARKER
from dre_jax.hpob.download.fetch import Patience
from dre_jax.hpob.download.sources import Source

SMALL = Expected(spaces=1, test_tasks=2)
REQUIRED = {
    f"{stem}.json" for stem in ("bo-initializations", *(f"meta-{s}-dataset" for s in ("train", "validation", "test")))
}
HOLDS = "1 search spaces, 2 / 2 / 2 tasks for training / validation / test, 48 evaluations, 5 initial designs"


@pytest.fixture(scope="module")
def loose(tmp_path_factory, make_space):
    """A folder of loose files, two of the optional ones among them; treat as read-only."""
    folder, names = tmp_path_factory.mktemp("loose"), [(f"{split}0", f"{split}1") for split in "tve"]
    splits = dict(zip(("train", "validation", "test"), names, strict=True))
    write_dataset(folder, [make_space("svm", n_rows=8, designs=(5, 5), **splits)])
    shutil.copy(folder / "meta-train-dataset.json", folder / "meta-train-dataset-augmented.json")
    (folder / "meta-dataset-descriptors.json").write_text("{}")
    return folder


def zip_of(folder, top="hpob-data/"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{top}{path.name}")
    return stream.getvalue()


@pytest.fixture
def stocked(shop, loose):
    """The shop with the archive and, in another place, the loose files."""
    shop.files = {"hpob-data.zip": zip_of(loose)}
    shop.files |= {f"files/{path.name}": path.read_bytes() for path in loose.iterdir()}
    return shop


@pytest.fixture
def get(tmp_path, heard):
    """Downloads to `out` in the test's folder: the line."""

    def get(url, out="out", **options):
        patience = Patience(sleep=lambda seconds: None, timeout=5, attempts=3, worthwhile=1)
        arguments = {"expected": SMALL, "patience": patience, "watch": heard} | options
        return download.download("hpo-b", tmp_path / out, url=url, **arguments)

    return get


@pytest.fixture
def there(tmp_path, loose):
    """Asserts that the folder holds the very files, and that nothing lies beside it."""

    def check(names=None):
        out = tmp_path / "out"
        assert {path.name for path in out.iterdir()} - {MARKER} == (names or {path.name for path in loose.iterdir()})
        for path in out.iterdir():
            assert path.name == MARKER or path.read_bytes() == (loose / path.name).read_bytes()
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        assert list_spaces(out) == ["svm"]
        assert sorted(load_space(out, "svm").test) == ["e0", "e1"]

    return check


@pytest.fixture(scope="module")
def local_zip(loose, tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "mine.zip"
    path.write_bytes(zip_of(loose, top=""))
    return path


@pytest.mark.parametrize("place", ["archive", "files", "fewer files", "local archive", "folder", "folder elsewhere"])
def test_wherever_they_are(get, there, stocked, tmp_path, loose, local_zip, place, monkeypatch):
    def refuse(*arguments):
        raise OSError(18, "Invalid cross-device link")

    if place == "folder elsewhere":
        monkeypatch.setattr(os, "link", refuse)
    if place == "fewer files":
        stocked.files = {name: stocked.files[name] for name in stocked.files if name.removeprefix("files/") in REQUIRED}
    remote = {"archive": "hpob-data.zip?download=", "files": "files/", "fewer files": "files"}
    local = local_zip if place == "local archive" else loose
    url = stocked.url(remote[place]) if place in remote else str(local)
    assert get(url) == f"{tmp_path / 'out'}: {HOLDS}, from {url}"
    there(REQUIRED if place == "fewer files" else None)
    assert local.exists()
    if "files" in place:  # the small file, and the one that tells most, come first
        names = [path for path, *_ in stocked.asked]
        assert names[:2] == ["files/bo-initializations.json", "files/meta-test-dataset.json"]


NOT_WHOLE = "must be a whole zip archive"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        *((f"files/{name}", lambda whole: None, f"{name} answered 404") for name in sorted(REQUIRED)),
        ("hpob-data.zip", lambda whole: b"<!DOCTYPE html><p>", "must be a zip archive, but .* '<!DOCTYPE html>"),
        ("hpob-data.zip", lambda whole: b"PK\x03\x04" + bytes(5000), NOT_WHOLE),
        ("hpob-data.zip", lambda whole: b"PK\x05\x06" + bytes(18), "must have one folder that holds bo-init"),
        ("hpob-data.zip", lambda whole: whole[:-100], NOT_WHOLE),
        ("hpob-data.zip", lambda whole: whole.replace(b"hpob-data/bo-", b"hpob-data/../"), "must have one folder"),
    ],
)
def test_what_cannot_be_had_as_it_must_be(get, there, stocked, tmp_path, name, change, message):
    whole, url = stocked.files[name], stocked.url(name if name == "hpob-data.zip" else "files")
    stocked.files[name] = change(whole)
    with pytest.raises(DataError, match=message) as raised:
        get(url)
    assert url in str(raised.value)
    assert not (tmp_path / "out").exists()
    stocked.files[name] = whole  # the same mark, but nothing of the other is left
    get(url)
    there()


@pytest.mark.parametrize(
    ("place", "stops", "asked"),
    [
        ("hpob-data.zip", [1500], ("hpob-data.zip", "bytes=1500-")),
        ("files", [10**9, 10**9, 600], ("files/meta-validation-dataset.json", "bytes=600-")),
    ],
)
def test_broken_off_and_gone_on_with(get, there, stocked, tmp_path, place, stops, asked):
    for sent in (stops, []):
        stocked.stops = [*sent, *[0] * 9]
        with pytest.raises(DataError, match="rerun the command to resume"):
            get(stocked.url(place))
        assert [path.name for path in tmp_path.iterdir()] == ["out.part"]
    stocked.stops, stocked.asked = [], []
    get(stocked.url(place))
    assert stocked.asked[0][:2] == asked
    there()


def test_there_already(get, stocked, tmp_path, loose):
    url, out = stocked.url("hpob-data.zip"), tmp_path / "out"
    get(url)
    stocked.asked.clear()
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    assert get(url) == f"{out} is there already: {HOLDS}"
    assert stocked.asked == []
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before
    # Also where somebody has put it there by hand.
    shutil.copytree(loose, tmp_path / "copy")
    assert "is there already" in get("http://127.0.0.1:9/a.zip", out="copy")
    assert not (tmp_path / "copy" / MARKER).exists()


def put(path, text):
    path.unlink()
    path.write_text(text)


OURS_ALONE = "the folder must be new, empty, or hold hpo-b already, but"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda out: (out / "bo-initializations.json").unlink(), "is no longer the file that was downloaded"),
        (lambda out: put(out / MARKER, ""), OURS_ALONE),
        (lambda out: put(out / MARKER, "[]"), OURS_ALONE),
        (lambda out: put(out / MARKER, '{"files": {}}'), OURS_ALONE),
        (lambda out: put(out / MARKER, '{"collection": "hpo-b", "files": 3}'), OURS_ALONE),
        (lambda out: [path.unlink() for path in out.glob("*.json")] + [(out / "thesis.tex").touch()], OURS_ALONE),
        (lambda out: [shutil.rmtree(out), out.write_text("years of work")], OURS_ALONE),
    ],
    ids=["lacks a file", "empty", "list", "no collection", "no files", "another folder", "file"],
)
def test_something_else_is_there(get, stocked, tmp_path, loose, change, said):
    get(str(loose))
    change(tmp_path / "out")
    with pytest.raises(DataError, match=said):
        get(stocked.url("hpob-data.zip"))
    assert stocked.asked == []
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_empty_folder_and_link(get, there, stocked, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "by-link").symlink_to(tmp_path / "out")
    get(stocked.url("hpob-data.zip"), out="by-link")
    assert (tmp_path / "by-link").is_symlink()
    (tmp_path / "by-link").unlink()
    there()


def test_too_full_to_unpack(get, there, stocked, tmp_path, monkeypatch):
    """What was fetched stays, so that nothing is fetched twice once there is room."""
    usage, checks = shutil.disk_usage(tmp_path), []

    def free(path):
        checks.append(path)
        return usage if len(checks) == 1 else usage._replace(free=100)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", free)
        with pytest.raises(DataError, match="only 100 bytes are free"):
            get(stocked.url("hpob-data.zip"))
    assert not (tmp_path / "out").exists()
    stocked.asked.clear()
    get(stocked.url("hpob-data.zip"))
    assert stocked.asked == []
    there()


def test_one_at_a_time(get, stocked, tmp_path):
    (tmp_path / "out.part").mkdir()
    handle = os.open(tmp_path / "out.part", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="but another is running"):
            get(stocked.url("hpob-data.zip"))
        assert (tmp_path / "out.part").exists()
    finally:
        os.close(handle)


KILLED = """
import sys
from dre_jax.hpob.download import download
from dre_jax.hpob.download.contents import Expected

class Slow:
    def progress(self, what, done, total):
        if what.startswith(sys.argv[3]):
            print("now", flush=True)
            sys.stdin.read()
    def note(self, text):
        pass

download.download("hpo-b", sys.argv[2], url=sys.argv[1], expected=Expected(spaces=1, test_tasks=2), watch=Slow())
"""


@pytest.mark.multiprocess
@pytest.mark.parametrize(
    "stage", ["hpob-data.zip", *(pytest.param(stage, marks=pytest.mark.thorough) for stage in ("unpack", "check"))]
)
def test_killed(get, there, stocked, tmp_path, stage):
    command = [sys.executable, "-c", KILLED, stocked.url("hpob-data.zip"), str(tmp_path / "out"), stage]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"now\n"
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert [path.name for path in tmp_path.iterdir()] == ["out.part"]
    get(stocked.url("hpob-data.zip"))
    there()


@pytest.fixture
def offered(monkeypatch):
    """Sets the places that are tried where none is named."""

    def offer(*places):
        changed = dataclasses.replace(sources.COLLECTIONS["hpo-b"], sources=places)
        monkeypatch.setitem(sources.COLLECTIONS, "hpo-b", changed)

    return offer


def test_falls_back_to_loose_files(get, there, stocked, offered, heard):
    del stocked.files["hpob-data.zip"]
    offered(Source(stocked.url("hpob-data.zip"), True), Source(stocked.url("files"), False))
    assert get(None).endswith(stocked.url("files"))
    there()
    assert heard.notes[0] == f"{stocked.url('hpob-data.zip')} answered 404 Not Found; trying {stocked.url('files')}"


def test_does_not_fall_back_from_half_an_archive(get, stocked, tmp_path, offered):
    stocked.stops = [1500, *[0] * 9]
    offered(Source(stocked.url("hpob-data.zip"), True), Source(stocked.url("files"), False))
    with pytest.raises(DataError, match="rerun the command to resume"):
        get(None)
    assert {path for path, *_ in stocked.asked} == {"hpob-data.zip"}


def test_nothing_anywhere(get, stocked, tmp_path, offered):
    offered(Source(stocked.url("a.zip"), True), Source(stocked.url("b"), False))
    with pytest.raises(DataError, match=r"one of 2 places, but: .*a\.zip answered 404.*; .*json answered 404"):
        get(None)
    assert list(tmp_path.iterdir()) == []


def test_hash(get, there, stocked, tmp_path, offered, heard):
    right = hashlib.sha256(stocked.files["hpob-data.zip"]).hexdigest()
    offered(Source(stocked.url("hpob-data.zip"), True, sha256="0" * 64), Source(stocked.url("files"), False))
    get(None)
    assert f"must have the SHA-256 000000000000.., but what came has {right[:12]}.." in heard.notes[0]
    shutil.rmtree(tmp_path / "out")
    offered(Source(stocked.url("hpob-data.zip"), True, sha256=right))
    assert get(None).endswith("hpob-data.zip")
    there()


@pytest.mark.parametrize(("name", "refused"), [("surrogate-1-3", False), ("surrogate-1-/../../evil", True)])
def test_surrogates_as_loose_files(shop, tmp_path, name, refused):
    names = ["surrogate-1-2", name]
    files = {"summary-stats": {stem: {"y_min": 0.0, "y_max": 1.0} for stem in names}}
    files |= {stem: {"learner": {}} for stem in names}
    shop.files = {f"s/{stem}.json": json.dumps(content).encode() for stem, content in files.items()}
    if refused:
        with pytest.raises(DataError, match="a name must be surrogate-<space>-<dataset>"):
            download.download("hpo-b-surrogates", tmp_path / "out", url=shop.url("s"), expected=SMALL)
        assert [path for path, *_ in shop.asked] == ["s/summary-stats.json"]
        return
    line = download.download("hpo-b-surrogates", tmp_path / "out", url=shop.url("s"), expected=SMALL)
    assert line == f"{tmp_path / 'out'}: surrogates of 2 tasks in 1 search spaces, from {shop.url('s')}"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {MARKER, *(f"{stem}.json" for stem in files)}
