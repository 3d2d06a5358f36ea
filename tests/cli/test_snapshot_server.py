"""The server that makes pages of dropped snapshots."""

from __future__ import annotations

import http.client
import pickle
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from support.snapshots import two_devices
from tcuda._viz.memory import page
from tcuda.cli.snapshot_server import SnapshotServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Answer(NamedTuple):
    status: int
    text: str


@pytest.fixture
def ask() -> Iterator[Callable[..., Answer]]:
    """Return a function that sends a request to a server of this test."""
    with SnapshotServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()

        def ask(method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            found = Answer(answer.status, answer.read().decode())
            connection.close()
            return found

        yield ask
        server.shutdown()
        thread.join()


def test_a_dropped_snapshot_gets_a_page(ask: Callable[..., Answer]) -> None:
    assert "Drop a snapshot" in ask("GET", "/").text
    for number in range(2):
        assert ask("POST", "/", pickle.dumps(two_devices()), X_Name="my%20run.pickle") == (200, f"/{number}")
        assert ask("GET", f"/{number}") == (200, page(two_devices(), "my run.pickle"))


@pytest.mark.parametrize("content", [pickle.dumps(5), b"", b"text"])
def test_another_file_is_refused_by_its_name(content: bytes, ask: Callable[..., Answer]) -> None:
    status, text = ask("POST", "/", content, X_Name="notes.txt")
    assert status == 400
    assert text.startswith("'notes.txt' holds no allocator snapshot: ")


@pytest.mark.parametrize(
    ("request_of", "status"),
    [
        ({"method": "GET", "path": "/0"}, 404),
        ({"method": "GET", "path": "/../secret"}, 404),
        ({"method": "POST", "path": "/", "body": b"1"}, 400),  # as a page of a stranger could send
        ({"method": "GET", "path": "/", "Host": "stranger.example"}, 421),
    ],
)
def test_other_requests_are_refused(request_of: dict[str, Any], status: int, ask: Callable[..., Answer]) -> None:
    assert ask(**request_of).status == status
