"""Downloads from a server on this machine that can break off, change its mind, or be missing."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import h5py
import numpy as np
import pytest

from tailo_pl.data import download
from tailo_pl.data.download import fetch
from tailo_pl.data.progress import listener
from tailo_pl.data.sources import d4rl_datasets
from tailo_pl.data.sources.d4rl import D4RL
from tailo_pl.errors import UserError

CONTENT = np.random.default_rng(0).bytes(1_000_000)


@dataclass
class Published:
    """What the server has, how it behaves, and what it was asked for.

    Args:
        content: of every path.
        tag: names its version, by ETag; `date` does by Last-Modified.
        ranges: whether the server knows Range.
        breaks: after so many bytes of each answer the connection breaks off; taken one by one, then none does.
        answers: statuses with which the first requests are answered instead.
        headers: that replace those of the answer; None leaves one out.
        reason: what stands behind the status; None: what usually does.
        redirect: address to which requests for /moved are sent on.
    """

    content: bytes = CONTENT
    tag: str | None = '"one"'
    date: str | None = None
    ranges: bool = True
    breaks: list[int] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str | None] = field(default_factory=dict)
    reason: str | None = None
    redirect: str | None = None
    asked: list[dict[str, str]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        published: Published = self.server.published  # type: ignore[attr-defined]
        published.asked.append(dict(self.headers))
        status, start, content = self._answer(published)
        headers = {"Content-Length": str(len(content) - start), "ETag": published.tag, "Last-Modified": published.date}
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if status == 416:
            headers["Content-Range"] = f"bytes */{len(published.content)}"
        if status == 302:
            headers["Location"] = published.redirect
        self.send_response(status, published.reason)
        for name, value in {**headers, **published.headers, "Connection": "close"}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        body = content[start:]
        if status in (200, 206) and published.breaks:
            body = body[: published.breaks.pop(0)]
        published.sent.append(len(body))
        self.wfile.write(body)
        self.close_connection = True

    def _answer(self, published: Published) -> tuple[int, int, bytes]:
        """Status, first byte, and everything of which bytes are sent."""
        if published.answers:
            return published.answers.pop(0), 0, b"no"
        if self.path.startswith("/moved"):
            return 302, 0, b""
        wanted, condition = self.headers.get("Range"), self.headers.get("If-Range")
        if wanted and published.ranges and condition in (None, published.tag, published.date):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            return (206, start, published.content) if start < len(published.content) else (416, 0, b"")
        return 200, 0, published.content

    def log_message(self, *given: object) -> None:
        return None


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Published]:
    monkeypatch.setattr(download, "PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    serving = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    published = Published(url=f"http://127.0.0.1:{serving.server_port}/some/data.bin")
    serving.published = published  # type: ignore[attr-defined]
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield published
    serving.shutdown()
    serving.server_close()
    thread.join()


def there(folder: Path) -> list[str]:
    """Names of the files in a folder, but for locks."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def refused(server: Published, target: Path, **arguments) -> str:
    """The one line with which a download ends; nothing is at the target."""
    with pytest.raises(UserError) as caught:
        fetch(server.url, target, **arguments)
    assert not target.exists()
    assert str(caught.value).isprintable()
    return str(caught.value)


def interrupted(server: Published, target: Path, after: int) -> None:
    """Let a download break off for good after some bytes."""
    server.breaks, server.answers = [after], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(download, "TRIES", 1)
        refused(server, target)
    server.asked.clear()
    server.sent.clear()


class TestWhole:
    def test_plain(self, server: Published, tmp_path: Path) -> None:
        fetch(server.url, tmp_path / "new" / "folder" / "data.bin")
        assert (tmp_path / "new" / "folder" / "data.bin").read_bytes() == CONTENT
        assert there(tmp_path / "new" / "folder") == ["data.bin"]
        assert "Range" not in server.asked[0]

    def test_progress_is_told(self, server: Published, tmp_path: Path) -> None:
        told: list[tuple[str, int, int]] = []
        token = listener.set(lambda *given: told.append(given))
        try:
            fetch(server.url, tmp_path / "data.bin")
        finally:
            listener.reset(token)
        assert {(what, total) for what, _, total in told} == {("data.bin (download)", len(CONTENT))}
        done = [done for _, done, _ in told]
        assert done == sorted(done) and done[-1] == len(CONTENT)

    def test_without_a_length(self, server: Published, tmp_path: Path) -> None:
        server.headers = {"Content-Length": None}
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT

    def test_what_is_there_is_not_asked_for(self, server: Published, tmp_path: Path) -> None:
        (tmp_path / "data.bin").write_bytes(b"mine")
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == b"mine"
        assert not server.asked

    def test_redirects(self, server: Published, tmp_path: Path) -> None:
        server.redirect = server.url
        fetch(server.url.replace("some", "moved"), tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT


class TestResumed:
    def test_only_the_rest_is_asked_for(self, server: Published, tmp_path: Path) -> None:
        server.breaks = [400_000]
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert server.asked[1]["Range"] == "bytes=400000-"
        assert server.asked[1]["If-Range"] == '"one"'
        assert server.sent == [400_000, 600_000]

    def test_by_the_next_process(self, server: Published, tmp_path: Path) -> None:
        interrupted(server, tmp_path / "data.bin", 400_000)
        assert there(tmp_path) == ["data.bin.part", "data.bin.part.json"]
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert [asked["Range"] for asked in server.asked] == ["bytes=400000-"]
        assert server.sent == [600_000]
        assert there(tmp_path) == ["data.bin"]

    def test_again_and_again(self, server: Published, tmp_path: Path) -> None:
        """A try that gained something does not count as a failure."""
        server.breaks = [50_000] * 12
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert server.sent == [50_000] * 12 + [400_000]

    def test_by_date(self, server: Published, tmp_path: Path) -> None:
        server.tag, server.date = 'W/"weak"', "Wed, 21 Oct 2020 07:28:00 GMT"
        server.breaks = [400_000]
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert server.asked[1]["If-Range"] == server.date
        assert server.sent == [400_000, 600_000]

    def test_anew_without_a_version(self, server: Published, tmp_path: Path) -> None:
        server.tag, server.breaks = None, [400_000]
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert "Range" not in server.asked[1]

    def test_server_that_ignores_ranges(self, server: Published, tmp_path: Path) -> None:
        server.ranges, server.breaks = False, [400_000]
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert server.sent == [400_000, 1_000_000]

    def test_the_file_has_changed(self, server: Published, tmp_path: Path) -> None:
        interrupted(server, tmp_path / "data.bin", 400_000)
        server.content, server.tag = CONTENT[::-1], '"two"'
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT[::-1]

    def test_the_file_has_changed_and_the_server_does_not_care(self, server: Published, tmp_path: Path) -> None:
        """A server that ignores If-Range: another size gives it away."""
        interrupted(server, tmp_path / "data.bin", 400_000)
        server.content, server.headers = CONTENT[::-1] + b"more", {"ETag": '"two"'}
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT[::-1] + b"more"

    def test_the_file_has_become_shorter(self, server: Published, tmp_path: Path) -> None:
        interrupted(server, tmp_path / "data.bin", 400_000)
        server.content = CONTENT[:1000]
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT[:1000]

    def test_everything_had_arrived(self, server: Published, tmp_path: Path) -> None:
        interrupted(server, tmp_path / "data.bin", 400_000)
        (tmp_path / "data.bin.part").write_bytes(CONTENT)
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert server.asked[0]["Range"] == "bytes=1000000-" and server.sent == [0]

    @pytest.mark.parametrize("note", ["", "[]", "{}", '{"url": 1}', "\0"])
    def test_damaged_note(self, server: Published, tmp_path: Path, note: str) -> None:
        interrupted(server, tmp_path / "data.bin", 400_000)
        (tmp_path / "data.bin.part.json").write_text(note)
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert "Range" not in server.asked[0]

    def test_part_of_another_address(self, server: Published, tmp_path: Path) -> None:
        interrupted(server, tmp_path / "data.bin", 400_000)
        note = json.loads((tmp_path / "data.bin.part.json").read_text())
        (tmp_path / "data.bin.part.json").write_text(json.dumps({**note, "url": "http://elsewhere/data.bin"}))
        fetch(server.url, tmp_path / "data.bin")
        assert "Range" not in server.asked[0]

    def test_a_busy_server(self, server: Published, tmp_path: Path) -> None:
        server.answers = [503, 429]
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT

    def test_other_piece_than_asked_for(self, server: Published, tmp_path: Path) -> None:
        interrupted(server, tmp_path / "data.bin", 400_000)
        server.headers = {"Content-Range": "bytes 300000-999999/1000000"}
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT


class TestRefused:
    def test_broken_for_good(self, server: Published, tmp_path: Path) -> None:
        server.breaks = [400_000] + [0] * 20
        message = refused(server, tmp_path / "data.bin")
        assert "broke off after 400,000 of 1,000,000 bytes" in message
        assert len(server.asked) == download.TRIES
        assert (tmp_path / "data.bin.part").stat().st_size == 400_000

    def test_no_such_file(self, server: Published, tmp_path: Path) -> None:
        server.answers = [404]
        message = refused(server, tmp_path / "data.bin")
        assert message.startswith(f"{tmp_path}/data.bin: not there, and {server.url} cannot be downloaded")
        assert "404" in message and "source=bundled" in message
        assert there(tmp_path) == []

    @pytest.mark.parametrize("status", [404, 503, 204])
    def test_what_a_server_says_is_shown_as_plain_text(self, server: Published, tmp_path: Path, status: int) -> None:
        server.answers, server.reason = [status] * 9, "\x1b[2J\x1b]0;title\x07\r\x9bm " + "x" * 5000
        message = refused(server, tmp_path / "data.bin")  # which is printable
        assert f"the server answers {status} ?[2J" in message and len(message) < 700

    def test_longer_than_announced(self, server: Published, tmp_path: Path) -> None:
        server.headers = {"Content-Length": "999000"}
        fetch(server.url, tmp_path / "data.bin")  # HTTP knows no more: what is announced is the file
        assert (tmp_path / "data.bin").stat().st_size == 999_000

    def test_shorter_than_announced(self, server: Published, tmp_path: Path) -> None:
        server.headers = {"Content-Length": "1000500"}
        refused(server, tmp_path / "data.bin")
        assert len(server.asked) < 10

    def test_endless(self, server: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(download, "LARGEST", 500_000)
        server.headers = {"Content-Length": None}
        assert "more than 500,000 bytes sent" in refused(server, tmp_path / "data.bin")
        assert there(tmp_path) == []

    def test_too_large(self, server: Published, tmp_path: Path) -> None:
        server.headers = {"Content-Length": str(21 << 30)}
        assert "22,548,578,304 bytes announced, expected at most" in refused(server, tmp_path / "data.bin")
        assert there(tmp_path) == []

    def test_no_room(self, server: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        usage = download.shutil.disk_usage(tmp_path)._replace(free=999_999)
        monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage)
        message = refused(server, tmp_path / "data.bin")
        assert message.startswith(f"{tmp_path}: 999,999 bytes free, expected 1,000,000")
        assert there(tmp_path) == []

    def test_not_what_was_expected(self, server: Published, tmp_path: Path) -> None:
        def check(path: Path) -> None:
            raise UserError(f"{path}: a cat found, expected a dog")

        message = refused(server, tmp_path / "data.bin", check=check)
        assert "(the file sent: a cat found, expected a dog)" in message
        assert there(tmp_path) == []

    @pytest.mark.parametrize("url", ["ftp://host/file", "file:///etc/hosts", "data:,text", "no address"])
    def test_other_addresses(self, tmp_path: Path, url: str) -> None:
        with pytest.raises(UserError, match="expected an http or https address"):
            fetch(url, tmp_path / "data.bin")

    @pytest.mark.parametrize("url", ["ftp://127.0.0.1/file", "file:///etc/hosts"])
    def test_redirect_to_other_addresses(self, server: Published, tmp_path: Path, url: str) -> None:
        server.redirect, server.url = url, server.url.replace("some", "moved")
        refused(server, tmp_path / "data.bin")
        assert there(tmp_path) == []

    def test_folder_that_cannot_be_written(self, server: Published, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(UserError, match=r"file/below/data\.bin: cannot be written \(Not a directory\)"):
            fetch(server.url, tmp_path / "file" / "below" / "data.bin")

    def test_no_network(self, server: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(download, "PAUSE", 1000.0)  # nobody waits for a server that is not there
        server.url = "http://127.0.0.1:9/data.bin"
        message = refused(server, tmp_path / "data.bin")
        assert message.startswith(f"{tmp_path}/data.bin: not there, and http://127.0.0.1:9/data.bin cannot be")
        assert "Connection refused" in message and "source=bundled" in message
        assert there(tmp_path) == []


class TestHttps:
    def test_tried_first(self, server: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tried = self.watch(monkeypatch, server, works="https")
        fetch("http://somewhere/data.bin", tmp_path / "data.bin")
        assert tried == ["https://somewhere/data.bin"]
        assert (tmp_path / "data.bin").read_bytes() == CONTENT

    def test_published_address_otherwise(
        self, server: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tried = self.watch(monkeypatch, server, works="http")
        fetch("http://somewhere/data.bin", tmp_path / "data.bin")
        assert tried == ["https://somewhere/data.bin", "http://somewhere/data.bin"]
        assert (tmp_path / "data.bin").read_bytes() == CONTENT

    def test_never_less_than_published(
        self, server: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tried = self.watch(monkeypatch, server, works="http")
        with pytest.raises(UserError):
            fetch("https://somewhere/data.bin", tmp_path / "data.bin")
        assert tried == ["https://somewhere/data.bin"]

    def test_another_page_by_https(self, server: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Some hosts answer https with a page of their own."""
        tried = self.watch(monkeypatch, server, works="both")
        checked: list[str] = []

        def check(path: Path) -> None:
            checked.append(hashlib.sha256(path.read_bytes()).hexdigest())
            if len(checked) == 1:
                raise UserError(f"{path}: a page")

        fetch("http://somewhere/data.bin", tmp_path / "data.bin", check=check)
        assert len(tried) == 2
        assert (tmp_path / "data.bin").read_bytes() == CONTENT

    @staticmethod
    def watch(monkeypatch: pytest.MonkeyPatch, server: Published, works: str) -> list[str]:
        """Lead addresses of a host that does not exist to the server, where their scheme is one that works."""
        tried: list[str] = []
        receive = download._receive

        def received(address: str, url: str, part) -> None:
            tried.append(address)
            reached = works in (address.split(":")[0], "both")
            receive(server.url if reached else "http://127.0.0.1:9/data.bin", url, part)

        monkeypatch.setattr(download, "_receive", received)
        return tried


class TestSeveralProcesses:
    @staticmethod
    def start(server: Published, target: Path, before: str = "") -> subprocess.Popen[str]:
        program = f"""
import sys, time
from pathlib import Path
from tailo_pl.data.download import fetch
from tailo_pl.data.progress import listener
{before}
fetch({server.url!r}, Path({str(target)!r}))
"""
        return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)

    def test_one_downloads_the_others_wait(self, server: Published, tmp_path: Path) -> None:
        processes = [self.start(server, tmp_path / "data.bin") for _ in range(3)]
        assert [process.communicate(timeout=120) and process.returncode for process in processes] == [0] * 3
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert len(server.asked) == 1
        assert there(tmp_path) == ["data.bin"]

    def test_what_a_killed_process_left_is_continued(self, server: Published, tmp_path: Path) -> None:
        hangs = "listener.set(lambda *given: (print('going', flush=True), time.sleep(120)))"
        process = self.start(server, tmp_path / "data.bin", hangs)
        assert process.stdout is not None and process.stdout.readline() == "going\n"
        process.kill()
        process.communicate()
        left = (tmp_path / "data.bin.part").stat().st_size
        assert 0 < left < len(CONTENT)
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert server.asked[1]["Range"] == f"bytes={left}-"

    def test_one_process_waits_for_another(self, server: Published, tmp_path: Path) -> None:
        """What the first one has when it ends badly, the second one continues."""
        slow = "listener.set(lambda *given: (print('going', flush=True), time.sleep(0.5), sys.exit(1)))"
        process = self.start(server, tmp_path / "data.bin", slow)
        assert process.stdout is not None and process.stdout.readline() == "going\n"
        fetch(server.url, tmp_path / "data.bin")
        process.communicate(timeout=120)
        assert process.returncode == 1
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert len(server.asked) == 2 and "Range" in server.asked[1]

    def test_disk_without_locks(self, server: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_locks(*given: object) -> None:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(fcntl, "flock", no_locks)
        fetch(server.url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == CONTENT


class TestD4RL:
    """The whole way: a dataset's name, its file on the server, trajectories."""

    @pytest.fixture(autouse=True)
    def folders(self, server: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TAILO_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("D4RL_DATASET_DIR", str(tmp_path / "d4rl"))
        monkeypatch.setattr(d4rl_datasets, "ADDRESS", server.url.removesuffix("/some/data.bin"))
        with h5py.File(tmp_path / "published.hdf5", "w") as file:
            states = np.random.default_rng(0).standard_normal((500, 11)).astype(np.float32)
            file.create_dataset("observations", data=states, compression="gzip")
            file.create_dataset("actions", data=states[:, :3], compression="gzip")
            file.create_dataset("terminals", data=np.arange(500) == 99, compression="gzip")
            file.create_dataset("timeouts", data=np.arange(500) == 299, compression="gzip")
        server.content = (tmp_path / "published.hdf5").read_bytes()

    def test_downloaded_once(self, server: Published, tmp_path: Path) -> None:
        server.breaks = [10_000]
        assert D4RL().part("hopper-expert-v2").lengths.tolist() == [100, 200, 200]
        assert D4RL().part("hopper-expert-v2").lengths.tolist() == [100, 200, 200]
        assert server.sent == [10_000, len(server.content) - 10_000]
        assert there(tmp_path / "d4rl") == ["hopper_expert-v2.hdf5"]

    @pytest.mark.parametrize("content", [b"<html>a page</html>", b"", b"\x89HDF\r\n\x1a\n" + bytes(900)])
    def test_something_else_is_sent(self, server: Published, tmp_path: Path, content: bytes) -> None:
        server.content = content
        with pytest.raises(UserError, match="not an HDF5 file") as caught:
            D4RL().part("hopper-expert-v2")
        assert str(caught.value).startswith(f"{tmp_path}/d4rl/hopper_expert-v2.hdf5: not there")
        assert there(tmp_path / "d4rl") == []

    def test_half_a_file_is_published(self, server: Published, tmp_path: Path) -> None:
        server.content = server.content[: len(server.content) // 2]
        with pytest.raises(UserError, match="truncated"):
            D4RL().part("hopper-expert-v2")
        assert there(tmp_path / "d4rl") == []

    def test_no_network(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(d4rl_datasets, "ADDRESS", "http://127.0.0.1:9")
        with pytest.raises(UserError) as caught:
            D4RL().part("hopper-expert-v2")
        assert str(caught.value) == (
            f"{tmp_path}/d4rl/hopper_expert-v2.hdf5: not there, and "
            "http://127.0.0.1:9/gym_mujoco_v2/hopper_expert-v2.hdf5 cannot be downloaded (Connection refused); "
            "put the file there yourself, or use source=bundled, which needs no download"
        )


def test_waiting_is_logged(server: Published, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        server.breaks = [400_000]
        fetch(server.url, tmp_path / "data.bin")
    assert "broke off after 400,000 of 1,000,000 bytes, trying again" in caplog.text
