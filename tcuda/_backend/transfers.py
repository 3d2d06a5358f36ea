"""The work of an array library on arrays of several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Places: TypeAlias = tuple[tuple[int, ...], Any, int, int, tuple[int, ...], tuple[int, ...]]
    """The devices of the arrays of a collective, their dtype, the number of elements of an input and of an output, and
    the addresses of the inputs and of the outputs."""


class Hop(NamedTuple):
    """A copy of some bytes of an array to the same place of another array.

    Attributes:
        source: The place of the array that is read, in a list of arrays.
        target: The place of the array that is written.
        begin: The first byte.
        end: The end of the bytes.
        first: Whether the hop is the first between its two arrays.
    """

    source: int
    target: int
    begin: int
    end: int
    first: bool


class Transfers(Protocol):
    """Work on the arrays of several devices.

    The work is ordered with the work of the *streams* of the devices: the stream of a device is its current stream in
    the calling thread. A call returns before the work is complete.

    A call that fails leaves the current device and the current streams as they were. When the error reaches the caller,
    no copy is under way, so that the caller may free the memory. While a capture is in progress, a method refuses a
    wait that would invalidate the capture.

    A *plain* array has its elements in C order or in Fortran order, without gaps.
    """

    array: type[Any]
    """The type of the library's arrays, on any device."""

    xp: Any
    """The module of the library that makes arrays."""

    def empty(self, shape: Sequence[int], dtype: Any, device: int) -> Any:
        """Return a new array in C order on ``device``, in memory of the stream of ``device``."""

    def send(self, source: Any, devices: Sequence[int]) -> list[Any]:
        """Return a copy of ``source`` for each of ``devices``, copied from the device of ``source`` one by one.

        Args:
            source: A plain array in C order.
            devices: The devices of the copies, none of which is the device of ``source``. A device may occur twice.
        """

    def cut(self, source: Any, lengths: Sequence[int], devices: Sequence[int]) -> list[Any] | None:
        """Cut an array along its first axis, and copy each part to a device, as :meth:`send` does.

        Args:
            source: An array.
            lengths: The length of each part, from 0 on. The sum is at most the length of the axis.
            devices: The device of each part.

        Returns:
            The parts: views of ``source`` for its own device, and new arrays in C order for the others. The result is
            None, with nothing done, unless ``source`` is a plain array in C order with an axis.
        """

    def copy(self, target: Any, source: Any) -> None:
        """Copy ``source`` to ``target``.

        The copy is work of the stream of the source's device. The stream first waits for the stream of the target's
        device, which then waits for the copy. A copy within one device is work of the stream of this device.

        Args:
            target: A plain array.
            source: A plain array with the same number of bytes, on any device.
        """

    def upload(self, target: Any, address: int, mark: int) -> None:
        """Copy memory of the host to ``target``, as work of the stream of the device of ``target``.

        Args:
            target: A plain array with elements.
            address: The address of as many bytes on the host.
            mark: An event of the device, which the stream records after the copy.
        """

    def spread(
        self,
        address: int,
        shape: Sequence[int],
        dtype: Any,
        lengths: Sequence[int],
        devices: Sequence[int],
        marks: Sequence[int],
    ) -> list[Any]:
        """Cut an array of the host along its first axis, and copy each part to a device, as :meth:`upload` does.

        Args:
            address: The address of the array, which is in C order.
            shape: The shape of the array, which has at least one axis.
            dtype: The dtype of the array.
            lengths: The length of each part, from 0 on. The sum is at most the length of the axis.
            devices: The device of each part.
            marks: For each part, an event of its device. An event whose part has elements is recorded after the copy.

        Returns:
            The parts, new arrays in C order.
        """

    def copy_rows(self, target: Any, target_pitch: int, source: Any, source_pitch: int, width: int, rows: int) -> None:
        """Copy rows of bytes, which begin at the first element of each array, as :meth:`copy` does.

        Args:
            target: An array.
            target_pitch: The bytes from one row of ``target`` to the next.
            source: An array of another device.
            source_pitch: The bytes from one row of ``source`` to the next.
            width: The bytes of a row.
            rows: The number of rows.
        """

    def relay(self, arrays: Sequence[Any], hops: Sequence[Hop]) -> None:
        """Make the copies ``hops``, in their order.

        A hop is work of the stream of its source's device. The stream of its target's device then waits for the hop.
        Before a hop that is :attr:`Hop.first`, the stream of the source's device waits for the stream of the target's
        device. So pieces of an array move through a chain of devices at the same time.

        Args:
            arrays: Plain arrays with the same number of bytes.
            hops: The copies.
        """

    def sizes(self, arrays: Sequence[Any], device: int) -> list[int] | None:
        """Return the bytes that each of ``arrays`` takes among packed arrays: its bytes, up to a multiple of 16.

        The result is None unless all of ``arrays`` are plain arrays in C order on ``device``.
        """

    def pack(self, arrays: Sequence[Any], flat: Any, offsets: Sequence[int]) -> None:
        """Copy arrays of the current device into ``flat``, on the current stream.

        Args:
            arrays: Plain arrays in C order.
            flat: An array of bytes of the current device.
            offsets: The place of each array in ``flat``, a multiple of 16.
        """

    def views(self, flat: Any, like: Sequence[Any], offsets: Sequence[int]) -> list[Any]:
        """Return arrays in C order in the memory of ``flat``.

        Args:
            flat: An array of bytes.
            like: The arrays, of any device, whose shapes and dtypes the returned arrays have.
            offsets: The place of each array in ``flat``, a multiple of 16.
        """

    def add(self, out: Any, inputs: Sequence[Any], *, release: bool = True) -> None:
        """Set ``out`` to ``inputs[0] + (inputs[1] + (inputs[2] + ...))``, element by element.

        The sum is work of the stream of the device of ``out``, which first waits for the streams of the devices of the
        inputs. The arithmetic is that of the dtype: integers wrap, and the sum of booleans is "or".

        Args:
            out: A plain array in C order, which has no memory in common with an input.
            inputs: Two or more plain arrays in C order with the size and the dtype of ``out``, on any devices.
            release: Whether the streams of the inputs' devices then wait for the sum. If a caller adds an array piece
                by piece, only the last call needs to release.
        """

    def add_in_chain(self, sums: Sequence[Any], arrays: Sequence[Any], cuts: Sequence[tuple[int, int]]) -> None:
        """Set each of ``sums`` but the last to the array at the same place plus the next of ``sums``, piece by piece.

        The work on the pieces of each sum is that of one :meth:`add` with two inputs. The devices work on different
        pieces at the same time, and only the last piece releases.

        Args:
            sums: Plain arrays in C order, on any devices, of which the last has the elements to begin with.
            arrays: As many plain arrays in C order, each on the device of the sum at its place. The last is not read.
            cuts: The first element and the end of each piece, in order, up to the size of the arrays.
        """

    def join(self, out: Any, arrays: Sequence[Any]) -> bool:
        """Copy ``arrays``, one after the other, to ``out``.

        A copy is work of the stream of its array's device. These streams all wait for the stream of the device of
        ``out`` before the first copy, and that stream waits for them after the last copy, so that the copies overlap.

        Args:
            out: An array with as many bytes as all of ``arrays``.
            arrays: Arrays of any devices.

        Returns:
            False, with nothing done, unless all are plain arrays in C order with the dtype of ``out``, whose memory has
            nothing in common with ``out``.
        """

    def alike(self, rows: Sequence[Sequence[Any]]) -> list[int] | None:
        """Return the device of each of ``rows``, whose arrays are alike.

        The result is None unless each row has plain arrays in C order of one device, at least one, and the arrays at
        the same place of all rows have the same shape and dtype.
        """

    # The functions of tcuda.comm for plain arguments. A method returns None, with nothing done, unless a single call of
    # the core can do the whole work: sequences are lists or tuples, devices are integers that devices have, arrays are
    # in C order and exactly of the type `array`, and no capture is in progress. A method raises no error about its
    # arguments. `small` is the number of bytes below which one copy after the other is the fastest route to several
    # devices.

    def broadcast(self, tensor: Any, devices: Any, small: int) -> list[Any] | None:
        """Return an array for each of ``devices``, as :func:`tcuda.comm.broadcast` does."""

    def scatter(self, tensor: Any, devices: Any) -> tuple[Any, ...] | None:
        """Return equal parts of ``tensor`` along its first axis, as :func:`tcuda.comm.scatter` does."""

    def gather(self, tensors: Any, destination: Any) -> Any | None:
        """Return ``tensors`` joined along the first axis, as :func:`tcuda.comm.gather` does."""

    def reduce_add(self, inputs: Any, destination: Any, small: int) -> Any | None:
        """Return the sum of ``inputs``, as :func:`tcuda.comm.reduce_add` does."""

    def broadcast_coalesced(self, tensors: Any, devices: Any, buffer_size: Any, small: int) -> list[list[Any]] | None:
        """Return copies of ``tensors`` in one buffer, as :func:`tcuda.comm.broadcast_coalesced` does."""

    def reduce_add_coalesced(
        self, inputs: Any, destination: Any, buffer_size: Any, small: int
    ) -> tuple[Any, ...] | None:
        """Return the sums of ``inputs`` in one buffer a dtype, as :func:`tcuda.comm.reduce_add_coalesced` does."""

    def places(self, inputs: Any, outputs: Any) -> Places | None:
        """Return where the elements of the arrays of a collective are, all in one call.

        Args:
            inputs: The inputs of the collective.
            outputs: The outputs in the order of the inputs; ``inputs`` if None.

        Returns:
            None unless ``inputs`` and ``outputs`` are lists or tuples with one array on each of different devices. The
            arrays are exactly of the library's type, contiguous in C order, and of one dtype; all inputs have the same
            number of elements, and so have all outputs.
        """
