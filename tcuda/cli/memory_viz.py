"""``tcuda memory-viz``: a page that shows the memory of a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._files import require_writable
from tcuda.cli.terminal import memory

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tcuda._memory_viz import Device


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "memory-viz",
        help="make a page of HTML from an allocator snapshot",
        description="Make a page of HTML from an allocator snapshot, with allocations over time, segments, and the "
        "stacks that allocated. The page needs no network, and no code in the snapshot is run.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="a file that _dump_snapshot() of tcuda or torch wrote")
    parser.add_argument("-o", "--output", metavar="PAGE", type=Path, help="the page to write (FILE with suffix .html)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        OSError: A file cannot be read or written.
        ValueError: The file is not a snapshot, or the page would overwrite the file.
    """
    from tcuda._memory_viz import busiest, devices, peak_sentence, read_snapshot, render

    options.file.stat()  # A file that does not exist is reported before the errors of the output.
    output = options.output or options.file.parent / f"{options.file.stem}.html"
    if output.exists() and output.samefile(options.file):
        raise ValueError(f"The page would take the place of the snapshot {str(output)!r}; give another name with -o.")
    require_writable(output)
    found, stacks = devices(read_snapshot(options.file))
    output.write_text(render(found, stacks, options.file.name), encoding="utf-8")
    print(f"{output}: {_summary(found)}")
    if words := peak_sentence(busiest(found), stacks):
        print(words)


def _summary(devices: Sequence[Device]) -> str:
    """Return a few figures of the snapshot, by which the user can tell whether it is the right one."""
    events = _count(sum(device.events for device in devices), "event")
    segments = _count(sum(device.segments for device in devices), "segment")
    from tcuda._memory_viz import busiest

    device = busiest(devices)
    where = f" on device {device.index}" if len(devices) > 1 else ""
    return f"{events}, {segments}, {memory(device.peak_bytes)} allocated at the peak{where}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
