"""A stand-in for the Hugging Face Hub on this machine: what its client asks for, from a folder of files."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Repositories by kind and name, each a mapping from a file's name to its content.

    Attributes:
        asked: methods and paths of all requests.
        commits: what was uploaded, as the client's commit requests have it: lines of JSON.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.asked: list[str] = []
        self.commits: list[list[Any]] = []
        self.created: list[Any] = []

    def add_folder(self, name: str, folder: Path) -> None:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        self.repositories[name] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@contextmanager
def serving(hub: Hub) -> Iterator[str]:
    """The address of a server that has these repositories."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

        def _send(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _json(self, value: Any, status: int = 200) -> None:
            self._send(status, json.dumps(value).encode(), Content_Type="application/json")

        def _missing(self) -> None:
            self._send(404, b'{"error": "Repository not found"}', X_Error_Code="RepoNotFound")

        def do_HEAD(self) -> None:
            self._serve()

        def do_GET(self) -> None:
            self._serve()

        def _serve(self) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            if path.startswith("/api/"):
                _, _, rest = path.removeprefix("/api/").partition("/")
                name = "/".join(rest.split("/")[:2])
                files = hub.repositories.get(name)
                if files is None:
                    self._missing()
                elif "/tree/" in rest:
                    entries = [{"type": "file", "path": file, "size": len(content), "oid": _oid(content)}
                               for file, content in files.items()]  # fmt: skip
                    self._json(entries)
                else:
                    siblings = [{"rfilename": file, "size": len(content)} for file, content in files.items()]
                    self._json({"id": name, "sha": COMMIT, "siblings": siblings, "private": False, "tags": [],
                                "downloads": 0, "likes": 0, "gated": False})  # fmt: skip
                return
            parts = path.removeprefix("/datasets").strip("/").split("/")
            name, file = "/".join(parts[:2]), "/".join(parts[4:])
            content = hub.repositories.get(name, {}).get(file)
            if content is None or parts[2:3] != ["resolve"]:
                self._missing()
                return
            headers = {"ETag": f'"{_oid(content)}"', "X_Repo_Commit": COMMIT, "X_Linked_Size": str(len(content))}
            self._send(200, content, **headers)

        def do_POST(self) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if path == "/api/repos/create":
                asked = json.loads(body)
                hub.created.append(asked)
                name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
                self._json({"url": f"http://{self.headers['Host']}/{name}", "name": name, "id": name})
            elif "/preupload/" in path:
                files = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                         for one in json.loads(body)["files"]]  # fmt: skip
                self._json({"files": files})
            elif "/commit/" in path:
                hub.commits.append([json.loads(line) for line in body.splitlines() if line])
                name = "/".join(path.removeprefix("/api/").split("/")[1:3])
                self._json({"success": True, "commitUrl": f"http://{self.headers['Host']}/{name}/commit/{COMMIT}",
                            "commitOid": COMMIT, "hookOutput": ""})  # fmt: skip
            else:
                self._json({})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
