"""``tcuda graph-viz``: a picture of a captured graph."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._files import read_regular_file, require_writable

if TYPE_CHECKING:
    import argparse

_LARGEST_FILE = 1 << 28
_FORMATS = (".svg", ".png", ".pdf")
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


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
    done = _dot(source, output)
    if done.returncode:
        reason = next(iter(done.stderr.decode(errors="replace").splitlines()), f"it ended with {done.returncode}")
        raise RuntimeError(f"dot cannot draw {str(options.file)!r}: {reason}")
    # A label may have several lines, so quoted texts are removed before the lines are counted.
    items = re.findall(rb"^\w+", _QUOTED.sub(b'""', done.stdout), re.MULTILINE)
    if b"graph" not in items:
        raise ValueError(f"{str(options.file)!r} holds no graph. Write one with CUDAGraph.debug_dump().")
    nodes = items.count(b"node")
    print(f"{output}: {nodes:,} {'node' if nodes == 1 else 'nodes'}")


def _source(file: Path) -> bytes:
    try:
        return read_regular_file(file, _LARGEST_FILE)
    except ValueError as error:
        raise ValueError(f"{str(file)!r} holds no graph: {error}. Write one with CUDAGraph.debug_dump().") from error


def _dot(source: bytes, output: Path) -> subprocess.CompletedProcess[bytes]:
    """Let dot write the picture to ``output``, and the layout as text, in which each node has a line, to stdout.

    Raises:
        RuntimeError: The program dot is not installed.
    """
    command = shutil.which("dot")
    if command is None:
        raise RuntimeError(
            "The program dot, which draws graphs, is not installed. Install Graphviz, for example with: "
            "apt-get install graphviz"
        )
    # The graph goes through stdin, because dot could take the name of the file for an option.
    arguments = [f"-T{output.suffix[1:].lower()}", f"-o{output}", "-Tplain"]
    return subprocess.run([command, *arguments], input=source, capture_output=True, check=False)
