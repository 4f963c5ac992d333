"""One file over HTTP, from a server that does all that servers do."""

import copy
import shutil
import socket
from itertools import pairwise

import numpy as np
import pytest

from dre_jax.errors import DataError
from dre_jax.hpob.download.fetch import JSON, ZIP, Patience, Refused, Unreachable, fetch

CONTENT = b"PK\x03\x04" + np.random.default_rng(0).bytes(300_000)
OTHER = b"PK\x03\x04" + np.random.default_rng(1).bytes(250_000)


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def get(shop, tmp_path, pauses, heard):
    """Fetches `a.zip` into the test's folder from a server that behaves as told; the bytes that are there then."""
    shop.files["a.zip"] = CONTENT

    def get(server=(), kind=ZIP, path="a.zip", **patience):
        vars(shop).update(copy.deepcopy(dict(server)))
        with_sleep = Patience(sleep=pauses.append, timeout=5, **{"worthwhile": 1} | patience)
        fetch(shop.url(path), tmp_path / path, kind, patience=with_sleep, watch=heard)
        return (tmp_path / path).read_bytes()

    return get


@pytest.fixture
def broken_off(get, shop):
    """Leaves the first 100,000 bytes behind, of a server that then is well again."""
    with pytest.raises(Unreachable, match=r"broke off after 0\.1 MB of 0\.3 MB: ended too early"):
        get({"stops": [100_000, *[0] * 9]}, attempts=4)
    shop.stops, shop.asked = [], []


def ranges(shop):
    return [asked[1] for asked in shop.asked]


def test_whole_file(get, shop, tmp_path, heard, pauses):
    assert get() == CONTENT
    assert (len(shop.asked), pauses, heard.notes) == (1, [], [])
    assert not (tmp_path / "a.zip.part").exists()
    assert heard.steps[-1] == ("a.zip", len(CONTENT), len(CONTENT))
    done = [done for _, done, _ in heard.steps]
    assert done == sorted(done)
    assert get() == CONTENT
    assert len(shop.asked) == 1


def test_breaks_off_several_times(get, shop, pauses, heard):
    assert get({"stops": [100_000, 50_000, 120_000]}) == CONTENT
    assert ranges(shop) == [None, "bytes=100000-", "bytes=150000-", "bytes=270000-"]
    assert sum(sent for *_, sent in shop.asked) == len(CONTENT)  # no byte twice
    assert pauses == [1.0, 1.0, 1.0]  # each brought something
    assert heard.notes[0] == "a.zip: ended too early after 0.1 MB; trying again in 1 s"


def test_gives_up_then_goes_on(broken_off, get, shop, tmp_path, pauses):
    assert pauses == [1.0, 2.0, 4.0]
    assert (tmp_path / "a.zip.part").read_bytes() == CONTENT[:100_000]
    assert not (tmp_path / "a.zip").exists()
    assert get() == CONTENT
    assert ranges(shop) == ["bytes=100000-"]


WHOLE, ONE, REST, MODIFIED = (None, None, 200), '"one"', "bytes=100000-", "Mon, 02 Jan 2023 10:00:00 GMT"


def becomes(content):
    """Another version before the second answer."""

    def change(shop):
        shop.files["a.zip"], shop.etag = content, '"two"'

    return {"stops": [100_000], "changes": [lambda shop: None, change]}


@pytest.mark.parametrize(
    ("server", "asked", "content"),
    [
        ({"length": False}, [WHOLE], CONTENT),
        # Only a mark that promises equal bytes is gone on with.
        ({"stops": [100_000]}, [WHOLE, (REST, ONE, 206)], CONTENT),
        ({"stops": [100_000], "etag": "", "modified": MODIFIED}, [WHOLE, (REST, MODIFIED, 206)], CONTENT),
        ({"stops": [100_000], "etag": ""}, [WHOLE, WHOLE], CONTENT),
        ({"stops": [100_000], "etag": 'W/"one"'}, [WHOLE, WHOLE], CONTENT),
        (
            {"stops": [100_000, 200_000], "ranges": False},
            [WHOLE, (REST, ONE, 200), ("bytes=200000-", ONE, 200)],
            CONTENT,
        ),
        # Another version is never glued to the first, whatever the server makes of If-Range.
        (becomes(OTHER), [WHOLE, (REST, ONE, 200)], OTHER),
        (becomes(OTHER) | {"checks": False}, [WHOLE, (REST, ONE, 206), WHOLE], OTHER),
        (becomes(OTHER + bytes(50_000)) | {"checks": False}, [WHOLE, (REST, ONE, 206), WHOLE], OTHER + bytes(50_000)),
        (becomes(OTHER[:5000]) | {"checks": False}, [WHOLE, (REST, ONE, 416), WHOLE], OTHER[:5000]),
    ],
)
def test_what_is_asked(get, shop, heard, server, asked, content):
    assert get(server) == content
    found = [(wanted, guard, status) for _, wanted, guard, status, _ in shop.asked]
    assert found == asked
    again = sum(one[-1] == other[-1] == 200 for one, other in pairwise(found))
    assert sum("starting anew" in note for note in heard.notes) == again


@pytest.mark.parametrize(
    ("server", "paused"),
    [({"refuses": [503, 500]}, [1.0, 2.0]), ({"refuses": [429], "headers": {"Retry-After": "7"}}, [7.0])],
)
def test_server_that_is_down_for_a_while(get, pauses, server, paused):
    assert get(server) == CONTENT
    assert pauses == paused


@pytest.mark.parametrize(
    ("server", "patience", "said", "times"),
    [
        ({"refuses": [500] * 9}, {}, "cannot be had: answered 500 Internal Server Error", 3),
        ({"stops": [100_000] * 99, "ranges": False}, {"attempts": 3}, "broke off", 3),
        # What little comes does not count as progress.
        ({"stops": [1000] * 99}, {"attempts": 5, "worthwhile": 5000}, "broke off", 5),
    ],
)
def test_server_that_never_gets_through(get, shop, server, patience, said, times):
    with pytest.raises(Unreachable, match=said):
        get(server, **patience)
    assert len(shop.asked) == times


@pytest.mark.parametrize(
    ("server", "said", "missing"),
    [
        *(({"refuses": [status]}, f"answered {status}", status in (404, 410)) for status in (404, 410, 403, 401)),
        ({"headers": {"Content-Encoding": "gzip"}}, "encoded as 'gzip'", False),
    ],
)
def test_server_that_says_no(get, shop, tmp_path, server, said, missing, pauses):
    with pytest.raises(Refused, match=rf"a\.zip .*{said}") as raised:
        get(server)
    assert raised.value.missing is missing
    assert (len(shop.asked), pauses) == (1, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (ZIP, b"<!DOCTYPE html><title>Sorry</title>"),
        (ZIP, b"version https://git-lfs.github.com/spec/v1\noid sha256:ab"),
        (ZIP, b"PK"),
        (ZIP, b""),
        (JSON, b"<html>" + b" " * 9000),
        (JSON, CONTENT),
    ],
)
def test_something_else(get, shop, tmp_path, kind, content):
    shop.files["a.zip"], shop.headers = content, {"Content-Type": "text/html"}
    with pytest.raises(Refused) as raised:
        get(kind=kind)
    message = str(raised.value)
    assert kind.what in message
    assert "text/html" in message
    assert content[:10].decode("utf-8", "replace").replace("\x03", "\\x03").replace("\x04", "\\x04") in message
    assert list(tmp_path.iterdir()) == []


def test_redirect_keeps_the_range(get, shop):
    """The authors' places answer with a redirect to where the bytes are."""
    server = {"stops": [100_000], "refuses": [302, 200, 302, 200], "headers": {"Location": shop.url("a.zip")}}
    assert get(server, path="b.zip") == CONTENT
    assert [(path, wanted, status) for path, wanted, _, status, _ in shop.asked] == [
        ("b.zip", None, 302),
        ("a.zip", None, 200),
        ("b.zip", "bytes=100000-", 302),
        ("a.zip", "bytes=100000-", 206),
    ]


def test_redirect_to_a_local_file(get, tmp_path):
    secret = tmp_path.parent / "secret"
    secret.write_bytes(CONTENT)
    with pytest.raises(DataError):
        get({"refuses": [302], "headers": {"Location": f"file://{secret}"}})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("listens", "said"), [(False, "Connection refused"), (True, "no answer in time")])
def test_nobody_answers(tmp_path, pauses, listens, said):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        if listens:
            bound.listen()
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/a.zip"
        with pytest.raises(Unreachable, match=said):
            fetch(url, tmp_path / "a.zip", ZIP, patience=Patience(sleep=pauses.append, timeout=0.1))
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://user:pass@host/a.zip", "is no URL that can be fetched"),
        ("http://h/a b.zip", "is no URL that can be fetched"),
        ("http://127.0.0.1:99999999/a.zip", "cannot be had"),
    ],
)
def test_no_proper_url(tmp_path, url, said):
    with pytest.raises(DataError, match=said):
        fetch(url, tmp_path / "a.zip", ZIP, patience=Patience(sleep=lambda seconds: None, timeout=5))


@pytest.mark.parametrize("state", [b"", b"{", b"[]", b'{"url": 3}', "elsewhere"])
def test_a_part_that_nothing_is_known_of(broken_off, get, shop, tmp_path, state):
    path = tmp_path / "a.zip.state"
    elsewhere = path.read_bytes().replace(shop.base.encode(), b"http://elsewhere")
    path.write_bytes(elsewhere if state == "elsewhere" else state)
    assert get() == CONTENT
    assert ranges(shop) == [None]


def test_a_disk_that_cannot_be_written_is_too_small_or_full(get, shop, tmp_path, small_disk, monkeypatch):
    """Full in the middle of the file: what came before is gone on from."""
    (tmp_path / "a.zip.part").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        get()
    (tmp_path / "a.zip.part").rmdir()
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=200_000))
        with pytest.raises(DataError, match=r"needs 0.3 MB, but only 0.2 MB are free"):
            get()
    with small_disk(150_000), pytest.raises(DataError, match=r"a\.zip\.part cannot be written: File too large"):
        get()
    assert (tmp_path / "a.zip.part").read_bytes() == CONTENT[:150_000]
    shop.asked.clear()
    assert get() == CONTENT
    assert ranges(shop) == ["bytes=150000-"]
