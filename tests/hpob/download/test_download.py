"""HPO-B's data from wherever they are to where they should be, or nothing at all."""

import hashlib
import io
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest

from dre_jax.data import list_spaces, load_space, write_dataset
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.hpob.download import sources
from dre_jax.hpob.download.download import download

HOLDS = "1 search spaces, 2 / 2 / 2 tasks for training / validation / test, 5 initial designs"
COUNTS = {"N_SPACES": 1, "N_TEST_TASKS": 2}


@pytest.fixture(scope="module")
def loose(tmp_path_factory, make_space):
    """A folder of loose files, all of the optional ones among them; treat as read-only."""
    folder, names = tmp_path_factory.mktemp("loose"), [(f"{split}0", f"{split}1") for split in "tve"]
    splits = dict(zip(("train", "validation", "test"), names, strict=True))
    write_dataset(folder, [make_space("svm", n_rows=8, designs=(5, 5), **splits)])
    shutil.copy(folder / "meta-train-dataset.json", folder / "meta-train-dataset-augmented.json")
    for stem in ("meta-dataset-descriptors", "meta-test-tasks-per-space"):
        (folder / f"{stem}.json").write_text("{}")
    return folder


@pytest.fixture
def stocked(server, loose, monkeypatch):
    """The server with the archive and, in another place, the loose files; counts are theirs."""
    for name, count in COUNTS.items():
        monkeypatch.setattr(sources, name, count)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path in loose.iterdir():
            archive.write(path, f"hpob-data/{path.name}")
    server.files = {"a.zip": stream.getvalue()} | {f"files/{path.name}": path.read_bytes() for path in loose.iterdir()}
    server.zip, server.folder = f"{server.url}/a.zip", f"{server.url}/files"
    return server


def assert_complete(tmp_path, loose):
    """Asserts that `out` holds the very files, and that nothing lies beside it."""
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {path.name for path in loose.iterdir()}
    assert all((out / path.name).read_bytes() == path.read_bytes() for path in loose.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert list_spaces(out) == ["svm"]
    assert sorted(load_space(out, "svm").test) == ["e0", "e1"]


@pytest.mark.parametrize("place", ["archive", "files", "local archive", "local folder", "empty target"])
def test_every_source(stocked, tmp_path, loose, tmp_path_factory, place):
    local = tmp_path_factory.mktemp("archive") / "mine.zip"
    local.write_bytes(stocked.files["a.zip"])
    urls = {"archive": f"{stocked.zip}?download=", "files": stocked.folder, "local archive": str(local)}
    url = urls.get(place, str(loose))
    if place == "empty target":
        (tmp_path / "out").mkdir()
    out, steps = tmp_path / "out", []
    summary = download("hpo-b", out, url=url, progress=lambda *step: steps.append(step))
    assert summary == f"{out}: {HOLDS}, from {url}"
    assert_complete(tmp_path, loose)
    assert local.exists()
    size = len(stocked.files["a.zip"])
    assert (("a.zip", size, size) in steps) is (place == "archive")
    assert all(0 <= done <= total for _, done, total in steps)
    if place == "files":  # the small file, and the one that tells most, come first
        assert stocked.requests[:2] == ["files/bo-initializations.json", "files/meta-test-dataset.json"]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("a.zip", lambda whole: b"<!DOCTYPE html><p>", "must be a whole zip archive.* not a zip file"),
        ("files/meta-train-dataset.json", lambda whole: b"<html>", "must be a JSON object, but starts with b'<html>'"),
        ("files/meta-train-dataset.json", lambda whole: whole[:-9], "not valid JSON at position"),
        ("files/meta-test-dataset.json", lambda whole: whole.replace(b'"svm"', b'"svn"'), "have the search spaces"),
    ],
)
def test_wrong_files(stocked, tmp_path, loose, name, change, message):
    whole, url = stocked.files[name], stocked.zip if name == "a.zip" else stocked.folder
    stocked.files[name] = change(whole)
    with pytest.raises(DataError, match=message) as raised:
        download("hpo-b", tmp_path / "out", url=url)
    assert url in str(raised.value) or name.startswith("files/meta-test")
    assert str(tmp_path) not in str(raised.value)
    assert not (tmp_path / "out").exists()
    stocked.files[name] = whole  # nothing wrong is left
    download("hpo-b", tmp_path / "out", url=url)
    assert_complete(tmp_path, loose)


@pytest.mark.parametrize(
    ("behaviour", "message", "n_requests"),
    [
        ({"statuses": [404]}, "404 Client Error: Not Found for url: http", 1),
        ({"statuses": [503, 500, 502]}, "502 Server Error: Bad Gateway", 3),
        ({"statuses": [302], "headers": {"Location": "file:///etc/passwd"}}, "No connection adapters", 1),
        ({"sent_bytes": [1000, 10**9]}, None, 2),
    ],
)
def test_unreliable_server(stocked, tmp_path, loose, behaviour, message, n_requests):
    vars(stocked).update(behaviour)
    if message is None:
        download("hpo-b", tmp_path / "out", url=stocked.zip)
        assert_complete(tmp_path, loose)
    else:
        with pytest.raises(DataError, match=message):
            download("hpo-b", tmp_path / "out", url=stocked.zip)
        assert list(tmp_path.iterdir()) == []
    assert len(stocked.requests) == n_requests


def test_rerun_downloads_the_other_files(stocked, tmp_path, loose):
    stocked.statuses = [200, 200, 503, 503, 503]
    with pytest.raises(DataError, match="503 Server Error"):
        download("hpo-b", tmp_path / "out", url=stocked.folder)
    assert [path.name for path in tmp_path.iterdir()] == ["out.part"]
    stocked.requests.clear()
    download("hpo-b", tmp_path / "out", url=stocked.folder)
    assert stocked.requests[0] == "files/meta-validation-dataset.json"
    assert_complete(tmp_path, loose)


@pytest.mark.parametrize(
    "change",
    [
        lambda out: (out / "bo-initializations.json").unlink(),
        lambda out: (out / "bo-initializations.json").write_text("{}"),
        lambda out: [path.unlink() for path in out.glob("*.json")] + [(out / "thesis.tex").touch()],
        lambda out: [shutil.rmtree(out), out.write_text("years of work")],
    ],
)
def test_other_content_stays(stocked, tmp_path, loose, change):
    download("hpo-b", tmp_path / "out", url=str(loose))
    change(tmp_path / "out")
    with pytest.raises(DataError, match=r"the folder .*hpo-b"):
        download("hpo-b", tmp_path / "out", url=stocked.zip)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


KILLED = """
import sys
from dre_jax.hpob.download import sources
from dre_jax.hpob.download.download import download

def wait(label, done, total):
    if label.startswith(sys.argv[3]):
        print("now", flush=True)
        sys.stdin.read()

sources.N_SPACES, sources.N_TEST_TASKS = 1, 2
download("hpo-b", sys.argv[2], url=sys.argv[1], progress=wait)
"""


@pytest.mark.multiprocess
@pytest.mark.parametrize("stage", ["a.zip", pytest.param("unpack", marks=pytest.mark.thorough)])
def test_killed(stocked, tmp_path, loose, stage):
    command = [sys.executable, "-c", KILLED, stocked.zip, str(tmp_path / "out"), stage]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"now\n"
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert [path.name for path in tmp_path.iterdir()] == ["out.part"]
    download("hpo-b", tmp_path / "out", url=stocked.zip)
    assert_complete(tmp_path, loose)


def test_hash_of_the_authors(stocked, tmp_path, loose, monkeypatch):
    collection = sources.COLLECTIONS["hpo-b"]
    assert [len(one.sha256) for one in sources.COLLECTIONS.values()] == [64, 64]
    monkeypatch.setitem(sources.COLLECTIONS, "hpo-b", collection._replace(url=stocked.zip))
    with pytest.raises(DataError, match="does not match the known hash"):
        download("hpo-b", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    right = hashlib.sha256(stocked.files["a.zip"]).hexdigest()
    monkeypatch.setitem(sources.COLLECTIONS, "hpo-b", collection._replace(url=stocked.zip, sha256=right))
    assert download("hpo-b", tmp_path / "out").endswith("a.zip")
    assert_complete(tmp_path, loose)


def test_optional_file(stocked, tmp_path):
    del stocked.files["files/meta-dataset-descriptors.json"]
    with pytest.warns(DataWarning, match="meta-dataset-descriptors.json .* 404 "):
        download("hpo-b", tmp_path / "out", url=stocked.folder)
    assert not (tmp_path / "out" / "meta-dataset-descriptors.json").exists()


@pytest.mark.parametrize(
    "text", ["", "ftp://h.org/a.zip", "file:///etc/passwd", "no.zip", "https:///a.zip", "http://u:p@h"]
)
def test_no_sources(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        download("hpo-b", url=text)
    assert list(tmp_path.iterdir()) == []
