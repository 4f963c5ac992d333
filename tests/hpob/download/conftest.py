"""A web server on this machine that misbehaves on request."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        server = self.server
        path = self.path.split("?")[0].removeprefix("/")
        content = server.files.get(path, b"")
        status = server.statuses.pop(0) if server.statuses else 200 if path in server.files else 404
        server.requests.append(path)
        self.send_response(status)
        for name, value in {"Content-Length": len(content), **server.headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content[: server.sent_bytes.pop(0)] if server.sent_bytes else content)


@pytest.fixture
def server(monkeypatch):
    """A server of `files`, which no proxy is asked for; attributes say how it behaves and what it was asked."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("dre_jax.hpob.download.download._PAUSES", (0, 0))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.headers, server.requests = {}, {}, []
    server.statuses = []  # of each answer in turn
    server.sent_bytes = []  # of each answer in turn, before it breaks off
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join(10)
    server.server_close()
