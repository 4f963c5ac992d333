"""One file over HTTP, in as many attempts and calls as it takes.

What has come lies beside the target as `.part`, with the server's mark of that version (ETag or Last-Modified) in
`.state`. A later attempt asks for the rest only if the mark still holds (Range with If-Range, RFC 9110), so that two
versions of a file are never glued together; without a mark it starts anew.
"""

from __future__ import annotations

import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException, HTTPResponse, InvalidURL
from pathlib import Path
from typing import NamedTuple, Protocol

from dre_jax.errors import DataError
from dre_jax.hpob.download.part import Part, megabytes

__all__ = ["JSON", "ZIP", "Kind", "Patience", "Refused", "Silent", "Unreachable", "Watch", "fetch"]

_CHUNK = 1 << 16
_HEAD = 512
_MISSING, _OVER = (404, 410), 416
_PASSING = (408, 425, 429)  # with all 5xx: another attempt may do
_LONGEST_HINT = 60.0


class Refused(DataError):
    """The server answers, but with no such file: another attempt would get the same."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class Unreachable(DataError):
    """The file did not come, or not to its end: another attempt may do better."""


class Watch(Protocol):
    """Is told what goes on."""

    def progress(self, what: str, done: int, total: int) -> None:
        """So many bytes of `what` are done; a total of 0 is one that is not known."""

    def note(self, text: str) -> None:
        """Something that a reader should know."""


class Silent:
    """A `Watch` that tells nobody."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a server that breaks off is put up with; pauses and timeout in seconds.

    Pauses double from `pause` to `longest_pause`. An attempt that brought `worthwhile` new bytes does not count.
    """

    attempts: int = 6
    first_attempts: int = 3  # where the server has not answered at all
    pause: float = 1.0
    longest_pause: float = 30.0
    timeout: float = 30.0
    worthwhile: int = 1 << 20
    sleep: Callable[[float], None] = time.sleep


class Kind(NamedTuple):
    """Kind of a file, judged by its first bytes."""

    what: str
    fits: Callable[[bytes], bool]


ZIP = Kind("a zip archive", lambda head: head.startswith((b"PK\x03\x04", b"PK\x05\x06")))
JSON = Kind("a JSON object", lambda head: head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"))


class _BrokenOff(Exception):
    def __init__(self, reason: str, hint: float = 0.0) -> None:
        super().__init__(reason)
        self.hint = hint  # seconds that the server asks to wait


def fetch(url: str, target: Path, kind: Kind, *, patience: Patience | None = None, watch: Watch | None = None) -> None:
    """Downloads `url` to `target`, going on from what an earlier call left beside it; at once if it is all there.

    Raises:
      Refused: for an answer that says no (`missing` for 404 and 410), and for a file that is not of this kind.
      Unreachable: when the patience is used up; the same call goes on.
      DataError: when the disk is full or not writable, or has too little room for the rest.
    """
    patience, watch = patience or Patience(), watch or Silent()
    part = Part(target, url)
    if part.is_complete():
        return
    attempt, answered, farthest = 0, False, part.size
    while not part.is_complete():
        try:
            _attempt(part, kind, patience.timeout, watch)
        except _BrokenOff as broken:
            answered = answered or part.size > 0
            attempt = 1 if part.size >= farthest + patience.worthwhile else attempt + 1
            farthest = max(farthest, part.size)
            if attempt >= (patience.attempts if answered else patience.first_attempts):
                raise Unreachable(_given_up(part, broken)) from broken
            pause = max(broken.hint, min(patience.pause * 2 ** (attempt - 1), patience.longest_pause))
            so_far = f" after {megabytes(part.size)}" if part.size else ""
            watch.note(f"{part.target.name}: {broken}{so_far}; trying again in {pause:.0f} s")
            patience.sleep(pause)


def _given_up(part: Part, broken: _BrokenOff) -> str:
    if part.size == 0:
        return f"{part.url} cannot be had: {broken}"
    so_far = megabytes(part.size) + (f" of {megabytes(part.total)}" if part.total else "")
    return f"{part.url} broke off after {so_far}: {broken}"


def _attempt(part: Part, kind: Kind, timeout: float, watch: Watch) -> None:
    """Raises `_BrokenOff` for what another attempt may cure."""
    response = _answer(part, timeout)
    try:
        with response:
            _take(response, part, kind, watch)
    except (HTTPException, OSError) as error:
        raise _BrokenOff(_why(error)) from error
    if part.total is not None and part.size != part.total:
        raise _BrokenOff("ended too early")
    part.finish()


def _answer(part: Part, timeout: float) -> HTTPResponse:
    headers = {"User-Agent": "dre_jax", "Accept": "*/*", "Accept-Encoding": "identity"}
    if part.size and part.mark:
        headers |= {"Range": f"bytes={part.size}-", "If-Range": part.mark}
    try:
        # Only http and https come this far; urllib lets no redirect lead to a local file.
        answer: HTTPResponse = urllib.request.urlopen(
            urllib.request.Request(part.url, headers=headers), timeout=timeout
        )
        return answer
    except urllib.error.HTTPError as error:
        with error:
            raise _rejected(part, error) from error
    except (InvalidURL, ValueError) as error:
        raise Refused(f"{part.url} is no URL that can be fetched: {error}") from error
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise Refused(f"{part.url} cannot be trusted: {reason.verify_message}") from error
        raise _BrokenOff(_why(reason)) from error


def _rejected(part: Part, error: urllib.error.HTTPError) -> Exception:
    if error.code == _OVER and part.size:
        part.discard()
        return _BrokenOff("the file has become shorter")
    answer = f"answered {error.code} {error.reason}".rstrip()
    if error.code >= 500 or error.code in _PASSING:
        hint = error.headers.get("Retry-After", "")
        return _BrokenOff(answer, min(float(hint), _LONGEST_HINT) if hint.isdecimal() else 0.0)
    return Refused(f"{part.url} {answer}", missing=error.code in _MISSING)


def _why(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return f"{reason}" or type(reason).__name__


def _take(response: HTTPResponse, part: Part, kind: Kind, watch: Watch) -> None:
    """Writes the body where it belongs: behind what is there, or in its place."""
    _check_plain(response, part.url)
    head = b""
    if response.status == 200:
        total = _number(response.headers.get("Content-Length"))
        head = _head(response, total)
        if not kind.fits(head):
            part.discard()
            raise Refused(_something_else(part.url, kind, response.headers, head))
        if part.size:
            watch.note(f"{part.target.name}: the server cannot resume at {megabytes(part.size)}; starting anew")
        part.begin(_mark(response.headers), total)
    elif not _goes_on(part, response.headers):
        part.discard()
        raise _BrokenOff("the file has changed")
    part.check_room()
    done = part.size + len(head)
    with part.writer() as write:
        write(head)
        while piece := response.read1(_CHUNK if part.total is None else min(_CHUNK, part.total - done)):
            write(piece)
            done += len(piece)
            watch.progress(part.target.name, done, part.total or 0)


def _check_plain(response: HTTPResponse, url: str) -> None:
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise Refused(f"{url} must come as it is, but the server sent it encoded as {encoding!r}")
    if response.status not in (200, 206):
        raise Refused(f"{url} must be answered with the file, but got status {response.status}")


def _goes_on(part: Part, headers: Message) -> bool:
    """Returns whether a partial answer is the rest of the very file whose beginning is here."""
    found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", headers.get("Content-Range", "").strip())
    if not found or int(found[1]) != part.size:
        return False
    total = None if found[3] == "*" else int(found[3])
    same_mark = _mark(headers) in ("", part.mark)
    return same_mark and total in (None, part.total)


def _mark(headers: Message) -> str:
    """The identifier of this version of the file to the byte; empty where the server gives none."""
    tag = headers.get("ETag", "").strip()
    # A weak tag does not promise equal bytes, and If-Range must not be used with it.
    return tag if tag.startswith('"') else headers.get("Last-Modified", "").strip()


def _head(response: HTTPResponse, total: int | None) -> bytes:
    head, wanted = b"", _HEAD if total is None else min(_HEAD, total)
    while len(head) < wanted and (piece := response.read1(wanted - len(head))):
        head += piece
    if len(head) < wanted and total is not None:
        raise _BrokenOff("ended too early")
    return head


def _something_else(url: str, kind: Kind, headers: Message, head: bytes) -> str:
    start = f"that starts with {head[:40].decode('utf-8', 'replace')!r}" if head else "of no bytes"
    return f"{url} must be {kind.what}, but the server sent {headers.get('Content-Type', 'something')} {start}"


def _number(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdecimal() else None
