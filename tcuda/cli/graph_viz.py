"""``tcuda graph-viz``: a picture of a captured graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.files import read_regular_file, require_writable
from tcuda._base.terminal import working
from tcuda._viz.graphs import draw

if TYPE_CHECKING:
    import argparse

_LARGEST_FILE = 1 << 28
_FORMATS = (".svg", ".png", ".pdf")


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
    with working("drawing the graph"):
        nodes = draw(source, repr(str(options.file)), output)
    if nodes is None:
        raise ValueError(f"{str(options.file)!r} holds no graph. Write one with CUDAGraph.debug_dump().")
    print(f"{output}: {nodes:,} {'node' if nodes == 1 else 'nodes'}")


def _source(file: Path) -> bytes:
    try:
        return read_regular_file(file, _LARGEST_FILE)
    except ValueError as error:
        raise ValueError(f"{str(file)!r} holds no graph: {error}. Write one with CUDAGraph.debug_dump().") from error
