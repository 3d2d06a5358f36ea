"""The work of an array library on arrays of several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Hop(NamedTuple):
    """A copy of some bytes of an array to another array.

    Attributes:
        source: The place of the array that is read, in a list of arrays.
        target: The place of the array that is written.
        begin: The first byte that is read.
        end: The end of the bytes that are read.
        to: The first byte that is written.
    """

    source: int
    target: int
    begin: int
    end: int
    to: int


class Transfers(Protocol):
    """Work on the arrays of several devices.

    The work is ordered with the work of the *streams* of the devices: the stream of a device is its current stream in
    the calling thread. A call returns before the work is complete.

    A call that fails leaves the current device and the current streams as they were. When the error reaches the caller,
    no copy is under way, so that the caller may free the memory. While a capture is in progress, a method refuses a
    wait that would invalidate the capture.

    A *dense* array has its elements in C order or in Fortran order, without gaps.
    """

    array: type[Any]
    """The type of the library's arrays, on any device."""

    xp: Any
    """The module of the library that makes arrays."""

    def empty(self, shape: Sequence[int], dtype: Any, device: int) -> Any:
        """Return a new array in C order on ``device``, in memory of the stream of ``device``."""

    def relay(self, arrays: Sequence[Any], hops: Sequence[Hop]) -> None:
        """Make the copies ``hops``, in their order.

        A hop is work of the stream of its source's device. This stream first waits for the stream of the target's
        device, which then waits for the hop. The stream of the source's device makes the first wait only once for each
        device to which it copies, so that pieces of an array move through a chain of devices at the same time. If
        several devices copy to one device, they all wait before the first hop, so that their copies overlap. A hop
        within a device, whose memory no other hop uses, may be made later.

        Args:
            arrays: Dense arrays of any devices.
            hops: The copies.
        """

    def copy_rows(self, target: Any, target_pitch: int, source: Any, source_pitch: int, width: int, rows: int) -> None:
        """Copy rows of bytes, which begin at the first element of each array, in the order of a hop.

        Args:
            target: An array.
            target_pitch: The bytes from one row of ``target`` to the next.
            source: An array of another device.
            source_pitch: The bytes from one row of ``source`` to the next.
            width: The bytes of a row.
            rows: The number of rows.
        """

    def upload(self, targets: Sequence[Any], addresses: Sequence[int]) -> None:
        """Copy memory of the host to each of ``targets``, as work of the stream of the target's device.

        Args:
            targets: Dense arrays.
            addresses: For each target, the address of as many bytes on the host.
        """

    def pack(self, arrays: Sequence[Any], device: int, full: int) -> tuple[Any, list[int]] | None:
        """Copy the first of ``arrays`` into one array, as work of the stream of ``device``.

        Args:
            arrays: Any objects.
            device: The device.
            full: The number of bytes at which the one array takes no more arrays.

        Returns:
            A new array of bytes on ``device``, and the place in it of each array that it took, a multiple of 16. The
            result is None, with nothing done, unless these are two or more arrays on ``device`` in C order.
        """

    def views(self, flat: Any, like: Sequence[Any], offsets: Sequence[int]) -> list[Any]:
        """Return arrays in C order in the memory of ``flat``.

        Args:
            flat: An array of bytes.
            like: The arrays, of any device, whose shapes and dtypes the returned arrays have.
            offsets: The place of each array in ``flat``, a multiple of 16.
        """

    def add(self, out: Any, inputs: Sequence[Any], *, release: bool = True) -> bool:
        """Set ``out`` to ``inputs[0] + (inputs[1] + (inputs[2] + ...))``, element by element, by one kernel.

        The sum is work of the stream of the device of ``out``, which first waits for the streams of the devices of the
        inputs. The arithmetic is that of the dtype: integers wrap, and the sum of booleans is "or".

        Args:
            out: A dense array in C order, which has no memory in common with an input.
            inputs: Two or more dense arrays in C order with the size and the dtype of ``out``, on any devices.
            release: Whether the streams of the inputs' devices then wait for the sum. If a caller adds an array piece
                by piece, only the last call needs to release.

        Returns:
            False, with nothing done, if the library has no such kernel, or if the device cannot read an input.
        """
