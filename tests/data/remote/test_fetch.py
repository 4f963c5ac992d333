"""One file over HTTP, from a server that does all that servers do."""

import json
import shutil
import socket

import numpy as np
import pytest

from dre_jax.data.remote.fetch import JSON, ZIP, Patience, Refused, Unreachable, fetch
from dre_jax.errors import DataError

CONTENT = b"PK\x03\x04" + np.random.default_rng(0).bytes(300_000)
OTHER = b"PK\x03\x04" + np.random.default_rng(1).bytes(250_000)


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def get(shop, tmp_path, pauses, heard):
    """Fetches `a.zip` into the test's folder; the bytes that are there then."""
    shop.files["a.zip"] = CONTENT

    def get(kind=ZIP, path="a.zip", **patience):
        with_sleep = Patience(sleep=pauses.append, timeout=5, **{"worthwhile": 1} | patience)
        fetch(shop.url(path), tmp_path / path, kind, patience=with_sleep, watch=heard)
        return (tmp_path / path).read_bytes()

    return get


def ranges(shop):
    return [asked[1] for asked in shop.asked]


def test_whole_file(get, shop, tmp_path, heard, pauses):
    assert get() == CONTENT
    assert (len(shop.asked), pauses, heard.notes) == (1, [], [])
    assert not (tmp_path / "a.zip.part").exists()
    assert heard.steps[-1] == ("a.zip", len(CONTENT), len(CONTENT))
    done = [done for _, done, _ in heard.steps]
    assert done == sorted(done)


def test_second_call_asks_nothing(get, shop):
    get()
    assert get() == CONTENT
    assert len(shop.asked) == 1


def test_breaks_off_several_times(get, shop, pauses, heard):
    shop.stops = [100_000, 50_000, 120_000]
    assert get() == CONTENT
    assert ranges(shop) == [None, "bytes=100000-", "bytes=150000-", "bytes=270000-"]
    assert [guard for _, _, guard, _, _ in shop.asked] == [None, '"one"', '"one"', '"one"']
    assert sum(sent for *_, sent in shop.asked) == len(CONTENT)  # no byte twice
    assert pauses == [1.0, 1.0, 1.0]  # each brought something
    assert heard.notes[0] == "a.zip: ended too early after 0.1 MB; trying again in 1 s"


def test_gives_up_then_goes_on(get, shop, tmp_path, pauses):
    shop.stops = [100_000, *[0] * 9]
    with pytest.raises(Unreachable, match=r"broke off after 0\.1 MB of 0\.3 MB: ended too early"):
        get(attempts=4)
    assert pauses == [1.0, 2.0, 4.0]
    assert (tmp_path / "a.zip.part").read_bytes() == CONTENT[:100_000]
    assert not (tmp_path / "a.zip").exists()
    shop.stops, shop.asked = [], []
    assert get() == CONTENT
    assert ranges(shop) == ["bytes=100000-"]


def test_little_that_comes_does_not_count_as_progress(get, shop, pauses):
    shop.stops = [1000] * 99
    with pytest.raises(Unreachable):
        get(attempts=5, worthwhile=5000)
    assert len(shop.asked) <= 10


def test_other_version_starts_anew(get, shop, heard):
    def change(shop):
        shop.files["a.zip"], shop.etag = OTHER, '"two"'

    shop.stops, shop.changes = [100_000], [lambda shop: None, change]
    assert get() == OTHER
    assert [(status, guard) for _, _, guard, status, _ in shop.asked] == [(200, None), (200, '"one"')]
    assert any("starting anew" in note for note in heard.notes)


@pytest.mark.parametrize("same_length", [False, True])
def test_other_version_from_a_server_that_ignores_if_range(get, shop, same_length):
    other = OTHER if not same_length else b"PK\x03\x04" + bytes(len(CONTENT) - 4)

    def change(shop):
        shop.files["a.zip"], shop.etag = other, '"two"'

    shop.checks, shop.stops, shop.changes = False, [100_000], [lambda shop: None, change]
    assert get() == other
    assert ranges(shop) == [None, "bytes=100000-", None]


def test_shorter_version_from_a_server_that_ignores_if_range(get, shop):
    def change(shop):
        shop.files["a.zip"], shop.etag = OTHER[:5000], '"two"'

    shop.checks, shop.stops, shop.changes = False, [100_000], [lambda shop: None, change]
    assert get() == OTHER[:5000]
    assert [status for _, _, _, status, _ in shop.asked] == [200, 416, 200]


def test_last_modified_will_do(get, shop):
    shop.etag, shop.modified, shop.stops = "", "Mon, 02 Jan 2023 10:00:00 GMT", [100_000]
    assert get() == CONTENT
    assert shop.asked[1][1:4] == ("bytes=100000-", shop.modified, 206)


@pytest.mark.parametrize("etag", ["", 'W/"one"'])
def test_without_a_mark_it_starts_anew(get, shop, etag):
    shop.etag, shop.stops = etag, [100_000]
    assert get() == CONTENT
    assert ranges(shop) == [None, None]


def test_server_without_ranges(get, shop, heard):
    shop.ranges, shop.stops = False, [100_000, 200_000]
    assert get() == CONTENT
    assert [status for _, _, _, status, _ in shop.asked] == [200, 200, 200]
    assert sum("starting anew" in note for note in heard.notes) == 2


def test_server_without_ranges_that_never_gets_through(get, shop):
    shop.ranges, shop.stops = False, [100_000] * 99
    with pytest.raises(Unreachable, match="broke off"):
        get(attempts=3)
    assert len(shop.asked) == 3


def test_no_length(get, shop):
    shop.length = False
    assert get() == CONTENT


def test_server_that_is_down_for_a_while(get, shop, pauses):
    shop.refuses = [503, 500]
    assert get() == CONTENT
    assert pauses == [1.0, 2.0]


def test_pause_that_the_server_asks_for(get, shop, pauses):
    shop.refuses, shop.headers = [429], {"Retry-After": "7"}
    assert get() == CONTENT
    assert pauses == [7.0]


def test_server_that_stays_down(get, shop, tmp_path):
    shop.refuses = [500] * 9
    with pytest.raises(Unreachable, match="cannot be had: answered 500 Internal Server Error"):
        get()
    assert len(shop.asked) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("status", "missing"), [(404, True), (410, True), (403, False), (401, False)])
def test_server_that_says_no(get, shop, tmp_path, status, missing, pauses):
    shop.refuses = [status]
    with pytest.raises(Refused, match=rf"a\.zip answered {status}") as raised:
        get()
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
        get(kind)
    message = str(raised.value)
    assert kind.what in message
    assert "text/html" in message
    assert content[:10].decode("utf-8", "replace").replace("\x03", "\\x03").replace("\x04", "\\x04") in message
    assert list(tmp_path.iterdir()) == []


def test_encoded_answer(get, shop):
    shop.headers = {"Content-Encoding": "gzip"}
    with pytest.raises(Refused, match="encoded as 'gzip'"):
        get()


def test_redirect_keeps_the_range(get, shop, monkeypatch):
    """The authors' places answer with a redirect to where the bytes are."""
    shop.stops = [100_000]
    from_elsewhere = shop.url("a.zip")
    shop.refuses, shop.headers = [302, 200, 302, 200], {"Location": from_elsewhere}
    assert get(path="b.zip") == CONTENT
    assert [(path, wanted, status) for path, wanted, _, status, _ in shop.asked] == [
        ("b.zip", None, 302),
        ("a.zip", None, 200),
        ("b.zip", "bytes=100000-", 302),
        ("a.zip", "bytes=100000-", 206),
    ]


def test_redirect_to_a_local_file(get, shop, tmp_path):
    secret = tmp_path.parent / "secret"
    secret.write_bytes(CONTENT)
    shop.refuses, shop.headers = [302], {"Location": f"file://{secret}"}
    with pytest.raises(DataError):
        get()
    assert list(tmp_path.iterdir()) == []


def test_nobody_there(tmp_path, pauses):
    with socket.socket() as unused:  # bound, but nobody listens
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/a.zip"
        with pytest.raises(Unreachable, match="Connection refused"):
            fetch(url, tmp_path / "a.zip", ZIP, patience=Patience(sleep=pauses.append, timeout=5))
    assert pauses == [1.0, 2.0]


def test_silent_server(tmp_path, pauses):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/a.zip"
        with pytest.raises(Unreachable, match="no answer in time"):
            fetch(url, tmp_path / "a.zip", ZIP, patience=Patience(sleep=pauses.append, timeout=0.05))


@pytest.mark.parametrize("url", ["http://user:pass@host/a.zip", "http://h/a b.zip", "http://127.0.0.1:99999999/a.zip"])
def test_no_proper_url(tmp_path, url):
    with pytest.raises(DataError, match="a"):
        fetch(url, tmp_path / "a.zip", ZIP, patience=Patience(sleep=lambda seconds: None, timeout=5))


def test_part_of_another_url_is_not_gone_on_with(get, shop, tmp_path):
    shop.stops = [100_000, *[0] * 9]
    with pytest.raises(Unreachable):
        get()
    state = json.loads((tmp_path / "a.zip.state").read_text())
    (tmp_path / "a.zip.state").write_text(json.dumps(state | {"url": "http://elsewhere/a.zip"}))
    shop.stops, shop.asked = [], []
    assert get() == CONTENT
    assert ranges(shop) == [None]


@pytest.mark.parametrize("state", [b"", b"{", b"[]", b'{"url": 3}'])
def test_spoilt_state(get, shop, tmp_path, state):
    (tmp_path / "a.zip.part").write_bytes(OTHER[:50_000])
    (tmp_path / "a.zip.state").write_bytes(state)
    assert get() == CONTENT
    assert ranges(shop) == [None]


def test_too_little_room(get, shop, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=200_000))
    with pytest.raises(DataError, match=r"needs 0.3 MB, but only 0.2 MB are free"):
        get()


def test_full_disk(get, shop, tmp_path, monkeypatch):
    """The kernel's own refusal, in the middle of the file; what came before is gone on from."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, hard))
    try:
        with pytest.raises(DataError, match=r"a\.zip\.part cannot be written: File too large"):
            get()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "a.zip.part").read_bytes() == CONTENT[:150_000]
    shop.asked.clear()
    assert get() == CONTENT
    assert ranges(shop) == ["bytes=150000-"]


def test_folder_that_may_not_be_written(shop, tmp_path, get):
    (tmp_path / "a.zip.part").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        get()
