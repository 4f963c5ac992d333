"""A web server on this machine that misbehaves on request."""

import contextlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Shop:
    """What the server has, how it behaves, and what it was asked."""

    base: str = ""
    files: dict = field(default_factory=dict)  # path: bytes
    etag: str = '"one"'
    modified: str = ""
    ranges: bool = True  # whether it sends a part when asked for one
    checks: bool = True  # whether If-Range is looked at
    length: bool = True  # whether it says how long a file is
    stops: list = field(default_factory=list)  # of each answer in turn: bytes sent before it breaks off
    refuses: list = field(default_factory=list)  # of each answer in turn: a status in place of the file, or 200
    changes: list = field(default_factory=list)  # of each answer in turn: what is done to the shop before it
    headers: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)  # (path, Range, If-Range, status, bytes sent)

    def url(self, path):
        return f"{self.base}/{path}"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        shop = self.server.shop
        if shop.changes:
            shop.changes.pop(0)(shop)
        path = self.path.split("?")[0].removeprefix("/")
        content = shop.files.get(path)
        wanted, guard = self.headers.get("Range"), self.headers.get("If-Range")
        status = shop.refuses.pop(0) if shop.refuses else 200
        status = 404 if status == 200 and content is None else status
        start, headers, body = 0, dict(shop.headers), b""
        if status == 200 and wanted and shop.ranges and (not shop.checks or guard in (shop.etag, shop.modified)):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            status = 206 if start < len(content) else 416
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if status in (200, 206):
            body = content[start:]
            headers |= {"ETag": shop.etag, "Last-Modified": shop.modified}
        if shop.length:
            headers["Content-Length"] = str(len(body))
        body = body[: shop.stops.pop(0)] if body and shop.stops else body
        shop.asked.append((path, wanted, guard, status, len(body)))  # before the client can look
        self.send_response(status)
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)  # and the connection is closed, be it the end or not


@pytest.fixture
def shop(monkeypatch):
    """The shop behind `shop.base`, a URL on this machine that no proxy is asked for."""
    monkeypatch.setenv("no_proxy", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.shop = Shop(base=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.shop
    server.shutdown()
    thread.join(10)
    server.server_close()


class Heard:
    """A `Watch` that remembers."""

    def __init__(self):
        self.notes, self.steps = [], []

    def progress(self, what, done, total):
        self.steps.append((what, done, total))

    def note(self, text):
        self.notes.append(text)


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def small_disk():
    """A context in which no file grows beyond so many bytes, by the kernel's own refusal."""
    resource = pytest.importorskip("resource")

    @contextlib.contextmanager
    def limited(n_bytes):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited
