"""The array library: the protocol of the calls that tcuda makes, and the module that implements the protocol.

CuPy is the array library on CUDA. On emulated devices ``tcuda.emulation`` takes its place.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from tcuda._core import ElementwiseState, KernelFunction, Ledger, Source
    from tcuda._errors import OutOfMemoryError
    from tcuda._runtime.protocol import Runtime


class CurrentStream(Protocol):
    """A stream that can be current: ``cupy.cuda.Stream``, ``tcuda.Stream``, or any object with these attributes.

    Attributes:
        ptr: The ``cudaStream_t``.
        device_id: The device of the stream; -1 for a default stream, which every device has.
    """

    @property
    def ptr(self) -> int: ...
    @property
    def device_id(self) -> int: ...


class GraphLauncher(Protocol):
    """Launches one ``cudaGraphExec_t`` on the current stream."""

    @property
    def launched(self) -> bool:
        """Whether :meth:`launch` was called."""

    def launch(self) -> int:
        """Launch the graph and return success.

        If another device is current, or the current stream captures, return the status and do nothing.
        """


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
    the calling thread. A call returns before the work is complete. A call that fails leaves the current device and the
    current streams as they were. No copy is then under way to memory that the caller frees. While a capture is in
    progress, a wait that would invalidate the capture is refused before it is made.

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

        The copy runs on the stream of the source's device. The stream first waits for the stream of the target's
        device, which then waits for the copy. A copy within one device is work of the stream of this device.

        Args:
            target: A plain array.
            source: A plain array with the same number of bytes, on any device.
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

        A hop runs on the stream of its source's device, and the stream of its target's device then waits for the hop.
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
            release: Whether the streams of the inputs' devices then wait for the sum. A caller that adds an array piece
                by piece lets only the last call release.
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

        A copy runs on the stream of its array's device. These streams all wait for the stream of the device of ``out``
        before the first copy, and that stream waits for them after the last copy, so that the copies overlap.

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


class Rank(NamedTuple):
    """The part of one device in a collective.

    Attributes:
        communicator: The communicator of the device.
        device: The index of the device.
        stream: The ``cudaStream_t`` of the device on which the collective runs.
        source: The address of the elements that the device gives.
        target: The address of the elements that the device gets.
    """

    communicator: Any
    device: int
    stream: int
    source: int
    target: int


class Nccl(Protocol):
    """NCCL, or the emulated counterpart of NCCL.

    The types of elements and the operations are the numbers of ``ncclDataType_t`` and ``ncclRedOp_t``. A method that
    takes ranks is one NCCL group: from the start to the end of the group, the thread runs no Python code, so that no
    finalizer and no signal handler can take or give back memory of a device.
    """

    def version(self) -> tuple[int, int, int]:
        """Return the version of the library."""

    def unique_id(self) -> bytes:
        """Return 128 new bytes that name a clique of ranks."""

    def join(self, ranks: int, uid: bytes, rank: int) -> Any:
        """Join the current device to the clique ``uid`` as ``rank``, and return the communicator.

        The call returns when all ranks have joined.

        Raises:
            NcclError: The ranks cannot make a clique.
        """

    def communicators(self, devices: Sequence[int]) -> Sequence[Any]:
        """Return the communicators of a new clique of ``devices``, which are different devices of this process.

        Raises:
            NcclError: The devices cannot make a clique.
        """

    def all_reduce(self, ranks: Sequence[Rank], count: int, kind: int, op: int) -> None:
        """Reduce ``count`` elements of type ``kind`` of all ranks with ``op``; every rank gets the result."""

    def reduce(self, ranks: Sequence[Rank], count: int, kind: int, op: int, root: int) -> None:
        """Reduce ``count`` elements of all ranks with ``op``; the rank ``root`` gets the result."""

    def broadcast(self, ranks: Sequence[Rank], count: int, kind: int, root: int) -> None:
        """Give every rank the ``count`` elements of the rank ``root``."""

    def all_gather(self, ranks: Sequence[Rank], count: int, kind: int) -> None:
        """Give every rank the ``count`` elements of each rank, in the order of the ranks."""

    def reduce_scatter(self, ranks: Sequence[Rank], count: int, kind: int, op: int) -> None:
        """Reduce the elements of all ranks with ``op``, and give each rank its ``count`` elements of the result."""


class Backend(Protocol):
    """An array library on the devices of one runtime."""

    array_module: str
    """The name of the module that makes arrays, such as ``"cupy"``."""

    OutOfMemoryError: type[OutOfMemoryError]
    """The exception for a lack of memory, a subclass of tcuda's exception and of the library's own."""

    memory_hint: str
    """A sentence about the size of a device's memory, for an out-of-memory message; may be empty."""

    default_stream: CurrentStream
    """The default stream of every device; its ``device_id`` is -1."""

    # The current stream of a thread

    def current_stream(self, device: int = -1) -> CurrentStream:
        """Return the current stream of this thread on ``device``; -1 means the current device."""

    def use_stream(self, stream: CurrentStream) -> None:
        """Make ``stream``, which is of the current device, the current stream of this thread."""

    def enter_stream(self, stream: CurrentStream) -> None:
        """Make ``stream`` current until the matching :meth:`exit_stream`, as ``with stream:`` does in CuPy."""

    def exit_stream(self) -> None:
        """Make the stream current that was current before the last :meth:`enter_stream`."""

    # Memory

    def use_ledger(self, ledger: Ledger) -> None:
        """Let arrays take their memory from ``ledger``; a second call does nothing."""

    def memory_source(self, name: str, ledger: Ledger) -> Source:
        """Return the library's own pool ``name`` (``"cupy"`` or ``"cudaMallocAsync"``) as a source."""

    # Arrays in memory of other processes

    def array_type(self) -> type[Any]:
        """Return the class of the library's arrays."""

    def foreign_memory(self, owner: object, ptr: int, size: int, device: int) -> Any:
        """Return memory that arrays can use, and that keeps ``owner`` alive.

        Args:
            owner: The object to which the memory belongs.
            ptr: The address of the memory.
            size: The size in bytes.
            device: The index of the device of the memory.
        """

    def owner_of(self, memory: Any) -> object:
        """Return the owner of ``memory``, the ``data.mem`` of an array; None if the memory has no owner."""

    def array_in(self, memory: Any, offset: int, shape: Any, dtype: Any, strides: Any) -> Any:
        """Return an array in ``memory``, whose first element is ``offset`` bytes after the begin of the memory."""

    # Work on a device

    def sleep(self, cycles: int, stream: int) -> None:
        """Keep ``stream``, which is of the current device, busy for ``cycles`` clock cycles."""

    def prepare_capture(self) -> None:
        """Let the work of later captures multiply matrices; the caller makes sure that no capture is in progress."""

    def graph_launcher(self, executable: int) -> GraphLauncher:
        """Return a launcher of ``executable``, a ``cudaGraphExec_t``, for the device that is current now."""

    # Kernels that are compiled at run time

    def compile_kernel(self, source: str, name: str, arch: str | None, options: Sequence[str]) -> KernelFunction:
        """Compile ``source``, and return the kernel ``name``.

        Args:
            source: The source in CUDA C++.
            name: The name of the kernel; for a template, with the arguments of the template.
            arch: The compute capability, such as ``"90"``; None for that of the current device.
            options: Options of the compiler.

        Raises:
            RuntimeError: The source cannot be compiled, or has no kernel of that name.
        """

    def launch_raw(self, kernel: Any, blocks: int, threads: int, arguments: tuple[Any, ...]) -> None:
        """Launch ``kernel``, which a ``RawModule`` of the library has, on the current stream.

        Raises:
            AcceleratorError: The launch failed.
        """

    def teach_elementwise(
        self,
        state: ElementwiseState,
        kernels: tuple[Any, Any],
        device: int,
        dtypes: tuple[Any, ...],
        kinds: tuple[int, ...],
        result: Any,
    ) -> None:
        """Let the core launch ``kernels`` where the core can launch kernels of the library.

        Args:
            state: The state of the jiterator function that has the kernels.
            kernels: The kernel for elements side by side, and the kernel for inputs with strides.
            device: The index of the device of the kernels, which is current.
            dtypes: The dtypes of the inputs.
            kinds: The kinds of the scalars.
            result: The dtype of the outputs.
        """

    # Several devices

    def transfers(self) -> Transfers:
        """Return the object that works on arrays of several devices; a process has one."""

    # Random numbers

    def generator_type(self) -> type[Any]:
        """Return the class whose instances fill arrays of the library with random numbers."""

    def install_generators(self, make: Callable[[], Sequence[Any]]) -> None:
        """Let the library's random functions draw from the generators that ``make`` returns, one for each device."""

    # Libraries of CUDA

    def nccl(self) -> Nccl:
        """Return the library of collectives; no device is needed.

        Raises:
            NcclNotFoundError: The library is not installed.
        """

    def supported_archs(self) -> list[int]:
        """Return the compute capabilities that the run-time compiler targets, such as ``[75, 80, 90]``."""

    def blas_handle(self) -> int:
        """Return the ``cublasHandle_t`` of this thread on the current device."""

    def solver_handle(self) -> int:
        """Return the ``cusolverDnHandle_t`` of this thread on the current device."""


_IMPLEMENTATIONS = {"cuda": "tcuda._cupy.backend", "emulated": "tcuda.emulation._backend"}
"""The module that implements the protocol for each runtime, by the name of the runtime."""

_made: dict[Runtime, Backend] = {}


def backend_of(runtime: Runtime) -> Backend:
    """Import the array library on the devices of ``runtime``, and return it; nothing is initialised."""
    return _made.get(runtime) or _made.setdefault(runtime, _make(runtime))


def _make(runtime: Runtime) -> Backend:
    implementation = importlib.import_module(_IMPLEMENTATIONS[runtime.name])
    made: Backend = implementation.Backend(runtime)
    return made


def array_module(runtime: Runtime) -> ModuleType:
    """Import and return the module that makes arrays on the devices of ``runtime``."""
    return importlib.import_module(backend_of(runtime).array_module)
