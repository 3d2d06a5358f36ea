"""Pictures of captured graphs, by the program ``dot`` of Graphviz."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_WORD = rb"[\w.\x80-\xff-]+"
_ATTRIBUTE = re.compile(
    rb"(?P<name>%(quoted)s|%(word)s)(?:=(?P<value>%(quoted)s|%(word)s|<))?"
    % {b"quoted": _QUOTED.pattern, b"word": _WORD},
    re.DOTALL,
)
_WARNINGS = ("Warning: ", "and the GV_FILE_PATH variable ")  # the second: the rest of the warning about files
_LINK = re.compile(rb"(?:url|href|stylesheet)$", re.IGNORECASE)


def is_possible() -> bool:
    """Return whether the program ``dot`` is installed."""
    return shutil.which("dot") is not None


class Drawn(NamedTuple):
    """A picture of a graph, and the number of nodes."""

    picture: bytes
    nodes: int


def draw(graph: bytes, name: str, format: str) -> Drawn | None:
    """Return a picture of a graph; None if the text holds no graph.

    The graph may come from another person, so the picture gets no links, and ``dot`` reads no files.

    Args:
        graph: The graph in the language DOT.
        name: The name of the graph in errors.
        format: ``"svg"``, ``"png"`` or ``"pdf"``.

    Raises:
        RuntimeError: The program ``dot`` is not installed, or ``dot`` failed.
    """
    # dot's own form of the graph shows clearly where the name and the value of an attribute end.
    plain = _without_links(_dot(name, graph, "-Tcanon"))
    with tempfile.TemporaryDirectory(prefix="tcuda-graph-") as folder:
        output = Path(folder, f"graph.{format}")
        layout = _dot(name, plain, f"-T{format}", f"-o{output}", "-Tplain")
        picture = output.read_bytes() if output.exists() else b""  # dot writes nothing for an empty text
    # A label may have several lines, so quoted texts are removed before the lines are counted.
    items = re.findall(rb"^\w+", _QUOTED.sub(b'""', layout), re.MULTILINE)
    return Drawn(picture, items.count(b"node")) if b"graph" in items else None


def svg(graph: bytes) -> str:
    """Return a picture of a graph of this process as SVG.

    Raises:
        RuntimeError: ``dot`` failed.
    """
    drawn = draw(graph, "the graph", "svg")
    text = "" if drawn is None else drawn.picture.decode()
    return text[text.find("<svg") :]


def _dot(name: str, graph: bytes, *arguments: str) -> bytes:
    """Return the output of ``dot`` about ``graph``.

    Raises:
        RuntimeError: The program ``dot`` is not installed, or ``dot`` failed.
    """
    command = shutil.which("dot")
    if command is None:
        raise RuntimeError(
            "The program dot, which draws graphs, is not installed. Install Graphviz, for example with: "
            "apt-get install graphviz"
        )
    # With this variable, dot reads no files that the graph names, such as images.
    environment = {name: value for name, value in os.environ.items() if name != "GV_FILE_PATH"} | {
        "SERVER_NAME": "none"
    }
    # The graph goes through stdin, because dot could take the name of a file for an option.
    done = subprocess.run([command, *arguments], input=graph, env=environment, capture_output=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if not line.startswith(_WARNINGS)]
        reason = next(iter(said), f"it ended with {done.returncode}")
        raise RuntimeError(f"dot cannot draw {name}: {reason}")
    return done.stdout


def _without_links(graph: bytes) -> bytes:
    """Return ``graph``, which dot has written, without links, and with labels of markup as text."""
    parts, place = [], 0
    while found := _ATTRIBUTE.search(graph, place):
        name, value, end = found["name"], found["value"], found.end()
        if value == b"<":
            end = _end_of_markup(graph, end)
            value = b'"' + graph[found.end() : end - 1].replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
        if value is not None and _LINK.search(name.strip(b'"')):
            value = b'""'
        parts += [graph[place : found.start()], name, b"" if value is None else b"=" + value]
        place = end
    return b"".join([*parts, graph[place:]])


def _end_of_markup(graph: bytes, start: int) -> int:
    depth = 1
    for sign in re.compile(rb"[<>]").finditer(graph, start):
        depth += 1 if sign[0] == b"<" else -1
        if depth == 0:
            return sign.end()
    return len(graph)
