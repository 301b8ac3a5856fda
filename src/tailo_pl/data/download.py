"""Downloads: a published file, whole and checked or not there at all."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from email.message import Message
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from tailo_pl.data.progress import listener
from tailo_pl.errors import UserError, one_line
from tailo_pl.locks import turn

LARGEST = 20 << 30
"""Bytes; a server that announces more is not believed."""
TRIES = 4
"""Failures in a row, without a byte gained, before we give up."""
PAUSE = 1.0
"""Seconds before the second try; twice as long before each further one."""
TIMEOUT = 30.0
"""Seconds without a sign of the server."""
_BLOCK_BYTES = 1 << 18
_BUSY = (408, 429, 500, 502, 503, 504)

log = logging.getLogger(__name__)


def fetch(url: str, target: Path, *, check: Callable[[Path], None] | None = None) -> None:
    """Download a file. What has arrived waits beside it as `.part` and is continued after an interruption.

    Args:
        url: the published address. Where it is http, https is tried first.
        target: where the file goes.
        check: raises `UserError` for a file that is not what it should be; it is then thrown away.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise UserError(f"{url}: expected an http or https address")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _part_of(target) as part:
            if not target.exists():  # otherwise another process was faster
                _download(url, part, check)
                part.publish(target)
    except _Failed as error:
        raise UserError(
            f"{target}: not there, and {url} cannot be downloaded ({error}); put the file there yourself, or use "
            "source=bundled, which needs no download"
        ) from error
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror or error})") from error


class _Failed(Exception):
    """An address does not give the file."""


class _Unreachable(_Failed):
    """There is not even an answer."""


class _Broken(Exception):
    """The connection broke; another try may go on from there."""


@dataclass(frozen=True)
class _Version:
    """Which version of a published file a part belongs to.

    Args:
        url: the published address.
        validator: by which the server knows the version.
        size: of the whole file in bytes; None: the server does not say.
    """

    url: str
    validator: str
    size: int | None


class _Part:
    """What has arrived so far, and of which version; that is noted in a file beside, for the next process."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self._file = path, file
        self._note = path.with_name(f"{path.name}.json")
        try:
            self.version: _Version | None = _Version(**json.loads(self._note.read_text()))
        except (OSError, ValueError, TypeError):
            self.version = None

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def restart(self, version: _Version | None = None) -> None:
        """Forget what has arrived. Without a version what comes next cannot be continued."""
        self._file.truncate(0)
        self._note.unlink(missing_ok=True)
        self.version = version
        if version:
            self._note.write_text(json.dumps(asdict(version)))

    def append(self, block: bytes) -> None:
        self._file.write(block)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def publish(self, target: Path) -> None:
        """The file appears at once and whole."""
        os.fsync(self._file.fileno())
        os.replace(self.path, target)
        self._note.unlink(missing_ok=True)


@contextmanager
def _part_of(target: Path) -> Iterator[_Part]:
    """The part of a file, for this process alone: where another one has it, we wait."""
    path = target.with_name(f"{target.name}.part")
    with turn(target.with_name(f".{target.name}.lock"), str(target)), path.open("ab", buffering=0) as file:
        part = _Part(path, file)
        try:
            yield part
        finally:
            if path.exists() and not part.size:
                part.discard()


def _download(url: str, part: _Part, check: Callable[[Path], None] | None) -> None:
    """Fill the part from the first address that gives what is expected."""
    split = urlsplit(url)
    if split.scheme == "http" and split.port is None:
        try:
            _download_from(split._replace(scheme="https").geturl(), url, part, check)
            return
        except _Failed as error:
            log.debug("%s: not to be had by https (%s)", url, error)
    _download_from(url, url, part, check)


def _download_from(address: str, url: str, part: _Part, check: Callable[[Path], None] | None) -> None:
    """Ask until everything is there, or nothing more comes."""
    failures, most = 0, part.size
    while True:
        try:
            _receive(address, url, part)
            break
        except _Unreachable as error:
            if not failures:  # no network: no use in waiting
                raise
            reason = str(error)
        except _Broken as error:
            reason = str(error)
        failures = 1 if part.size > most else failures + 1
        most = max(most, part.size)
        if failures >= TRIES:
            raise _Failed(reason)
        log.info("%s: %s, trying again", address, reason)
        time.sleep(PAUSE * 2 ** (failures - 1))
    if check is not None:
        try:
            check(part.path)
        except UserError as error:
            part.restart()
            raise _Failed("the file sent: " + str(error).removeprefix(f"{part.path}: ")) from error


def _receive(address: str, url: str, part: _Part) -> None:
    """One request for all that is missing."""
    headers = {"User-Agent": "tailo_pl", "Accept-Encoding": "identity"}
    if part.version is None or part.version.url != url:
        part.restart()
    have = part.size
    if part.version and have:
        # A server whose file has changed since then sends all of it.
        headers |= {"Range": f"bytes={have}-", "If-Range": part.version.validator}
    try:
        response = _opener().open(urllib.request.Request(address, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and have:
                if part.version and _content_range(error.headers)[1] == have == part.version.size:
                    return  # everything had arrived already
                part.restart()
                raise _Broken("the file has changed on the server") from error
            answer = f"the server answers {error.code} {one_line(error.reason)}"
            raise (_Broken if error.code in _BUSY else _Failed)(answer) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Unreachable(_reason(error)) from error
    with response:
        _copy(response, part, _begin(response, url, part))


def _begin(response: Any, url: str, part: _Part) -> int | None:
    """Get the part ready for what follows; how large the whole file is, where the server says so."""
    length = _number(response.headers.get("Content-Length"))
    if response.status == 200:
        total, validator = length, _validator(response.headers)
        part.restart(_Version(url, validator, total) if validator else None)
    elif response.status == 206 and part.version and part.size:
        start, total = _content_range(response.headers)
        promised = part.size + length if length is not None else total
        if start != part.size or not total == promised == part.version.size:
            part.restart()
            raise _Broken("the server sends another piece than the one asked for")
    else:
        raise _Failed(f"the server answers {response.status} {one_line(response.reason)}")
    if total is not None:
        _require_room(url, part, total)
    return total


def _copy(response: Any, part: _Part, total: int | None) -> None:
    tell, done = listener.get(), part.size
    most = LARGEST if total is None else total
    what = f"{part.path.name.removesuffix('.part')} (download)"
    while True:
        try:
            block = response.read1(_BLOCK_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _Broken(_reason(error)) from error
        if not block:
            break
        done += len(block)
        if done > most:
            part.restart()
            raise _Failed(f"more than {most:,} bytes sent")
        part.append(block)
        if total:
            tell(what, done, total)
    if total is not None and done < total:
        raise _Broken(f"the connection broke off after {done:,} of {total:,} bytes")


def _require_room(url: str, part: _Part, total: int) -> None:
    if total > LARGEST:
        raise UserError(f"{url}: {total:,} bytes announced, expected at most {LARGEST:,}")
    free, missing = shutil.disk_usage(part.path.parent).free, total - part.size
    if missing > free:
        raise UserError(f"{part.path.parent}: {free:,} bytes free, expected {missing:,} for {url}")


def _opener() -> urllib.request.OpenerDirector:
    """Knows http and https only, wherever a server may send us."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def _validator(headers: Message) -> str | None:
    """What names the version of a file: its tag (a weak one does not promise equal bytes) or its date."""
    tag = headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")


def _content_range(headers: Message) -> tuple[int | None, int | None]:
    """First byte sent and size of the whole file, from `bytes 5-9/10` or `bytes */10`."""
    found = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+)", headers.get("Content-Range", ""))
    return (_number(found.group(1)), _number(found.group(2))) if found else (None, None)


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,18}", text) else None


def _reason(error: BaseException) -> str:
    """What went wrong, without urllib's wrapping."""
    inner = getattr(error, "reason", None)
    error = inner if isinstance(inner, BaseException) else error
    return one_line(getattr(error, "strerror", None) or error) or type(error).__name__
