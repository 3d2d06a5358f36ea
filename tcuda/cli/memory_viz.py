"""``tcuda memory-viz``: a page that shows the memory of a snapshot."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.console import console, memory, print_table
from tcuda._base.files import write_file
from tcuda._base.messages import printable
from tcuda._base.outputs import PAGE, check_output
from tcuda._base.terminal import working

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tcuda._viz.memory import Comparison, Device
    from tcuda._viz.shared import Stacks

_MOST_ROWS = 20  # The most sites that are printed. The page has all of them.


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "memory-viz",
        help="make a page of HTML from an allocator snapshot",
        description="Make a page of HTML from an allocator snapshot, with allocations over time, segments, and the "
        "stacks that allocated. The page needs no network, and no code in the snapshot is run.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        nargs="?",
        help="a file that _dump_snapshot() of tcuda or torch wrote; without FILE, serve a page for dropped files, "
        "which needs a terminal or --open",
    )
    parser.add_argument("-o", "--output", metavar="PAGE", type=Path, help="the page to write (FILE with suffix .html)")
    parser.add_argument(
        "--compare",
        metavar="OTHER",
        type=Path,
        help="another snapshot: show by site how much more or less memory OTHER has than FILE",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.set_defaults(run=run, usage_error=parser.error)


def run(options: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        OSError: A file cannot be read or written.
        RuntimeError: There is no file, and nobody would see the page for dropped files.
        ValueError: The file is not a snapshot.
    """
    from tcuda._viz.memory import busiest, devices, peak_sentence, read_snapshot, render

    if options.file is None:
        return _serve(options)
    options.file.stat()  # A file that does not exist is reported before the errors of the output.
    if options.compare:
        options.compare.stat()
    output = options.output or options.file.parent / f"{options.file.stem}.html"
    check_output(options, output, PAGE, filter(None, (options.file, options.compare)))
    with working(f"reading {printable(str(options.file))} ({memory(options.file.stat().st_size)})"):
        found, stacks = devices(read_snapshot(options.file))
        compared = _comparisons(found, stacks, options.compare) if options.compare else None
    with working(f"writing {printable(str(output))}"):
        write_file(output, render(found, stacks, options.file.name, compared).encode())
    print(f"{output}: {_summary(found)}")
    if words := peak_sentence(busiest(found), stacks):
        print(words)
    for device, comparison in zip(found, compared or (), strict=False):
        _print_comparison(device, comparison, stacks, options.file.name)
    if options.open:
        _open(output.absolute().as_uri())
    return None


def _serve(options: argparse.Namespace) -> None:
    """Serve a page onto which a user drops snapshots, until Ctrl-C.

    Raises:
        RuntimeError: Nobody would see the page, and nobody would end the command.
    """
    from tcuda.cli.snapshot_server import SnapshotServer

    if options.output or options.compare:
        options.usage_error("--output and --compare need FILE")
    if not (options.open or sys.stdout.isatty()):  # nobody would end the command, as in CI
        options.usage_error("FILE is missing. To serve a page for dropped files without a terminal, add --open")
    with SnapshotServer() as server:
        print(f"Drop a snapshot on {server.address} (Ctrl-C ends the command)", flush=True)
        if options.open and not _open(server.address) and not sys.stdout.isatty():
            raise RuntimeError("Nobody can drop a snapshot: there is no browser and no terminal. Name the file.")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def _open(address: str) -> bool:
    """Open a page in a browser; return whether there is a browser."""
    import webbrowser

    found = webbrowser.open(address)
    if not found:
        print(f"There is no browser to open; the page is at {address}")
    return found


def _comparisons(found: list[Device], stacks: Stacks, other: Path) -> list[Comparison]:
    """Return the comparison of each device with the snapshot in ``other``, whose other devices are added."""
    from tcuda._viz.memory import compare, devices, empty_device, read_snapshot

    others = {device.index: device for device in devices(read_snapshot(other), stacks)[0]}
    found += [empty_device(index, stacks) for index in others.keys() - {device.index for device in found}]
    found.sort(key=lambda device: device.order)
    return [compare(device, others.get(device.index), other.name) for device in found]


def _print_comparison(device: Device, comparison: Comparison, stacks: Stacks, name: str) -> None:
    from tcuda._viz.memory import site_text

    print(f"\n{device.name[0].upper()}{device.name[1:]}, from {name} to {comparison.name}:")
    for when, (before, after) in (("peak", comparison.peak_bytes), ("end", comparison.bytes_at_end)):
        print(f"{_change(after - before)} at the {when}, from {memory(before)} to {memory(after)}")
    changed = [found for found in comparison.differences if found.at_peak or found.at_end]
    if not changed:
        print("No site has another number of bytes at the peak or at the end.")
        return
    rows = [
        (
            _change(found.at_peak),
            memory(found.first.at_peak),
            memory(found.second.at_peak),
            _change(found.at_end),
            site_text(stacks, found.frame),
        )
        for found in changed[:_MOST_ROWS]
    ]
    print_table(console(), ("peak", "before", "after", "end", "site"), rows)
    if len(changed) > _MOST_ROWS:
        print(f"{_count(len(changed) - _MOST_ROWS, 'more site')} in the page")


def _change(size: int) -> str:
    return f"{'-' if size < 0 else '+' if size else ''}{memory(abs(size))}"


def _summary(devices: Sequence[Device]) -> str:
    """Return a few figures of the snapshot, by which the user can tell whether it is the right one."""
    events = _count(sum(device.events for device in devices), "event")
    from tcuda._viz.memory import HOST, busiest

    segments = _count(sum(device.segments for device in devices), "segment")
    page_locked = sum(device.segments for device in devices if device.index == HOST)
    if page_locked:  # the summary of a device does not count them
        segments += f" ({page_locked:,} of them page-locked)"

    device = busiest(devices)
    where = f" {_place(device)}" if len(devices) > 1 else ""
    return f"{events}, {segments}, {memory(device.peak_bytes)} allocated at the peak{where}"


def _place(device: Device) -> str:
    from tcuda._viz.memory import HOST

    return f"in {device.name}" if device.index == HOST else f"on {device.name}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
