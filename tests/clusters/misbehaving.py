"""A download server that can be told to misbehave, and what it offers: a version v26.2.1 for this machine."""

import hashlib
import io
import os
import platform
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from clusters.engines.cockroach.vendor import Vendor
from clusters.engines.cockroach.version import Version

RELEASES = (Path(__file__).parent / "recorded" / "releases.yml").read_bytes()
VERSION = Version.parse("v26.2.1")
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
ARCHIVE = f"/cockroach-v26.2.1.linux-{ARCHITECTURE}.tgz"
SUM = f"{ARCHIVE}.sha256sum"

Misbehaviour = Callable[[BaseHTTPRequestHandler, bytes], None]


def packed(members: dict[str, bytes], *, links: dict[str, str] | None = None) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz", compresslevel=1) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return whole.getvalue()


TOP = f"cockroach-v26.2.1.linux-{ARCHITECTURE}"
PROGRAM = b'#!/bin/sh\n[ "$*" = version ] && echo "Build Tag: v26.2.1" || echo --join\nexit\n' + os.urandom(1 << 18)
GOOD = packed({f"{TOP}/cockroach": PROGRAM, f"{TOP}/lib/libgeos.so": b"geos", f"{TOP}/LICENSE.txt": b"text"})


@dataclass
class Server:
    """Serves ``files``; a path in ``bad`` is answered by its misbehaviour instead."""

    files: dict[str, bytes]
    bad: dict[str, Misbehaviour] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def vendor(self, stall_s: float = 60.0) -> Vendor:
        return Vendor(downloads=self.url, releases=f"{self.url}/releases.yml", stall_s=stall_s)

    def offer(self, archive: bytes) -> None:
        digest = hashlib.sha256(archive).hexdigest()
        self.files |= {ARCHIVE: archive, SUM: f"{digest}  {ARCHIVE[1:]}\n".encode()}


@contextmanager
def serving() -> Iterator[Server]:
    """A server on loopback, in a thread."""
    state = Server(files={"/releases.yml": RELEASES})
    state.offer(GOOD)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            content = state.files.get(self.path)
            if content is None:
                self.send_error(404)
            elif self.path in state.bad:
                state.bad[self.path](self, content)
            else:
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_address[1]}"
    yield state
    state.over.set()
    http.shutdown()
    http.server_close()
    thread.join(60)


def begins(handler: BaseHTTPRequestHandler, content: bytes, part: float) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: int(len(content) * part)])
    handler.wfile.flush()
