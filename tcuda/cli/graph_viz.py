"""``tcuda graph-viz``: a picture of a captured graph."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.files import read_regular_file, require_writable

if TYPE_CHECKING:
    import argparse

_LARGEST_FILE = 1 << 28
_FORMATS = (".svg", ".png", ".pdf")
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_WORD = rb"[\w.\x80-\xff-]+"
_ATTRIBUTE = re.compile(
    rb"(?P<name>%(quoted)s|%(word)s)(?:=(?P<value>%(quoted)s|%(word)s|<))?"
    % {b"quoted": _QUOTED.pattern, b"word": _WORD},
    re.DOTALL,
)
_WARNINGS = ("Warning: ", "and the GV_FILE_PATH variable ")  # the second: the rest of the warning about files
_LINK = re.compile(rb"(?:url|href|stylesheet)$", re.IGNORECASE)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "graph-viz",
        help="draw a captured graph",
        description="Draw the graph that CUDAGraph.debug_dump() wrote, with dot, which is part of Graphviz.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="a file that CUDAGraph.debug_dump() wrote")
    parser.add_argument(
        "-o",
        "--output",
        metavar="PICTURE",
        type=Path,
        help="the picture to write; its suffix .svg, .png or .pdf names the format (FILE with suffix .svg)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        OSError: A file cannot be read or written.
        RuntimeError: The program dot is not installed, or dot failed.
        ValueError: The file is not a graph, the picture would overwrite the file, or the suffix of the picture names no
            format.
    """
    source = _source(options.file)
    output = options.output or options.file.with_suffix(".svg")
    if output.suffix.lower() not in _FORMATS:
        raise ValueError(f"The suffix of {str(output)!r} names no format; use .svg, .png or .pdf.")
    if output.exists() and output.samefile(options.file):
        raise ValueError(f"The picture would take the place of the graph {str(output)!r}; give another name with -o.")
    require_writable(output)
    # The file may come from another person, so the picture gets no links. Only in dot's own form of the graph is it
    # clear where the name and the value of an attribute end.
    graph = _without_links(_dot(options.file, source, "-Tcanon"))
    layout = _dot(options.file, graph, f"-T{output.suffix[1:].lower()}", f"-o{output}", "-Tplain")
    # A label may have several lines, so quoted texts are removed before the lines are counted.
    items = re.findall(rb"^\w+", _QUOTED.sub(b'""', layout), re.MULTILINE)
    if b"graph" not in items:
        raise ValueError(f"{str(options.file)!r} holds no graph. Write one with CUDAGraph.debug_dump().")
    nodes = items.count(b"node")
    print(f"{output}: {nodes:,} {'node' if nodes == 1 else 'nodes'}")


def _source(file: Path) -> bytes:
    try:
        return read_regular_file(file, _LARGEST_FILE)
    except ValueError as error:
        raise ValueError(f"{str(file)!r} holds no graph: {error}. Write one with CUDAGraph.debug_dump().") from error


def _dot(file: Path, graph: bytes, *arguments: str) -> bytes:
    """Return what dot prints about ``graph``, which comes from ``file``.

    Raises:
        RuntimeError: The program dot is not installed, or dot failed.
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
    # The graph goes through stdin, because dot could take the name of the file for an option.
    done = subprocess.run([command, *arguments], input=graph, env=environment, capture_output=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if not line.startswith(_WARNINGS)]
        reason = next(iter(said), f"it ended with {done.returncode}")
        raise RuntimeError(f"dot cannot draw {str(file)!r}: {reason}")
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
