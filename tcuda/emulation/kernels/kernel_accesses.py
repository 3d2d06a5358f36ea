"""Accesses of kernels: the regions of memory that a launch has read and written, for a race detector."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, NamedTuple

from tcuda.emulation.runtime.accesses import POSSIBLE, READ_AND_WRITE, Access

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tcuda import _core
    from tcuda.emulation.devices.strided import Strided

_WORD = 8
_MOST = 512
"""The most exact regions of an argument. Beyond this number, the regions are a few ranges with all accesses in them."""

_PREFIX = "_data_"
"""The beginning of the names that the kernels of strings give to the pointers of their arrays."""


class _Pointer(NamedTuple):
    address: int
    label: str


def of_arrays(
    arrays: Iterable[Strided], parameters: Sequence[tuple[str, int, int]], names: Sequence[str], packed: bytes
) -> list[Access]:
    """Return the accesses of a kernel that tells nothing: perhaps the kernel reads and writes all of its arrays.

    Args:
        arrays: The arrays among the arguments.
        parameters: The kind, the size and the offset of each parameter.
        names: The names of the parameters; empty if they are not known.
        packed: The bytes of the arguments.
    """
    used = [array._host for array in arrays if array._host.size]
    labels: dict[int, str] = {}
    for place, address in pointers_of(parameters, packed):
        labels.setdefault(address, name_of(place, parameters, names))
    return [
        (address, host.itemsize, host.shape, host.strides, READ_AND_WRITE, labels.get(address, ""), POSSIBLE)
        for host, address in zip(used, [host.ctypes.data for host in used], strict=True)
    ]


def of_launch(
    launch: _core.EmulatedLaunch,
    parameters: Sequence[tuple[str, int, int]],
    names: Sequence[str],
    packed: bytes,
    variables: Sequence[tuple[str, int, int]],
) -> list[Access]:
    """Return what a launch has read and written, each access with the name of a parameter or of a global variable.

    Args:
        launch: The launch, which is done.
        parameters: The kind, the size and the offset of each parameter.
        names: The names of the parameters; empty if they are not known.
        packed: The bytes of the arguments.
        variables: The name, the beginning and the end of each global variable.
    """
    ranges = launch.recorded
    pointers = [_Pointer(begin, name) for name, begin, _ in variables]
    pointers += _pointers(parameters, names, packed, ranges)
    pointers.sort()
    cuts = {address for address, _ in pointers}
    for begin, end in ranges:
        cuts.update((begin, end))
    starts = [begin for begin, _ in ranges]
    accesses: list[Access] = []
    for address, itemsize, shape, strides, kind, exact in launch.accesses(sorted(cuts), _MOST):
        begin, end = ranges[bisect.bisect_right(starts, address) - 1]
        label = _label(address, begin, end, pointers)
        access: Access = (address, itemsize, shape, strides, kind, label)
        accesses.append(access if exact else (*access, POSSIBLE))
    return accesses


def _pointers(
    parameters: Sequence[tuple[str, int, int]], names: Sequence[str], packed: bytes, ranges: Sequence[tuple[int, int]]
) -> list[_Pointer]:
    """Return the addresses of memory of devices among the arguments, also in structures."""
    found = []
    starts = [begin for begin, _ in ranges]
    for place, address in pointers_of(parameters, packed):
        index = bisect.bisect_right(starts, address) - 1
        if index >= 0 and address < ranges[index][1]:
            found.append(_Pointer(address, name_of(place, parameters, names)))
    return found


def pointers_of(parameters: Sequence[tuple[str, int, int]], packed: bytes) -> Iterator[tuple[int, int]]:
    """Yield the place of a parameter and a number in its argument that may be an address."""
    for place, (_, size, offset) in enumerate(parameters):
        for address in _words(packed, offset, size):
            yield place, address


def _words(packed: bytes, offset: int, size: int) -> Iterator[int]:
    """Yield the numbers in an argument that may be addresses."""
    for word in range(offset, offset + size - _WORD + 1, _WORD):
        yield int.from_bytes(packed[word : word + _WORD], "little")


def name_of(place: int, parameters: Sequence[object], names: Sequence[str]) -> str:
    """Return the name of the parameter at ``place``."""
    name = names[place].removeprefix(_PREFIX) if len(names) == len(parameters) else ""
    return name or f"args[{place}]"


def _label(address: int, begin: int, end: int, pointers: Sequence[_Pointer]) -> str:
    """Return the label of the last pointer before ``address`` in the same memory, or else of the first one after."""
    place = bisect.bisect_right(pointers, address, key=lambda pointer: pointer.address)
    for near in (place - 1, place):
        if 0 <= near < len(pointers) and begin <= pointers[near].address < end:
            return pointers[near].label
    return ""
