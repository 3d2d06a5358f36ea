"""The page of ``tcuda memory-viz`` without a file, onto which a user drops snapshots.

The page sends a snapshot to this process, which answers with the page of the snapshot. The server listens to this
machine only, and keeps no file.
"""

from __future__ import annotations

import tempfile
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import unquote

_HOST = "127.0.0.1"
_NAME = "X-Name"  # the header with the name of the snapshot
_LARGEST = 1 << 30  # bytes, as for a file
_PIECE = 1 << 20

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>tcuda memory-viz</title><link rel="icon" href="data:,">
<meta name="color-scheme" content="light dark"><style>
html, body { height: 100%; margin: 0; font: 16px/1.5 system-ui, sans-serif; }
label { display: grid; place-content: center; text-align: center; height: calc(100% - 64px);
  margin: 30px; cursor: pointer; border: 2px dashed #7c8896; border-radius: 12px; }
label:focus-within { border-color: #0f766e; }
input { position: absolute; opacity: 0; }
</style></head><body><label><b>Drop a snapshot of the allocator here, or click to choose one.</b>
<span id="said" role="status">Files of tcuda and of PyTorch. The snapshot stays on this machine.</span>
<input type="file" id="file"></label><script>
const said = document.getElementById("said");
const send = async (file) => {
  if (!file) return;
  said.textContent = `Reading ${file.name} …`;
  const answer = await fetch("/", { method: "POST", body: file, headers: { "X-Name": encodeURIComponent(file.name) } });
  const text = await answer.text();
  if (answer.ok) location.assign(text);
  else said.textContent = text;
};
document.getElementById("file").addEventListener("change", (event) => send(event.target.files[0]));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => { event.preventDefault(); send(event.dataTransfer.files[0]); });
</script></body></html>
"""


class SnapshotServer(HTTPServer):
    """A server that makes pages of snapshots.

    Attributes:
        address: The address of the page onto which a user drops a snapshot.
    """

    def __init__(self) -> None:
        super().__init__((_HOST, 0), _Handler)
        self.address = f"http://{_HOST}:{self.server_port}/"
        self.pages: list[bytes] = []


class _Handler(BaseHTTPRequestHandler):
    server: SnapshotServer

    def parse_request(self) -> bool:
        """Read the head of a request; refuse a request that names another host, as a page of a stranger can."""
        if not super().parse_request():
            return False
        if f"http://{self.headers['Host']}/" != self.server.address:
            self._answer(b"This server answers to its own address only.", HTTPStatus.MISDIRECTED_REQUEST)
            return False
        return True

    def do_GET(self) -> None:
        number = self.path.lstrip("/")
        if not number:
            self._answer(_PAGE.encode())
        elif number.isdecimal() and int(number) < len(self.server.pages):
            self._answer(self.server.pages[int(number)])
        else:
            self._answer(b"There is no such page.", HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        from tcuda._viz.memory import page, read_snapshot

        # Without this header, any page that the browser shows could send files. With it, the browser asks first.
        if self.headers[_NAME] is None:
            return self._answer(b"The name of the snapshot is missing.", HTTPStatus.BAD_REQUEST)
        name = Path(unquote(self.headers[_NAME])).name
        with tempfile.NamedTemporaryFile(prefix="tcuda-snapshot-") as file:
            length = self.headers["Content-Length"] or ""
            left = min(int(length), _LARGEST + 1) if length.isdecimal() else 0
            while left and (piece := self.rfile.read(min(left, _PIECE))):
                file.write(piece)
                left -= len(piece)
            file.flush()
            try:
                made = page(read_snapshot(file.name), name).encode()
            except ValueError as error:
                said = str(error).replace(repr(file.name), repr(name))
                return self._answer(said.encode(errors="replace"), HTTPStatus.BAD_REQUEST)
        self.server.pages.append(made)
        return self._answer(f"/{len(self.server.pages) - 1}".encode())

    def _answer(self, content: bytes, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        kind = "text/html" if content.startswith(b"<!DOCTYPE html>") else "text/plain"
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print no line for each request."""


__all__ = ["SnapshotServer"]
