"""Launches of kernels that look for races between their threads."""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

import numpy as np

from tcuda._core import EmulatedLaunch, EmulatedModule, KernelAccess, KernelRace
from tcuda.emulation.kernels.volatile_races import of_data
from tcuda.emulation.rtc import global_variables
from tcuda.emulation.rtc.build import build
from tcuda.emulation.rtc.source_lines import source_lines


class Found(NamedTuple):
    """A race, with the text of the two lines of the source.

    Attributes:
        lines: The lines without spaces around them, in alphabetical order, each behind the kind of its access.
        missing: What would order the accesses.
        race: The race.
    """

    lines: tuple[str, ...]
    missing: str
    race: KernelRace


@functools.lru_cache(maxsize=64)
def _library(source: str) -> tuple[bytes, EmulatedModule]:
    library, _ = build(source, races=True)
    return library, EmulatedModule(library)


def launch(
    source: str,
    *args: np.ndarray | int | float,
    grid: int | tuple[int, int, int] = 1,
    block: int | tuple[int, int, int] = 32,
    shared: int = 0,
    name: str = "kernel",
    recorded: bool = False,
    order: int = 0,
    patience: float = 30.0,
) -> EmulatedLaunch:
    """Return a launch that looks for races. The caller keeps the arrays, and runs the launch."""
    library, module = _library(source)
    function = module.function(name)
    assert function is not None
    packed = b""
    for arg, (kind, size, offset) in zip(args, function.parameters, strict=True):
        packed = packed.ljust(offset, b"\0")
        if isinstance(arg, np.ndarray):
            packed += struct.pack("Q", arg.ctypes.data)
        elif kind == "f":
            packed += struct.pack("f" if size == 4 else "d", arg)
        else:
            packed += int(arg).to_bytes(size, "little", signed=True)
    ranges = [(arg.ctypes.data, arg.ctypes.data + arg.nbytes) for arg in args if isinstance(arg, np.ndarray)]
    origin = module.symbol("tcuda_module")
    assert origin is not None
    variables = [
        (origin[0] + place, origin[0] + place + size) for _, place, size in global_variables.variables(library, source)
    ]
    return EmulatedLaunch(
        function,
        (grid, 1, 1) if isinstance(grid, int) else grid,
        (block, 1, 1) if isinstance(block, int) else block,
        packed,
        shared,
        ranges,
        strict=False,
        patience=patience,
        recorded=recorded,
        variables=variables,
        races=True,
        order=order,
        cooperative="this_grid" in source,
    )


def found_by(done: EmulatedLaunch, source: str) -> list[Found]:
    """Return the races of a launch."""
    library, _ = _library(source)
    texts = source.splitlines()
    data = of_data(done.volatile_races(), lambda codes: source_lines(library, codes), lambda file: source)

    def described(access: KernelAccess) -> str:
        (place,) = source_lines(library, [access.code])
        assert place is not None
        return f"{access.kind}: {texts[place[1] - 1].strip()}"

    return [
        Found(tuple(sorted([described(race.first), described(race.second)])), race.missing, race)
        for race in (*done.races(), *data)
    ]


def races_of(source: str, *args: np.ndarray | int | float, **options: object) -> list[Found]:
    """Return the races of a launch that ends without an error; see :func:`launch` for the arguments."""
    started = launch(source, *args, **options)  # type: ignore[arg-type]
    assert started.run() is None
    return found_by(started, source)
