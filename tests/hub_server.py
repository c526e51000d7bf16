"""A Hugging Face Hub of one data set on this machine, as far as streaming it needs one."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

SHA = "0123456789abcdef0123456789abcdef01234567"


class HubServer(ThreadingHTTPServer):
    """Serves the files of a folder as the data set ``name``; counts bytes sent, and can die on the way."""

    daemon_threads = True

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.name = name
        self.sent = 0  # bytes of data files
        self.dies_after: int | None = None  # bytes of data files after which connections are cut
        self.revisions: set[str] = set()  # asked for with data files

    @property
    def endpoint(self) -> str:
        """What HF_ENDPOINT is to be."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def files(self) -> dict[str, Path]:
        """Files by their path in the repository."""
        paths = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path for path in paths}


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Keep stderr for the command under test."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        asked = self.rfile.read(length).decode()
        entries = [entry for entry in self._entries() if str(entry["path"]) in unquote(asked)]
        self._json(entries)

    def _answer(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        api = f"/api/datasets/{self.server.name}"
        if path == api or path == f"{api}/revision/{SHA}" or path == f"{api}/revision/main":
            siblings = [{"rfilename": name} for name in self.server.files()]
            self._json({"id": self.server.name, "sha": SHA, "private": False, "tags": [], "siblings": siblings})
        elif path.startswith(f"{api}/revision/"):
            self._error("RevisionNotFound")
        elif path.startswith(f"{api}/tree/"):
            below = path.split("/tree/")[1].partition("/")[2]
            self._json([entry for entry in self._entries() if str(entry["path"]).startswith(below)])
        elif path.startswith(f"/datasets/{self.server.name}/resolve/"):
            revision, _, name = path.split("/resolve/")[1].partition("/")
            file = self.server.files().get(name)
            if file is None:
                self._error("EntryNotFound")
            else:
                self.server.revisions.add(revision)
                self._file(file, body)
        else:
            self._error("RepoNotFound")

    def _entries(self) -> list[dict[str, object]]:
        files = self.server.files().items()
        return [
            {"type": "file", "oid": sha1(path.read_bytes()).hexdigest(), "size": path.stat().st_size, "path": name}
            for name, path in files
        ]

    def _file(self, path: Path, body: bool) -> None:
        data = path.read_bytes()
        start, stop = 0, len(data)
        asked = self.headers.get("Range")
        if asked:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last or stop) + 1, stop)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
        self.send_header("Content-Length", str(stop - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", SHA)
        self.end_headers()
        if not body:
            return
        if path.name == "README.md":
            self.wfile.write(data[start:stop])
            return
        limit = self.server.dies_after
        stop = stop if limit is None else min(stop, start + max(0, limit - self.server.sent))
        self.wfile.write(data[start:stop])
        self.server.sent += stop - start
        if limit is not None and self.server.sent >= limit:
            self.close_connection = True
            self.connection.close()

    def _json(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _error(self, code: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def hub_server(folder: Path, name: str) -> Iterator[HubServer]:
    """Run the server in a thread."""
    server = HubServer(folder, name)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
