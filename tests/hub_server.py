"""A Hugging Face Hub of one data set on this machine, as far as streaming it needs one; it misbehaves on request."""

import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet
import yaml


@dataclass
class Fault:
    """What goes wrong with requests whose path holds ``where``, so many times."""

    kind: Literal["status", "silent", "cut", "reset", "short"]
    where: str = ".parquet"
    times: int = 1
    status: int = 500
    retry_after: str | None = None


class HubServer(ThreadingHTTPServer):
    """Serves the files of a folder as the data set ``name``; counts bytes sent."""

    daemon_threads = True

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.name = name
        self.sha = sha1(str(folder).encode()).hexdigest()  # the one revision; the libraries cache by it
        self.sent = 0  # bytes of data files
        self.revisions: set[str] = set()  # asked for with data files
        self.faults: list[Fault] = []
        self.met: list[str] = []  # kinds of the faults that were met
        self.asked: list[str] = []  # paths of data files, a request each
        self.closing = threading.Event()
        self._lock = threading.Lock()

    def fault(self, path: str) -> Fault | None:
        """The fault that this request meets, if any."""
        with self._lock:
            for fault in self.faults:
                if fault.times and fault.where in path:
                    fault.times -= 1
                    self.met.append(fault.kind)
                    return fault
        return None

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
        wanted = parse_qs(asked)["paths"]
        self._json([entry for entry in self._entries() if entry["path"] in wanted])

    def _answer(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self._fault = self.server.fault(path) if body else None
        if self._fault is not None and self._fault.kind == "status":
            self._status(self._fault)
            return
        if self._fault is not None and self._fault.kind == "silent":
            self.server.closing.wait()
            return
        api = f"/api/datasets/{self.server.name}"
        if path == api or path == f"{api}/revision/{self.server.sha}" or path == f"{api}/revision/main":
            siblings = [{"rfilename": name} for name in self.server.files()]
            self._json(
                {"id": self.server.name, "sha": self.server.sha, "private": False, "tags": [], "siblings": siblings}
            )
        elif path.startswith(f"{api}/revision/"):
            self._error("RevisionNotFound")
        elif path.startswith(f"{api}/tree/"):
            below = PurePosixPath(path.split("/tree/")[1].partition("/")[2])
            deep = "true" in parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower()
            folders = [(PurePosixPath(str(entry["path"])).parents, entry) for entry in self._entries()]
            self._json([entry for above, entry in folders if below in (above if deep else above[:1])])
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
        files = self.server.files()
        folders = {str(above) for name in files for above in PurePosixPath(name).parents[:-1]}
        return [{"type": "directory", "oid": "0" * 40, "size": 0, "path": name} for name in sorted(folders)] + [
            {"type": "file", "oid": sha1(path.read_bytes()).hexdigest(), "size": path.stat().st_size, "path": name}
            for name, path in files.items()
        ]

    def _file(self, path: Path, body: bool) -> None:
        data = path.read_bytes()
        if body:
            self.server.asked.append(path.name)
        start, stop = 0, len(data)
        asked = self.headers.get("Range")
        if asked:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last or stop) + 1, stop)
        if self._fault is not None and self._fault.kind == "short":  # a wrong Content-Length, too
            stop = start + (stop - start) // 2
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
        self.send_header("Content-Length", str(stop - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.server.sha)
        self.end_headers()
        if not body:
            return
        if path.name == "README.md":
            self.wfile.write(data[start:stop])
            return
        if self._fault is not None and self._fault.kind in ("cut", "reset"):
            self.wfile.write(data[start : start + (stop - start) // 2])
            if self._fault.kind == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        self.wfile.write(data[start:stop])
        self.server.sent += stop - start

    def _json(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _status(self, fault: Fault) -> None:
        self.send_response(fault.status)
        if fault.retry_after is not None:
            self.send_header("Retry-After", fault.retry_after)
        self.send_header("Content-Length", "0")
        self.end_headers()

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
        server.closing.set()
        server.shutdown()
        server.server_close()


def in_this_process(monkeypatch: Any, server: HubServer) -> None:
    """Have the libraries of this process, which have read their environment already, ask the server."""
    template = server.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.endpoint)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", server.endpoint)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)  # restored where a test turns it on
    cache = server.folder.parent / "hf_cache"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache / "hub"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(cache / "datasets"))


# --- data sets --------------------------------------------------------------------------------------------------------


def write_parquet(
    folder: Path,
    configuration: str,
    shards: Mapping[str, Sequence[Sequence[Mapping[str, str]]]],
    row_group_size: int = 1000,
    column: str | None = "translation",
    counts: Mapping[str, int] | None = None,
) -> None:
    """A data set as the Hub has it: ``<configuration>/<split>-0000i-of-0000n.parquet`` and a card.

    Args:
        folder: takes another configuration beside those that it has.
        configuration: its name, which is also that of its folder.
        shards: by split, the texts by language of every record of every shard.
        row_group_size: rows.
        column: what holds the texts; beside it stands an ``id``, as in News Commentary; None: a column a language.
        counts: records by split, as the card says; None: it says nothing.
    """
    place = folder / configuration
    place.mkdir(parents=True)
    for split, parts in shards.items():
        for number, records in enumerate(parts):
            if column is None:
                table = pa.Table.from_pylist(list(records))
            else:
                table = pa.table({"id": [str(i) for i in range(len(records))], column: list(records)})
            name = f"{split}-{number:05}-of-{len(parts):05}.parquet"
            pyarrow.parquet.write_table(table, place / name, row_group_size=row_group_size)
    card = folder / "README.md"
    head = yaml.safe_load(card.read_text().strip("-\n")) if card.exists() else {"configs": [], "dataset_info": []}
    files = [{"split": split, "path": f"{configuration}/{split}-*"} for split in shards]
    head["configs"].append({"config_name": configuration, "data_files": files})
    if counts is not None:
        splits = [{"name": split, "num_bytes": 1, "num_examples": count} for split, count in counts.items()]
        features = [{"name": name, "dtype": "string"} for name in next(iter(shards.values()))[0][0]]
        head["dataset_info"].append({"config_name": configuration, "features": features, "splits": splits})
    card.write_text(f"---\n{yaml.safe_dump(head)}---\n")


def numbered(split: str, shard: int, count: int, languages: tuple[str, str] = ("en", "fr")) -> list[dict[str, str]]:
    """Records that say where they are from."""
    return [{language: f"{language} {split} {shard} {row}" for language in languages} for row in range(count)]
