"""``tcuda graph-viz``: a picture of a captured graph."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.files import read_regular_file, write_file
from tcuda._base.outputs import Kind, check_output
from tcuda._base.terminal import working
from tcuda._viz.graphs import draw

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

_LARGEST_FILE = 1 << 28
_MARK = b"tcuda graph-viz"
_LAST_CHUNK = 12  # bytes


def _marked_png(picture: bytes) -> bytes:
    """Return a picture with the mark in a chunk of text, which belongs before the last chunk."""
    chunk = b"tEXtSoftware\0" + _MARK
    written = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return picture[:-_LAST_CHUNK] + written + picture[-_LAST_CHUNK:]


_FORMATS: dict[str, tuple[bytes, Callable[[bytes], bytes]]] = {
    "svg": (b"<?xml", lambda picture: picture + b"<!-- %s -->\n" % _MARK),
    "png": (b"\x89PNG", _marked_png),
    "pdf": (b"%PDF", lambda picture: picture + b"%% %s\n" % _MARK),
}
"""The first bytes of each format, and the function that puts the mark into a picture."""


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
    parser.set_defaults(run=run, usage_error=parser.error)


def run(options: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        OSError: A file cannot be read or written.
        RuntimeError: The program dot is not installed, or dot failed.
        ValueError: The file is not a graph, or the suffix of the picture names no format.
    """
    source = _source(options.file)
    output = options.output or options.file.with_suffix(".svg")
    format = output.suffix[1:].lower()
    if format not in _FORMATS:
        raise ValueError(f"The suffix of {str(output)!r} names no format; use .svg, .png or .pdf.")
    begin, mark = _FORMATS[format]
    check_output(options, output, Kind("picture", begin, _MARK), [options.file])
    with working("drawing the graph"):
        drawn = draw(source, repr(str(options.file)), format)
    if drawn is None:
        raise ValueError(f"{str(options.file)!r} holds no graph. Write one with CUDAGraph.debug_dump().")
    write_file(output, mark(drawn.picture))
    print(f"{output}: {drawn.nodes:,} {'node' if drawn.nodes == 1 else 'nodes'}")


def _source(file: Path) -> bytes:
    try:
        return read_regular_file(file, _LARGEST_FILE)
    except ValueError as error:
        raise ValueError(f"{str(file)!r} holds no graph: {error}. Write one with CUDAGraph.debug_dump().") from error
