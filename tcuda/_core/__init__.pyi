# Written by docs/_tools/write_core_stub.py with nanobind 3.1.0. Change the bindings or stub.pat instead.
import enum
from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Literal, NoReturn, Protocol, TypeAlias, TypeVar

import numpy
import numpy.typing
from typing_extensions import Self

_F = TypeVar("_F", bound=Callable[..., Any])

_T = TypeVar("_T")

_Memory = TypeVar("_Memory", bound="OwnedMemory")

class _CurrentStream(Protocol):  # the same protocol as in tcuda._backend, which imports this module
    @property
    def ptr(self) -> int: ...
    @property
    def device_id(self) -> int: ...

RaceUse = (
    tuple[int, int, tuple[int, ...], tuple[int, ...], int, str]
    | tuple[int, int, tuple[int, ...], tuple[int, ...], int, str, str]
)

_Parameters = Sequence[tuple[int, int]]

_Pointers = Sequence[tuple[int, int, bool, int, int, str]]

_KernelUse: TypeAlias = tuple[
    list[tuple[int, int]],
    list[tuple[int, Literal["none", "read", "write", "both"], bool, str]],
    bool,
]

version: str
"""The version of the package that the core was compiled for."""

class Driver:
    """A driver table: the calls that the allocator makes of a CUDA driver."""

class CudaDriver(Driver):
    """The table of ``libcuda.so.1``.

    Raises:
        RuntimeError: The machine has no driver, the driver is too old, or the driver finds no device.
    """

    def __init__(self) -> None: ...

class CudaCalls:
    """Calls of the CUDA runtime that CuPy lacks, made through the driver; each returns a status first.

    CUDA must have been initialised before.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 11.4.
    """

    def __init__(self) -> None: ...
    def device_uuid(self, device: int) -> tuple[int, bytes]:
        """Return a status, and the 16 bytes of the UUID of ``device`` (``cuDeviceGetUuid_v2``)."""

    def stream_priority_range(self) -> tuple[int, int, int]:
        """Return a status, and the least and the greatest priority of the current context's device.

        The thread must have a current context (``cuCtxGetStreamPriorityRange``).
        """

    def event_record_with_flags(self, event: int, stream: int, flags: int) -> int:
        """Record ``event`` on ``stream``, and return a status (``cuEventRecordWithFlags``)."""

    def stream_create_with_priority(self, flags: int, priority: int) -> tuple[int, int]:
        """Return a status, and a new stream of the current context (``cuStreamCreateWithPriority``)."""

    def stream_flags(self, stream: int) -> tuple[int, int]:
        """Return a status, and the flags of ``stream`` (``cuStreamGetFlags``)."""

    def stream_priority(self, stream: int) -> tuple[int, int]:
        """Return a status, and the priority of ``stream`` (``cuStreamGetPriority``)."""

    def graph_dot_print(self, graph: int, path: str, flags: int) -> int:
        """Write ``graph`` to a file in the DOT language, and return a status (``cuGraphDebugDotPrint``)."""

class GreenContexts:
    """Calls for green contexts, made through the driver; each returns a status first.

    The primary context of the device must exist.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.5.
    """

    def __init__(self) -> None: ...
    def create(self, device: int, multiprocessors: int, scope: int, limit: int) -> tuple[int, int, int]:
        """Return a status, a new context, and the number of its multiprocessors (``cuGreenCtxCreate``).

        Args:
            device: The index of the device.
            multiprocessors: The least number of multiprocessors; 0 for all.
            scope: The sharing scope of the work queues; -1 to leave the work queues as they are.
            limit: The most streams of the work queues that work at the same time; 0 for the driver's own limit.
        """

    def work_queue_concurrency(self, device: int) -> tuple[int, int]:
        """Return a status, and the driver's own limit of concurrent streams (``cuDeviceGetDevResource``)."""

    def create_stream(self, context: int, flags: int, priority: int) -> tuple[int, int]:
        """Return a status, and a new stream of ``context`` (``cuGreenCtxStreamCreate``).

        The stream ends with the context.
        """

    def destroy(self, context: int) -> int:
        """Wait for the streams of ``context``, destroy them and ``context``, and return a status."""

class CudaGraphs:
    """Calls for graphs and captures that CuPy lacks, made through the driver; each returns a status first.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.
    """

    def __init__(self) -> None: ...
    def capture_info(self, stream: int) -> tuple[int, int, int]:
        """Return a status, the status of the capture of ``stream``, and the number of the capture."""

    def begin_graph(
        self, ledger: Ledger, pool: tuple[int, int], capture: object, stream: int, device: int, mode: int
    ) -> int:
        """Begin a capture whose memory comes from a pool, for the driver and for the ledger; return a status.

        Args:
            ledger: The ledger.
            pool: The pool.
            capture: An object whose ``number`` becomes the number of the capture.
            stream: The stream that captures.
            device: The device of the stream.
            mode: A ``CUstreamCaptureMode``.
        """

    def end_graph(
        self,
        ledger: Ledger,
        capture: object,
        number: int,
        stream: int,
        device: int,
        bodies: Sequence[int],
        flags: int | None,
        keep: bool,
    ) -> tuple[int, str]:
        """End a capture for the driver and for the ledger; return a status and the name of the call that failed.

        Args:
            ledger: The ledger, which keeps the memory from before the capture that the graph uses.
            capture: An object whose ``ended`` becomes a tuple: the ``cudaGraph_t`` or 0, the ``cudaGraphExec_t`` or 0,
                the number of nodes, and the result of :meth:`Ledger.hold`.
            number: The number of the capture.
            stream: The stream on which the capture has begun.
            device: The device of the stream.
            bodies: The graphs of the bodies of conditional nodes.
            flags: The flags of the executable graph; None for no executable graph.
            keep: Whether the ``cudaGraph_t`` is kept.
        """

    def instantiate(self, graph: int, flags: int) -> tuple[int, int]:
        """Return a status and a ``cudaGraphExec_t``; the call is allowed while streams capture."""

    def destroy_exec(self, exec: int) -> int:
        """Destroy a ``cudaGraphExec_t``, and return a status; the call is allowed while streams capture."""

    def contents(self, graph: int) -> tuple[int, int, list[int]]:
        """Return a status, the number of nodes, and the numbers in their parameters that may be addresses."""

class GraphChanges:
    """Changes of executable graphs; each call returns a status first. The calls are allowed while streams capture.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.
    """

    def __init__(self) -> None: ...
    def update(self, exec: int, graph: int) -> tuple[int, int, int]:
        """Give ``exec`` the parameters of the nodes of ``graph``.

        Returns:
            A status, the ``CUgraphExecUpdateResult``, and the place in ``graph`` of the node that cannot be updated; -1
            if the node is not known.
        """

    def move(
        self, graphs: Sequence[int], exec: int, begin: int, end: int, offset: int, block_begin: int, block_end: int
    ) -> tuple[int, int, int, list[int], int, int]:
        """Add ``offset`` to the addresses from ``begin`` to ``end`` in the parameters of all nodes.

        A failure, a doubtful node, and addresses that no node has leave everything as it was.

        Args:
            graphs: The graph, and the bodies of its conditional nodes.
            exec: The executable graph that is updated; 0 for none.
            begin: The first address that moves.
            end: The first address that does not move.
            offset: The number to add, modulo 2**64.
            block_begin: The begin of the allocation. A node that has another address of the allocation is doubtful.
            block_end: The end of the allocation.

        Returns:
            A status, the number of nodes with such addresses, the first doubtful node, counted over all graphs, the
            numbers that may be addresses after the move, and the last two results of :meth:`update`. The number of the
            node is -1 if no node is doubtful.
        """

    def set_enabled(self, exec: int, graph: int, place: int, enabled: bool) -> int:
        """Let launches of ``exec`` do or skip the node at ``place`` of ``graph``, and return a status."""

    def is_enabled(self, exec: int, graph: int, place: int) -> tuple[int, bool]:
        """Return a status, and whether launches of ``exec`` do the node at ``place`` of ``graph``."""

class ConditionalNodes:
    """Conditional nodes in captures; each call returns a status first.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.
    """

    def __init__(self) -> None: ...
    def add(self, stream: int, kind: int, flag: int, size: int) -> tuple[int, int, int]:
        """Capture a kernel that reads a flag, and a conditional node; return the handle and the graph of the body."""

    def set(self, stream: int, handle: int, flag: int, size: int) -> int:
        """Capture a kernel that copies a flag of 1 or 4 bytes to the value of a conditional handle."""

    def begin_capture_to_graph(self, stream: int, graph: int, mode: int) -> int:
        """Let the work of ``stream`` be captured into ``graph``."""

class NodeReader:
    """Reads what the nodes of graphs do and wait for; each call returns a status first.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.
    """

    def __init__(self) -> None: ...
    def read(self, graph: int) -> tuple[int, list[tuple[int, int, bytes, int, list[int]]]]:
        """Return a status and, for each node, its type, number, kernel, event, and the nodes that it waits for."""

    def number_of(self, executable: int) -> tuple[int, int]:
        """Return a status and the number by which profilers name the ``cudaGraphExec_t``; 0 with older drivers."""

class LoneNodes:
    """Graphs with a copy of a single node; each call returns a status first.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.
    """

    def __init__(self) -> None: ...
    def copy(self, graph: int, place: int) -> tuple[int, int]:
        """Return a status, and a new graph with a copy of the node at ``place`` of ``graph``; 801: no such copy."""

    def child(self, graph: int, place: int) -> tuple[int, int]:
        """Return a status, and the graph of the child graph at ``place`` of ``graph``."""

    def addresses(self, graph: int) -> tuple[int, list[int]]:
        """Return a status, and the numbers that may be addresses, in the order of the parameters."""

class NotedNodes:
    """Notes of the nodes of a capture, taken while the capture is in progress.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.
    """

    def __init__(self) -> None: ...
    def note(self, stream: int, note: int) -> int:
        """Give ``note``, which is not 0, to the nodes that ``stream`` has captured since; return their number."""

    def notes_of(self, graph: int) -> tuple[int, list[int]]:
        """Return a status, and the notes of the nodes of ``graph``; 0 for a node without a note."""

class GraphLauncher:
    """Launches the graph ``exec`` while the device is current that was current when the launcher was made.

    Args:
        exec: A ``cudaGraphExec_t``.
        current_stream: A capsule with CuPy's C function that returns the handle of the current stream.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.
    """

    def __init__(self, exec: int, current_stream: object) -> None: ...
    def launch(self) -> int:
        """Launch the graph on the current stream, and return a status.

        If another device is current, the method does nothing and returns 201. If the stream is capturing, the method
        does nothing and returns 900.
        """

    @property
    def launched(self) -> bool:
        """Return whether :meth:`launch` was called."""

class PhiloxState:
    """The state of a generator: a seed, and an offset, which is the position in every subsequence."""

    def __init__(self, seed: int, offset: int = 0) -> None: ...
    def read(self) -> tuple[int, int]:
        """Return the seed and the offset."""

    def write(self, seed: int, offset: int) -> None:
        """Change the seed and the offset."""

    def move_to(self, offset: int) -> None:
        """Change the offset only."""

    def advance(self, increment: int) -> tuple[int, int]:
        """Move the offset, and return the seed and the offset before the move.

        The numbers between the two offsets belong to the caller.
        """

    def store(self, target: numpy.typing.NDArray[numpy.uint8] | bytearray) -> None:
        """Write the seed and the offset to the 16 bytes of ``target``."""

    def load(self, source: object) -> bool:
        """Read the seed and the offset from an array of 16 bytes.

        Returns:
            False, with nothing changed, if ``source`` is no such array or is not the state of a generator.
        """

def philox_passes(size: int, itemsize: int, lanes: int, most_blocks: int) -> list[tuple[int, int, int, int]]:
    """Return the kernels that fill an array.

    Returns:
        A tuple for each kernel: the first element, the number of elements, the number of blocks, and by how much the
        offset moves. No kernel is launched for a tuple without elements, but the offset moves.
    """

class CapturedState:
    """The state of a generator for the kernels of one graph, which read the state from ``words`` on the device.

    Args:
        state: The state of the generator.
        function: The ``CUfunction`` of ``put()`` in ``philox.cuh``.
        words: The address of two words of 64 bits.
        owner: The object that keeps the memory of the words.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.
    """

    def __init__(self, state: PhiloxState, function: int, words: int, owner: object) -> None: ...
    @property
    def position(self) -> int:
        """How far the next draw of the graph is from the offset at the launch."""

    @position.setter
    def position(self, arg: int, /) -> None: ...
    def prepare_node(self) -> int:
        """Move the generator by what the graph draws, and let copies of the own node draw those numbers.

        Returns:
            A status. A failure leaves the generator unchanged.
        """

    def prepare(self, exec: int) -> int:
        """Move the generator by what the graph draws, and let the next launch of ``exec`` draw those numbers.

        Returns:
            A status. A failure leaves the generator unchanged.
        """

    def follow(self, before: CapturedState | None) -> None:
        """Let :meth:`prepare` set the node of ``before``, because the executable graph was made of that graph.

        With None, :meth:`prepare` sets the own node again.
        """

class FillKernel:
    """A kernel that fills an array with random numbers: ``function``, the ``CUfunction`` of a kernel in ``philox.cuh``.

    The methods return a status. A failure leaves the state unchanged. The status is 201 if the thread has no current
    context. The status of the ``fill`` methods is 900 if the stream is capturing.

    Raises:
        RuntimeError: The machine has no driver.
    """

    def __init__(self, function: int, itemsize: int, lanes: int, most_blocks: int) -> None: ...
    def fill_integers(self, state: PhiloxState, stream: int, out: int, size: int, low: int, range: int) -> int: ...
    def capture_integers(self, state: CapturedState, stream: int, out: int, size: int, low: int, range: int) -> int: ...
    def fill_reals(self, state: PhiloxState, stream: int, out: int, size: int, first: float, second: float) -> int: ...
    def capture_reals(
        self, state: CapturedState, stream: int, out: int, size: int, first: float, second: float
    ) -> int: ...

class ArrayAddresses:
    """The addresses of the arrays of ``type``. Descriptors read the addresses faster than attributes would.

    Args:
        type: The class of the arrays. The addresses of other arrays, also of subclasses, are looked up by the names of
            the attributes.
        data: The descriptor of ``array.data``.
        ptr: The descriptor of ``array.data.ptr``.
        device_id: The descriptor of ``array.data.device_id``; None if all arrays are on one device.
        reach: A function of the current device and the device of an array on another device. The function raises an
            exception if a kernel cannot use that array.
    """

    def __init__(
        self,
        type: type,
        data: object,
        ptr: object,
        device_id: object | None = None,
        reach: Callable[[int, int], object] | None = None,
    ) -> None: ...

class ArrayType:
    """The type of the arrays that the core reads and makes.

    An array is made by a call of the type. If ``initialize`` is given, an array is made as an object of ``base``, which
    leaves out functions that are written in Python.

    Args:
        addresses: The addresses of the arrays of the type.
        base: A base of the type, written in C.
        initialize: A function that gives the shape and the dtype to a new array:
            ``initialize(array, shape, dtype, None, None, None)``, with no memory, strides and order.
    """

    def __init__(
        self, addresses: ArrayAddresses, base: type | None = None, initialize: Callable[..., object] | None = None
    ) -> None: ...

class KernelParameters:
    """The parameters of a kernel.

    Args:
        parameters: The kind, the size and the offset of each parameter, the last two in bytes. The kinds are ``"p"``
            (pointer), ``"i"`` (signed integer), ``"u"`` (unsigned integer), ``"f"`` (half, float or double), ``"g"``
            (bfloat16), ``"b"`` (bool) and ``"s"`` (struct).
        arrays: The reader of the addresses of arrays; None to read ``array.data.ptr`` by name.

    Raises:
        ValueError: A kind does not exist, or no parameter of a kind has the given size.
    """

    def __init__(self, parameters: Sequence[tuple[str, int, int]], arrays: ArrayAddresses | None = None) -> None: ...

class KernelLauncher:
    """A compiled kernel on the devices on which the kernel is loaded.

    Raises:
        RuntimeError: The machine has no driver.
    """

    def __init__(self) -> None: ...
    def add(self, function: int, device: int) -> None:
        """Add the ``CUfunction`` of the kernel for the current context, which is the context of ``device``."""

class KernelFunction:
    """A callable that launches a kernel. A call runs no Python frame."""

    @property
    def name(self) -> str:
        """Return the name under which the kernel was asked for."""
    @property
    def parameters(self) -> KernelParameters:
        """Return the parameters of the kernel."""
    @property
    def set_shared_memory_config(self) -> Callable[[int], None]:
        """Return the function that allows a launch to ask for more shared memory."""
    def __call__(
        self,
        grid: int | Sequence[int] = (1, 1, 1),
        block: int | Sequence[int] = (1, 1, 1),
        args: tuple[Any, ...] | list[Any] | None = None,
        shared_mem: int = 0,
        stream: Any = None,
    ) -> None:
        """Launch the kernel; ``_compile_kernel`` documents the arguments."""

def cuda_kernel(
    name: str,
    parameters: KernelParameters,
    launcher: KernelLauncher,
    current_stream: object,
    repair: Callable[[int, int, tuple[int, int, int], tuple[int, int, int], int], object],
    configure: Callable[[int], None] | None = None,
) -> KernelFunction:
    """Return a kernel that the driver launches.

    Args:
        name: The name of the kernel, for messages.
        parameters: The parameters of the kernel.
        launcher: The kernel on each device.
        current_stream: A capsule with CuPy's C function that returns the handle of the current stream.
        repair: A function that is called with the status of a failed launch, the number of failures before, grid,
            block and shared memory. The status is 201 if the kernel is not loaded for the current context. After the
            function returns, the launch is tried again.
        configure: The attribute ``set_shared_memory_config``.
    """

def python_kernel(
    name: str,
    parameters: KernelParameters,
    launch: Callable[[tuple[int, int, int], tuple[int, int, int], bytes, tuple[Any, ...], int, Any], object],
    configure: Callable[[int], None] | None = None,
) -> KernelFunction:
    """Return a kernel that ``launch`` launches.

    Args:
        name: The name of the kernel, for messages.
        parameters: The parameters of the kernel.
        launch: A function that is called with grid, block, the packed arguments, the arguments, shared memory and the
            stream, which is None for the current stream.
        configure: The attribute ``set_shared_memory_config``.
    """

class Transfers:
    """Work on the arrays of several devices; :class:`tcuda._backend.Transfers` documents the methods.

    Args:
        arrays: The type of the arrays.
        type: The type that an array is an instance of.
        pointer: The type of ``array.data``.
        current_stream: A capsule with CuPy's C function that returns the handle of the current stream.
        captures: The captures in progress.
        scalar_type: A function that returns the scalar type of a dtype, or the dtype itself.
        reach: A function of a device and a peer, which lets the device use the memory of the peer if possible, and
            returns whether the device can use the memory.
        fail: A function of a status and the name of a call, which raises the error.
        check: A function that is called before each wait while captures are in progress, with the device and the stream
            that waits, and the device and the stream that is waited for. An exception prevents the wait.
        load: A function that returns the ``CUfunction`` of a kernel, or 0 if there is none. The arguments are a device,
            the kind of the kernel (a small table of arrays to pack, a large table, a sum), a dtype, and the number of
            inputs of a sum.

    Raises:
        RuntimeError: The machine has no driver.
    """

    def __init__(
        self,
        arrays: ArrayType,
        type: type[Any],
        pointer: type[Any],
        current_stream: object,
        captures: list[Any],
        scalar_type: Callable[[Any], Any],
        reach: Callable[[int, int], bool],
        fail: Callable[[int, str], NoReturn],
        check: Callable[[int, int, int, int], object],
        load: Callable[[int, int, Any, int], int],
    ) -> None: ...
    def empty(self, shape: Sequence[int], dtype: Any, device: int) -> Any: ...
    def relay(self, arrays: Sequence[Any], hops: Sequence[tuple[int, int, int, int, int]]) -> None: ...
    def copy_rows(
        self, target: Any, target_pitch: int, source: Any, source_pitch: int, width: int, rows: int
    ) -> None: ...
    def upload(self, targets: Sequence[Any], addresses: Sequence[int]) -> None: ...
    def pack(self, arrays: Sequence[Any], device: int, full: int) -> tuple[Any, list[int]] | None: ...
    def views(self, flat: Any, like: Sequence[Any], offsets: Sequence[int]) -> list[Any]: ...
    def add(self, out: Any, inputs: Sequence[Any], *, release: bool = True) -> bool: ...

def buffer_address(object: Any) -> int:
    """Return the address of the bytes of an object that has a buffer without gaps, such as an array of NumPy.

    Raises:
        TypeError: The object has no buffer.
        ValueError: The buffer has gaps.
    """

class CallGroup:
    """A group of calls, as NCCL has: a function starts the group, another function ends the group.

    Between the start and the end, the thread runs no Python code if the functions are written in C. So neither the
    garbage collector nor a signal handler runs while the group is open.

    Args:
        start: The function that starts the group.
        end: The function that ends the group, also after a call that fails.
    """

    def __init__(self, start: Callable[[], object], end: Callable[[], object]) -> None: ...
    def run(self, call: Callable[..., object], columns: tuple[Any, ...]) -> None:
        """Call ``call`` once for each item of the first of ``columns``, in one group.

        Args:
            call: The function.
            columns: The arguments. A tuple has an item for each call; any other object is the argument of all
                calls.
        """

pack_capacities: tuple[int, int]
"""The most arrays in a small table and in a large table of arrays to pack."""

class Settings:
    """The options of the caching allocator."""

    def __init__(self) -> None: ...
    @property
    def max_split_size(self) -> int: ...
    @max_split_size.setter
    def max_split_size(self, arg: int, /) -> None: ...
    @property
    def max_non_split_rounding(self) -> int: ...
    @max_non_split_rounding.setter
    def max_non_split_rounding(self, arg: int, /) -> None: ...
    @property
    def garbage_collection_threshold(self) -> float: ...
    @garbage_collection_threshold.setter
    def garbage_collection_threshold(self, arg: float, /) -> None: ...
    @property
    def expandable_segments(self) -> bool: ...
    @expandable_segments.setter
    def expandable_segments(self, arg: bool, /) -> None: ...
    @property
    def trim_always(self) -> bool: ...
    @trim_always.setter
    def trim_always(self, arg: bool, /) -> None: ...
    @property
    def rejects_beyond_limit(self) -> bool: ...
    @rejects_beyond_limit.setter
    def rejects_beyond_limit(self, arg: bool, /) -> None: ...
    @property
    def roundup_power2_divisions(self) -> list[int]: ...
    @roundup_power2_divisions.setter
    def roundup_power2_divisions(self, arg: Sequence[int], /) -> None: ...

class Source:
    """A source of memory other than the caching allocator."""

class PythonSource(Source):
    """A source that is a Python object.

    Args:
        pool: An object with two methods. ``allocate(size, device, stream)`` returns an object that keeps the memory,
            with the address as ``ptr``. ``empty_cache(device)`` gives back the memory that is kept for later.
        reports_segments: Whether the pool takes its segments from :meth:`Ledger.allocate_segment`.
        unit: The number of bytes of which every size is made a multiple.
    """

    def __init__(self, pool: object, reports_segments: bool, unit: int) -> None: ...

class LibrarySource(Source):
    """Two functions with the signatures of torch's pluggable allocator; ``owner`` keeps their library loaded."""

    def __init__(self, allocate: int, free: int, owner: object) -> None: ...

class Tracker:
    """Measures allocations while it is attached to the ledger of a device."""

    def __init__(self, of_thread: bool) -> None: ...

class Stacks(enum.IntEnum):
    """The choice of the stacks that the history notes."""

    NONE = 0

    LIVE = 1

    ALLOCATIONS = 2

    ALL = 3

def listen_to_segments(function: Callable[[], object] | None) -> None:
    """Let the main thread call ``function`` soon after memory of a segment came from the driver or went back.

    Segments that follow each other closely share a call. None ends the calls.
    """

class ExpectedCapture:
    """A time in which no event is recorded for page-locked memory: until :meth:`end`, or until the object dies."""

    def end(self) -> None:
        """End the time. A second call does nothing."""

class Ledger:
    """The ledger of all devices, through which every allocation goes.

    Args:
        driver: The table of the devices.
        devices: The number of devices.
        settings: The options of the caching allocator.
        fail_memory: A function that raises the error for a lack of memory: ``fail_memory(**facts)``.
        fail_driver: A function that raises the error for a call that failed: ``fail_driver(status, call)``.
        relieve: A function that may free memory of a device without room: ``relieve(device, size)`` returns whether to
            try the allocation again. None for no function.
    """

    def __init__(
        self,
        driver: Driver,
        devices: int,
        settings: Settings,
        fail_memory: Callable[..., NoReturn],
        fail_driver: Callable[[int, str], NoReturn],
        relieve: Callable[[int, int], bool] | None = None,
    ) -> None: ...
    def allocate(self, device: int, size: int, stream: int) -> int:
        """Return the address of ``size`` bytes for use on ``stream``."""

    def free(self, address: int) -> bool:
        """Free the allocation that begins at ``address``.

        Returns:
            False, with nothing changed, if no live allocation begins there.
        """

    def record_stream(self, device: int, address: int, stream: int) -> bool:
        """Note that ``stream`` uses the allocation: once freed, its memory is reused only after that stream's work.

        Returns:
            False if no live allocation begins at ``address``.
        """

    def stream_created(self, device: int, stream: int) -> None:
        """Let the ledger ask the driver about the stream by its handle."""

    def stream_about_to_be_destroyed(self, device: int, stream: int) -> None:
        """Forbid the ledger to use the handle of the stream."""

    def size_of(self, device: int, address: int) -> int:
        """Return the size of the allocation that begins at ``address``, 0 if no live allocation begins there."""

    def stream_of(self, device: int, address: int) -> int | None:
        """Return the handle of the stream for which the allocation that begins at ``address`` was made.

        Returns:
            None if no live allocation begins there, if the stream is destroyed, or if the stream is the default stream
            of another thread.
        """

    def stack_of(self, device: int, address: int) -> int:
        """Return the number of the Python stack of the allocation that begins at ``address``.

        Returns:
            0 if no live allocation begins there, or if its stack is not noted.
        """

    def block_at(self, device: int, address: int) -> tuple[int, int, int, bool, bool] | None:
        """Return the block that contains ``address``; None if no block contains the address.

        The call visits the segments and the blocks of one segment.

        Returns:
            The address of the block, the requested size, the size, whether the block is allocated, and whether the
            block belongs to a private pool.
        """

    def can_move(self, device: int, address: int) -> bool:
        """Return whether the program may keep the contents of the allocation that begins at ``address`` elsewhere.

        Returns:
            False if no live allocation begins there, if a graph or a capture needs the address, and for memory of a
            private pool.
        """

    def sharing_of(
        self, device: int, address: int
    ) -> tuple[int, int, list[int], list[tuple[int, int]], tuple[int, int] | None, int] | None:
        """Return how other processes can open the allocation that begins at ``address``, None if none begins there.

        Returns:
            The address and the size of the block; the handles of the streams that use it, as far as this thread has
            handles for them; the address and the size of each piece of physical memory that contains the block, in
            order and without gaps; the address and the size of the allocation of the driver that contains the block;
            and the number of the piece that was created last. There are no pieces outside of expandable segments, and
            the number is then 0. There is no allocation inside of them, and if the driver knows none. A process counts
            the pieces that it creates. So pieces with the same addresses and the same last number are the same physical
            memory.
        """

    def export_piece(self, device: int, address: int) -> int:
        """Return a new file descriptor for the piece of physical memory that begins at ``address``.

        The caller closes the descriptor, and keeps an allocation in the piece until then.
        """

    def import_pieces(self, device: int, pieces: Sequence[tuple[int, int]]) -> int:
        """Map pieces of another process side by side, and return the address.

        Args:
            device: The device.
            pieces: A descriptor and the size of each piece. The descriptors stay the caller's.
        """

    def use(self, device: int) -> None:
        """Take the device into use, so that the device can access all imported memory that its links reach.

        A device with an active context can access the memory that is imported later.
        """

    def release_imported(self, device: int, address: int) -> bool:
        """Unmap what :meth:`import_pieces` has mapped at ``address``; return False if nothing was mapped there."""

    def empty_cache(self, device: int, keep_spare: bool = False) -> None:
        """Give free memory back to the device, but not the small pool for the next capture if ``keep_spare``."""

    def cupy_functions(self, current_stream: object, begin: Callable[[int], object]) -> tuple[int, int, int]:
        """Return ``param``, ``malloc`` and ``free`` for ``CFunctionAllocator``; the ledger then lives for ever.

        Args:
            current_stream: A capsule with CuPy's C function that returns the handle of the current stream.
            begin: A function that is called with the index of a device before the first allocation on the device.
        """

    def cupy_segment_functions(self, current_stream: object, refuse: Callable[[], NoReturn]) -> tuple[int, int, int]:
        """Return the same functions for the segments of a CuPy pool.

        Args:
            current_stream: The same as for :meth:`cupy_functions`.
            refuse: A function that raises the exception that the pool takes for a lack of memory.
        """

    def allocate_segment(self, device: int, size: int) -> int:
        """Return the address of a new segment for a source that reports its segments, 0 if there is no memory."""

    def free_segment(self, device: int, address: int) -> None:
        """Give back a segment of :meth:`allocate_segment`."""

    def share(self) -> None:
        """Let the functions that torch loads use this ledger, which then lives for ever."""

    def change_source(self, source: Source | None) -> bool:
        """Take memory from ``source``, or from the caching allocator for None.

        Returns:
            False, with nothing changed, if memory was allocated before.
        """

    def change_settings(self, settings: Settings) -> None: ...
    def set_padding(self, padding: int) -> None:
        """Leave ``padding`` bytes, a multiple of 512, behind each later allocation of the caching allocator."""

    def keep_stacks(self, wanted: bool) -> None:
        """Note the stacks of later allocations also while no history is recorded, or no longer do so."""

    def set_poison(self, value: int) -> None:
        """Fill memory with the byte ``value``, in stream order, when it is handed out and when it is freed."""

    @property
    def caching(self) -> bool: ...
    @caching.setter
    def caching(self, arg: bool, /) -> None: ...
    def next_pool(self) -> int: ...
    def create_pool(
        self, device: int, id: tuple[int, int], library: Source | None, split: bool, use_on_oom: bool
    ) -> None: ...
    def release_pool(self, device: int, id: tuple[int, int]) -> None: ...
    def pool_uses(self, device: int, id: tuple[int, int]) -> int: ...
    def begin_pool(self, device: int, id: tuple[int, int], use: int = 0) -> None: ...
    def end_pool(self, device: int, id: tuple[int, int], use: int = 0) -> None:
        """End the use of this number, from any thread, or for 0 the latest use of this thread, if there is one."""

    def sleep(self, device: int, id: tuple[int, int], keep: bool, shared: Sequence[int]) -> str:
        """Take the memory of a pool away, and keep its addresses, after all work of the device.

        Args:
            device: The device.
            id: The pool; (0, 0) for the common pool and all pools of which the program has no object.
            keep: Whether to keep the contents, in page-locked memory of the host.
            shared: The addresses of allocations that other processes may use.

        Returns:
            Why the pool stays awake: "moving" if another thread puts the pool to sleep or wakes the pool, "capture",
            "shared", "other source", or "segments" for memory outside of expandable segments; or an empty text.
        """

    def wake(self, device: int, id: tuple[int, int]) -> tuple[bool, int, int, bool]:
        """Give a pool memory with the kept contents, at the same addresses.

        Returns:
            Whether another thread puts the pool to sleep or wakes the pool, so that nothing has changed; and the bytes
            that the pool needs, the bytes that there are, and whether a limit of the program leaves no more. These
            numbers are 0 unless the memory is missing, and the pool is then still asleep.
        """

    def is_asleep(self, device: int, id: tuple[int, int]) -> bool: ...
    def sleeping_pool(self, device: int, address: int) -> tuple[int, int] | None:
        """Return the pool that is asleep and whose block contains ``address``; None without such a pool."""

    def expect_capture(self) -> ExpectedCapture:
        """Wait until no thread records an event behind all work of a device, and let none be recorded.

        Before that, the memory of released graphs that no work uses is made ready for the capture.
        """

    def begin_capture(self, id: tuple[int, int], device: int, stream: int) -> int:
        """Let allocations on the streams of a capture come from a pool, and keep the memory that this thread frees.

        The graph of the capture uses the pool.

        Args:
            id: The pool.
            device: The device of the stream.
            stream: The stream on which the capture has begun.

        Returns:
            The number of the capture.
        """

    def end_capture(self, capture: int) -> None:
        """Let memory be allocated and freed as before the capture."""

    def begin_part(self, capture: int, device: int, stream: int) -> int:
        """Treat what ``stream`` has begun to capture as a part of ``capture``, and return the number of the part."""

    def end_part(self, part: int) -> None:
        """End a part of a capture; nothing happens if there is no such part."""

    def has_capture(self, capture: int) -> bool:
        """Return whether the capture has begun and has not ended."""

    def hold(self, addresses: Sequence[int], capture: int) -> list[int]:
        """Keep the allocations that contain these addresses and are older than the capture; return where they begin.

        Page-locked allocations of the host are kept too. Their addresses are returned as they are.
        """

    def release_holds(self, held: Sequence[int], replayed: bool) -> None:
        """Release the allocations that :meth:`hold` returned.

        Args:
            held: The allocations.
            replayed: Whether the graph was launched. The allocations are then released after the work of the
                devices.
        """

    def release_graph(self, id: tuple[int, int], held: Sequence[int], replayed: bool) -> None:
        """Release the allocations that :meth:`hold` returned, and the pool.

        Args:
            id: The pool.
            held: The allocations.
            replayed: Whether the graph was launched. The allocations are then released after the work of the
                devices.
        """

    def set_memory_fraction(self, device: int, fraction: float) -> None: ...
    def memory_fraction(self, device: int) -> float: ...
    def statistics(self, device: int) -> dict[str, int]: ...
    def scope_bytes(self, device: int) -> list[tuple[int, int, int, int]]:
        """Return the bytes of each name of scopes: current, peak, allocated and freed. The list may end early."""

    def allocated(self, device: int) -> int: ...
    def peak_allocated(self, device: int) -> int: ...
    def reserved(self, device: int) -> int: ...
    def peak_reserved(self, device: int) -> int: ...
    def reset_peaks(self, device: int) -> None: ...
    def reset_accumulated(self, device: int) -> None: ...
    def attach(self, device: int, tracker: Tracker) -> None: ...
    def detach(self, device: int, tracker: Tracker) -> None: ...
    def read(self, device: int, tracker: Tracker) -> tuple[int, int, int, int, int]: ...
    def record_history(self, stacks: Stacks, capacity: int, skipped: int, clear: bool) -> None: ...
    def records_history(self) -> bool: ...
    def stop_history(self) -> None: ...
    def report_to_nvtx(self, path: str) -> bool:
        """Tell a tool of all arrays in segments from now on, by NVTX's extension for memory.

        Args:
            path: The library of the tool.

        Returns:
            Whether the tool knows the extension.
        """

    def take_segment_changes(self) -> list[tuple[int, int]]:
        """Return how many bytes of segments came from the driver and went back since the last call.

        Returns:
            Both numbers for each device, and then those of the page-locked memory of the host.
        """

    def set_metadata(self, text: str) -> None: ...
    def metadata(self) -> str: ...
    def snapshot(
        self, pool: tuple[int, int] | None, traces: bool
    ) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]: ...
    def host_statistics(self) -> dict[str, int]:
        """Return the statistics of the page-locked memory of the host."""

    def host_snapshot(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the segments of page-locked memory and their events, with the keys of those of a device."""

    def attach_to_host(self, tracker: Tracker) -> None:
        """Let ``tracker``, which is attached to no device, measure page-locked memory."""

    def detach_from_host(self, tracker: Tracker) -> None: ...
    def read_host(self, tracker: Tracker) -> tuple[int, int, int, int, int]: ...
    def reset_host_peaks(self) -> None: ...
    def reset_host_accumulated(self) -> None: ...
    def change_host_settings(
        self, registers_pages: bool, threads: int, reserved_segment: int, background_thread: bool
    ) -> None:
        """Set the options of page-locked memory; segments that exist stay as they are.

        Args:
            registers_pages: Whether segments are pages of the process that the driver locks.
            threads: The number of threads that touch such pages before.
            reserved_segment: The bytes of the first segment for small blocks; 0 for the usual size.
            background_thread: Whether a thread asks the devices about freed blocks.
        """

    def begin_host_rest(self) -> None:
        """Let the thread of the settings ask nothing until :meth:`end_host_rest`."""

    def end_host_rest(self) -> None: ...
    def host_allocation_at(self, address: int) -> tuple[int, int]:
        """Return address and size of the page-locked allocation that contains ``address``; zeros if none does."""

    def empty_host_cache(self) -> None:
        """Give unused page-locked memory back to the driver, after the work of all devices."""

    def abandon(self) -> None:
        """Let frees do nothing; for a forked child."""

    def close(self) -> None:
        """Let frees change the statistics only; for a process that is exiting."""

def new_scope(outer: int, name: int, path: str) -> int:
    """Make a scope of memory, which lives until the end of the process, and return its number.

    Args:
        outer: The scope around it; 0 for an outermost scope.
        name: The number of the name, which no outer scope has.
        path: The names from the outermost on, with dots between them.
    """

def follow_scopes(variable: ContextVar[tuple[int, Any]], scope: int) -> None:
    """Let later allocations have the scope that ``variable`` names in the context of the allocation.

    Args:
        variable: Always the same variable. Its value is a tuple that begins with the number of the innermost scope; 0
            for no scope.
        scope: The innermost scope of the caller. The allocations of this thread that are made without Python's lock
            have this scope.
    """

class OwnedMemory:
    """A base of the blocks of emulated devices. The object frees its memory when the object dies.

    The memory is the buffer of the object.

    Attributes:
        device: The index of the device of the memory.
        ptr: The address; 0 if there is no memory.
        size: The size in bytes, which may be larger than the requested size.
        requested: The requested size.
    """

    device: int
    ptr: int
    size: int
    requested: int
    def free(self) -> None:
        """Free the memory now, even if arrays in it are alive, which an error has left unfinished."""
    def __buffer__(self, flags: int, /) -> memoryview: ...

def allocate_memory(type: type[_Memory], ledger: Ledger, device: int, size: int, stream: int) -> _Memory:
    """Return an object of ``type`` with new memory for ``stream``; an object without memory if ``size`` is 0."""

class PageLockedMemory:
    """Page-locked memory of the host. The object gives its memory back to the ledger when the object dies.

    The memory is the buffer of the object.

    Attributes:
        ptr: The address; 0 if there is no memory.
        size: The requested size in bytes.
        block_size: The size of the block, which may be larger.
    """

    @property
    def ptr(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def block_size(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def allocate_page_locked(ledger: Ledger, size: int) -> PageLockedMemory:
    """Return new page-locked memory; an object without memory if ``size`` is 0."""

class PageLockedArrays:
    """Makes NumPy arrays in page-locked memory, without a Python frame.

    Args:
        ledger: The ledger that gives the memory.
        functions: The capsule ``_ARRAY_API`` of NumPy.
        array: ``numpy.ndarray``.
        dtype: ``numpy.dtype``.
    """

    def __init__(self, ledger: Ledger, functions: object, array: type, dtype: type) -> None: ...
    def make(self, shape: object, dtype: object) -> Any:
        """Return a new array in row-major order with uninitialised elements.

        Returns:
            The array; None if the array would have no elements, too many bytes, or Python objects as elements, and if
            ``shape`` is neither an exact integer nor an exact tuple of them.

        Raises:
            TypeError: ``dtype`` is no dtype.
            AcceleratorError: The driver has no more page-locked memory.
        """

def frames_of(stack: int) -> list[dict[str, Any]]:
    """Return the name, filename and line of each frame of a noted stack, innermost first."""

def note_stack() -> int:
    """Return the number of the Python stack of this thread, which :func:`frames_of` takes."""

def block_allocator(allocate: Callable[..., Any], memory: object, size: object) -> Callable[..., Any]:
    """Return an allocator for CuPy that sets the size of the memory to the size of its block.

    Args:
        allocate: ``CFunctionAllocator.malloc`` for :meth:`Ledger.cupy_functions`.
        memory: The descriptor of the attribute ``mem`` of the pointer that ``allocate`` returns.
        size: The descriptor of the attribute ``size`` of that memory.
    """

class ElementwiseState:
    """The kernels that a jiterator function has learned from the calls that Python computed.

    Args:
        names: The names of the keyword arguments.
        defaults: The defaults of the keyword arguments, as Python scalars.
        outputs: The number of outputs.
    """

    def __init__(self, names: tuple[str, ...], defaults: tuple[complex, ...], outputs: int) -> None: ...
    def learn(
        self,
        arrays: ArrayType,
        current_stream: object,
        dtypes: tuple[Any, ...],
        kinds: tuple[int, ...],
        result: Any,
        contiguous: int,
        strided: int,
        device: int,
        owner: object,
    ) -> None:
        """Let the core compute calls with inputs of these dtypes.

        Args:
            arrays: The type of the inputs and the outputs.
            current_stream: The capsule with CuPy's function for the current stream.
            dtypes: The dtypes of the inputs, which are compared by identity.
            kinds: The kinds of the keyword arguments.
            result: The dtype of the outputs, or another object that stands for this dtype in the call of the type.
            contiguous: The ``CUfunction`` for elements side by side.
            strided: The ``CUfunction`` for inputs with strides.
            device: The index of the device of the functions, which is current.
            owner: An object that keeps the functions loaded.
        """

def elementwise_call(fallback: Callable[..., Any], state: ElementwiseState) -> Callable[..., Any]:
    """Return a callable that computes the calls that ``state`` has learned, and leaves others to ``fallback``.

    The callable has the attributes of ``fallback``, and adds no Python frame.
    """

def translated(
    function: Callable[..., Any],
    failure: type[BaseException] | tuple[type[BaseException], ...],
    raise_instead: Callable[..., NoReturn],
) -> Callable[..., Any]:
    """Return a callable that calls ``function``, and calls ``raise_instead(error, *args)`` if that raises ``failure``.

    The callable adds no Python frame.
    """

def current_device_call(ask: Callable[[], int]) -> Callable[[], int]:
    """Return a callable that returns the index of the current device, without a Python frame.

    The driver knows the device if the thread has a context. Otherwise the callable calls ``ask``, a function of the
    CUDA runtime, once in each thread. If the driver was in use before a fork, the child always calls ``ask``.
    """

def page_locked_pointers(ledger: Ledger, pointer: Callable[[PageLockedMemory, int], Any]) -> Callable[[int], Any]:
    """Return an allocator for CuPy, which takes a number of bytes and returns ``pointer(memory, 0)``."""

def forwarder(target: Callable[..., Any]) -> Forwarder:
    """Return a function that calls its attribute ``target``, which can be replaced."""

def cleanup_on_error(function: _F, mend: Callable[[Any], object]) -> _F:
    """Return a method that calls ``function`` and, if that raises, calls ``mend(self)`` until ``mend`` returns.

    No signal handler can run between the two calls, so ``mend`` always follows a ``function`` that fails.
    """

def finalizing(function: _F) -> _F:
    """Return a ``__del__`` that calls ``function``.

    If a signal handler raises ``KeyboardInterrupt`` or ``SystemExit`` in the middle, the code that runs next in this
    thread raises the exception. Python would drop the exception in a destructor.
    """

def call_reported(function: Callable[[], object]) -> None:
    """Call ``function``, and report an error as Python reports an error in a destructor.

    ``KeyboardInterrupt`` is raised in the code that runs next in this thread.
    """

class DeviceScope:
    """Context manager that makes the device ``idx`` current; a negative ``idx`` has no effect."""

    idx: int
    prev_idx: int
    def __enter__(self) -> None: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

class StreamScope:
    """Context manager that makes ``stream`` and its device current; None has no effect."""

    stream: _CurrentStream | None
    _source: _CurrentStream | None
    _target: _CurrentStream | None
    _source_device: int
    def __enter__(self) -> None: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

class StreamMethods:
    """The methods of a stream that make the stream a context manager, in which the stream is current."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None: ...

def find_calls_by(function: Callable[[], tuple[tuple[Any, ...], bool]]) -> None:
    """Let scopes find the calls of the runtime by ``function``.

    Args:
        function: A function that initialises the runtime. The function returns a tuple of ``getDevice``, ``setDevice``,
            ``currentStream``, ``useStream``, ``enterStream``, ``exitStream`` and ``defaultStream``, and whether the
            calls may be kept.
    """

def forget_scopes() -> None:
    """Forget the calls of the runtime, and the scopes of all threads; for a forked child."""

class AddressSet:
    """Addresses in their order."""

    def __init__(self) -> None: ...
    def add(self, address: int) -> None:
        """Add an address, unless the set has the address."""

    def discard(self, address: int) -> None:
        """Remove an address, if the set has the address."""

    def at_or_below(self, address: int) -> int | None:
        """Return the largest address of the set that is not above ``address``; None if there is none."""

    def above(self, address: int) -> int | None:
        """Return the smallest address of the set that is above ``address``; None if there is none."""

class EmulatedMemory:
    """The memory of an emulated device: up to ``limit`` bytes of the host, in blocks like those of ``cudaMalloc``."""

    def __init__(self, limit: int) -> None: ...
    def allocate(self, size: int, exportable: bool = True) -> int:
        """Return the address of a new block of ``size`` bytes, or 0 if the limit or the host refuses the block.

        Other processes can import the block if it is ``exportable``.
        """

    def release(self, address: int) -> bool:
        """Free the block that begins at ``address``; return False, with nothing changed, if no block begins there."""

    def block_at(self, address: int) -> tuple[int, int] | None:
        """Return ``(address, size)`` of the live block or the mapped range that contains ``address``."""

    def bounds(self) -> list[tuple[int, int]]:
        """Return the start and the end of a few ranges, in which the memory lies that :meth:`block_at` knows."""

    def is_unmapped(self, address: int) -> bool:
        """Return whether ``address`` is reserved and not mapped."""

    @property
    def unmaps(self) -> int:
        """The number of times that memory of any device was unmapped; until it grows, mapped addresses stay mapped."""

    def descriptor(self) -> int:
        """Return the descriptor of the file in which the memory lies, or -1 if the memory is private."""

    def place_of(self, address: int) -> tuple[int, int] | None:
        """Return the offset in the file, and the size, of the exportable block that contains ``address``."""

    def import_block(self, descriptor: int, offset: int, size: int) -> int:
        """Return the address of a block that lies in another process's file, or 0 after a failure.

        The block does not count as used.
        """

    def close_import(self, address: int) -> bool:
        """Unmap the imported block that begins at ``address``; return False if no such block begins there."""

    def keep_freed(self) -> None:
        """Keep memory accessible that is freed or unmapped from now on, for work that still has to be done.

        The memory counts as free. Its addresses are not used again before :meth:`give_back`.
        """

    def give_back(self) -> None:
        """Give the kept memory back to the system."""

    @property
    def kept(self) -> int:
        """Return the bytes that :meth:`keep_freed` keeps."""

    @property
    def limit(self) -> int: ...
    @property
    def used(self) -> int:
        """Return how many bytes are in use, each block rounded up to a multiple of 512."""

    @property
    def live(self) -> int:
        """Return the number of blocks, imported blocks, mappings and reservations."""

class EmulatedDriver(Driver):
    """The table of emulated devices.

    Args:
        memories: The memory of each device.
        streams: An object with the stream and event entries of the table as methods.
    """

    def __init__(self, memories: Sequence[EmulatedMemory], streams: object) -> None: ...

def copy_rows(target: int, target_pitch: int, source: int, source_pitch: int, width: int, rows: int) -> None:
    """Copy ``rows`` rows of ``width`` bytes of the host; a pitch is the bytes from one row to the next."""

def regions_of_items(
    places: bytes, itemsize: int, most: int
) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...], bool]]:
    """Return the regions of items at given addresses.

    Args:
        places: The addresses in ascending order, each in 8 bytes of the order of the machine.
        itemsize: The bytes of an item.
        most: The most exact regions. Beyond this number, the regions are a few ranges with all items in them.

    Returns:
        The address, the bytes of an item, the lengths and the strides of each region, and whether the region has no
        bytes but those of the items.
    """

class EmulatedFunction:
    """A kernel of a :class:`EmulatedModule`."""

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> list[tuple[str, int, int]]:
        """Return the kind, the size and the offset of each parameter.

        The kinds are those of :class:`KernelParameters`.
        """

    @property
    def argument_bytes(self) -> int:
        """Return the size of the buffer in which the arguments lie at their offsets."""

    @property
    def module_memory(self) -> list[tuple[int, int, bool]]:
        """Return the beginning and the end of each part of the module that can be read, and whether it is code."""

class EmulatedModule:
    """A load, with its own variables, of a shared library that the C++ compiler has made of CUDA C++ source.

    Args:
        library: The bytes of the library.

    Raises:
        RuntimeError: The library cannot be loaded, or was made by another version of tcuda.
    """

    def __init__(self, library: bytes) -> None: ...
    def function(self, name: str) -> EmulatedFunction | None:
        """Return the kernel that the source lists as ``name``, or whose symbol is ``name``."""

    def symbol(self, name: str) -> tuple[int, int] | None:
        """Return the address and the size of a global variable."""

    @property
    def origin(self) -> int:
        """The address where the library begins."""

    @property
    def kernels(self) -> list[str]:
        """Return the names of the kernels, in the order of the source."""

class KernelAccess:
    """One of the two accesses of a :class:`KernelRace`."""

    @property
    def kind(self) -> str:
        """``"read"``, ``"write"``, ``"volatile read"``, ``"volatile write"`` or ``"atomic"``."""

    @property
    def code(self) -> int:
        """The place behind the access in the library; 0 if the launch has too many places to tell them apart."""

    @property
    def size(self) -> int:
        """The bytes of the access."""

    @property
    def thread(self) -> tuple[int, int, int]: ...
    @property
    def block(self) -> tuple[int, int, int]: ...

class KernelRace:
    """Two accesses of different threads to the same memory that nothing orders, and of which one writes."""

    @property
    def address(self) -> int:
        """The first byte that both accesses touch."""

    @property
    def size(self) -> int:
        """The bytes that both accesses touch."""

    @property
    def first(self) -> KernelAccess: ...
    @property
    def second(self) -> KernelAccess: ...
    @property
    def missing(self) -> str:
        """What would order the accesses: ``"barrier"``, ``"warp barrier"``, ``"atomic"``, ``"fence"`` or ``"scope"``.

        ``"fence"`` is a fence beside an atomic function, and ``"scope"`` is a function for all threads of the device in
        the place of one for the threads of the block.
        """

    @property
    def without_fence(self) -> str:
        """The access whose thread lacks a fence: ``"first"``, ``"second"`` or ``"both"``; empty for other races."""

    @property
    def same_value(self) -> bool:
        """Whether both accesses write, and have always written the same bytes."""

    @property
    def count(self) -> int:
        """The races that were seen between the same two places of the code."""

    @property
    def shared(self) -> bool:
        """Whether the memory is shared memory."""

class EmulatedLaunch:
    """A launch of a kernel on the processor.

    Args:
        function: The kernel.
        grid: The number of blocks along each axis.
        block: The number of threads of a block along each axis, at most 1,024 in all.
        arguments: The arguments, packed.
        shared: The bytes of dynamic shared memory of a block, at most 232,448.
        ranges: The beginning and the end of each piece of memory that the kernel may use.
        strict: Whether all threads of a block must reach its barriers. A GPU does not count threads that have returned.
        patience: The seconds for which threads may spin while no thread of the block returns or leaves a barrier.
        recorded: Whether the launch notes the memory of devices that the kernel reads and writes.
        finds_changes: Whether a byte that was read, and that has another value at the end, counts as written. Without
            ``-fsanitize=thread``, gcc tells nothing about a write after a read of the same memory.
        variables: The beginning and the end of each global variable of the module, which is memory of a device. All
            other variables of the module are shared memory.
        races: Whether the launch looks for races between its threads. The module must be built with ``races``.
        marked: Whether the launch looks for reads of bytes that nothing has written.
        strict_marks: Whether no object of the module has bytes that nobody writes, such as padding. Then a read of a
            number with one unwritten byte counts. Otherwise all bytes of the read must be unwritten.
        marks: The beginning and the end of each block with bytes that nothing has written, and the address of its
            marks: a byte for each, which is 255 if the byte of the block is written. The address 0 stands for shared
            memory, which has no contents when a block of threads begins.
        marks_shared: Whether the dynamic shared memory has marks, too.
        order: The order of the blocks, and of the threads of each block of a module that is built with ``races``: 0 is
            the usual order, 1 the reverse, and other numbers are seeds. Only in the usual order, the kernel prints.
        constants: The beginning and the end of whole pages of memory that the kernel can only read.
        cooperative: Whether the blocks may wait for each other at a barrier of the whole grid.

    Raises:
        ValueError: ``block``, ``grid`` or ``shared`` is beyond the limits above, or ``arguments`` has another size than
            the parameters of the kernel.
    """

    def __init__(
        self,
        function: EmulatedFunction,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: bytes,
        shared: int,
        ranges: Sequence[tuple[int, int]],
        strict: bool = True,
        patience: float = 30.0,
        recorded: bool = False,
        finds_changes: bool = False,
        variables: Sequence[tuple[int, int]] = (),
        races: bool = False,
        marked: bool = False,
        strict_marks: bool = False,
        marks: Sequence[tuple[int, int, int]] = (),
        marks_shared: bool = False,
        order: int = 0,
        constants: tuple[int, int] = (0, 0),
        cooperative: bool = False,
    ) -> None: ...
    def allow(self, begin: int, end: int) -> None:
        """Let the kernel use the memory from ``begin`` to ``end``.

        Raises:
            RuntimeError: Another thread is in :meth:`run`.
        """

    def mark(self, begin: int, end: int, marks: int) -> None:
        """Let the launch know of a block with unwritten bytes, before the block is allowed.

        Args:
            begin: The beginning of the block.
            end: The end of the block.
            marks: The address of the marks.
        """

    def run(self) -> tuple[Any, ...] | None:
        """Run the kernel; Python's lock is given back meanwhile.

        Returns:
            None when the kernel has ended. After the kernel has ended or failed, later calls return the same again.

            ``("access", address, size, write, thread, block)`` if a thread wants to use memory outside of the ranges.
            The next call goes on with this access. Call :meth:`allow` before, or the access is reported again.

            ``(kind, text, file, line, function, thread, block)`` if a thread has failed. The kinds are ``"assert"``,
            ``"bounds"``, ``"deadlock"``, ``"divide"``, ``"mask"``, ``"misaligned"``, ``"timeout"`` and ``"trap"``. A
            launch in another ``order`` has the kind ``"unfinished"`` if the launch takes too long, or if a block spins
            while others have not begun.

        Raises:
            RuntimeError: The thread runs another kernel of the same module, or another thread is in :meth:`run`.
        """

    @property
    def codes(self) -> list[int]:
        """The places of the code of the result of :meth:`run`: an access, a failure, or all waiting threads.

        A place is behind a call; 0 if the place is not known.
        """

    @property
    def recorded(self) -> list[tuple[int, int]]:
        """The beginning and the end of each piece of memory of devices that the launch may use, in ascending order."""

    def accesses(
        self, cuts: Sequence[int], most: int
    ) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...], int, bool]]:
        """Return the memory that the kernel has read and written, once :meth:`run` has returned None.

        Args:
            cuts: Addresses in ascending order. No region goes beyond two neighbouring addresses.
            most: The most exact regions between two neighbouring addresses.

        Returns:
            The address, the bytes of an item, the lengths and the strides of each region; 1 for reads, 2 for writes and
            3 for both; whether the kernel has used all bytes of the region.
        """

    def races(self) -> list[KernelRace]:
        """Return the races that the launch has found, the first of each pair of places of the code, at most 256.

        Raises:
            MemoryError: The machine had too little memory for the search.
        """

    def volatile_races(self) -> list[KernelRace]:
        """Return the races of volatile accesses with others that are volatile or atomic, likewise.

        They are no races where a thread polls the memory in a loop.
        """

    @property
    def communicates(self) -> bool:
        """Whether threads may have told each other how far they are, so that another order may show more races."""

    @property
    def races_left_out(self) -> int:
        """The pairs of places of the code with races that :meth:`races` leaves out."""

    def keep_marks(self) -> list[tuple[int, int]]:
        """Set the marks of the bytes that the launch has written.

        Returns:
            The beginning of each block with such bytes, and their number.
        """

    @property
    def unwritten_reads(self) -> list[tuple[int, int, int, tuple[int, int, int], tuple[int, int, int], int]]:
        """The reads of bytes that nothing has written, for each of the first 64 places of the code that read so.

        An item has the address and the size of the first read, the number of reads, and the thread, the block and the
        place of the first read, as :attr:`codes` has places.
        """

    @property
    def unreached(self) -> tuple[int, int] | None:
        """Return how many threads of a block waited at a barrier, and how many threads had returned before.

        None if all threads of each block reached the barriers, or if the launch is strict.
        """

class EmulatedArray:
    """The base of the arrays of emulated devices, which has the members of an array.

    Attributes:
        _host: The NumPy array over the memory.
        _block: The memory.
        _base: The array of which the array is a view; None if there is none.
    """

    _host: numpy.typing.NDArray[Any]
    _block: Any
    _base: Any
    @classmethod
    def _part_of(cls, base: EmulatedArray, host: numpy.typing.NDArray[Any], /) -> Self:
        """Return the array whose elements are those of ``host``, which a basic index selects from ``base``."""

class EmulatedArrays:
    """Makes arrays of emulated devices.

    Args:
        memory: The class of the memory, a subclass of :class:`OwnedMemory`.
        array: The class of NumPy's arrays.
        functions: The capsule of NumPy's C functions.
        dtypes: The dtypes by the objects that name them; None for a dtype itself.
    """

    def __init__(
        self, memory: type[OwnedMemory], array: type[Any], functions: object, dtypes: dict[Any, numpy.dtype[Any] | None]
    ) -> None: ...
    def use(self, type: type[EmulatedArray]) -> None:
        """Make arrays of the class ``type``."""

    def slice(self, array: EmulatedArray, slice: slice) -> Any:
        """Return ``array[slice]``; None if an end of the slice does not fit into 64 bits."""

    def create(self, shape: object, dtype: object, ledger: Callable[[], Ledger], work: EmulatedWork) -> Any:
        """Return a new array in row-major order, on the current stream.

        Args:
            shape: The shape.
            dtype: The dtype, or an object that names the dtype.
            ledger: A function that returns the ledger.
            work: Finds the current device and the current stream.

        Returns:
            The array; None if Python must read an argument, if the array has no elements or does not fit into memory,
            or if work is not done at once.
        """

class EmulatedThread:
    """The current device and the current streams of the calling thread.

    Args:
        devices: The number of devices.
        default_stream: The current stream of each device at first.

    Attributes:
        device: The current device.
    """

    def __init__(self, devices: int, default_stream: object) -> None: ...
    @property
    def device(self) -> int: ...
    @device.setter
    def device(self, arg: int, /) -> None: ...
    def current_stream(self, device: int = -1) -> Any:
        """Return the current stream of ``device`` (-1: the current device)."""

    def use_stream(self, stream: Any, /) -> None:
        """Make ``stream`` current.

        Raises:
            RuntimeError: ``stream`` is not on the current device.
        """

    def enter_stream(self, stream: Any, /) -> None:
        """Make ``stream`` current until :meth:`exit_stream`. As in CuPy, :meth:`use_stream` changes nothing of that.

        Raises:
            RuntimeError: ``stream`` is not on the current device.
        """

    def exit_stream(self) -> None:
        """Restore the stream that was entered on the same device before the last one.

        Raises:
            IndexError: Every stream that was entered has been left.
        """

class EmulatedActivity:
    """When an emulated device works, in nanoseconds. The caller holds the lock of the clock."""

    def __init__(self) -> None: ...
    def add(self, start: int, end: int, now: int) -> None:
        """Add an operation.

        Args:
            start: Its start, which is not before ``now``.
            end: Its end.
            now: The present time.
        """

    def until(self, now: int) -> int:
        """Return how long the device has worked from the beginning to ``now``, the present time."""

    def within(self, start: int, end: int) -> int:
        """Return how long the device has worked from ``start`` to ``end``, without operations of long ago."""

class KernelTime:
    """The formula for the time of a kernel.

    Args:
        launch: The nanoseconds of a kernel without work.
        bytes_per_nanosecond: The bytes that a kernel moves in a nanosecond.
        operations_per_nanosecond: The floating-point operations that a kernel does in a nanosecond.
        multiprocessors: The multiprocessors of a device; a kernel on a share of them takes longer.
    """

    def __init__(
        self, launch: int, bytes_per_nanosecond: int, operations_per_nanosecond: int, multiprocessors: int
    ) -> None: ...
    def __call__(self, nbytes: int, flops: int = 0, multiprocessors: int = 0) -> int:
        """Return the nanoseconds of a kernel that moves ``nbytes``, and does ``flops`` floating-point operations.

        Args:
            nbytes: The bytes.
            flops: The operations.
            multiprocessors: The number of multiprocessors that the kernel runs on; all of them if 0.
        """

class EmulatedClock:
    """The base of the clock of emulated devices.

    Args:
        lock: A lock of Python.

    Attributes:
        _lock: The lock.
        _now: The time in nanoseconds. A time after the year 292 becomes that year.
    """

    def __init__(self, lock: Any) -> None: ...
    @property
    def _lock(self) -> Any: ...
    @property
    def _now(self) -> int: ...
    @_now.setter
    def _now(self, arg: int, /) -> None: ...

class EmulatedTimeline:
    """The base of the streams of emulated devices.

    Attributes:
        ready: The time, in nanoseconds, at which the work of the stream is complete. A time after the year 292 becomes
            that year.
        device: The index of the device.
        multiprocessors: The number of multiprocessors that the kernels of the stream run on.
        blocking: Whether the stream and the default stream of its device wait for each other.
    """

    def __init__(self) -> None: ...
    @property
    def ready(self) -> int: ...
    @property
    def device(self) -> int: ...
    @device.setter
    def device(self, arg: int, /) -> None: ...
    @property
    def multiprocessors(self) -> int: ...
    @multiprocessors.setter
    def multiprocessors(self, arg: int, /) -> None: ...
    @property
    def blocking(self) -> bool: ...
    @blocking.setter
    def blocking(self, arg: bool, /) -> None: ...

class EmulatedTimes:
    """Moves the clock and the streams of emulated devices. The caller holds the lock of the clock.

    Args:
        clock: The clock.
        devices: For each device the default stream and the activity.
        call: The time of the host that each operation takes.
    """

    def __init__(
        self, clock: EmulatedClock, devices: Sequence[tuple[EmulatedTimeline, EmulatedActivity]], call: int
    ) -> None: ...
    def start(self, timeline: EmulatedTimeline) -> int:
        """Return the earliest start of an operation that is added to ``timeline`` now; the call takes host time."""

    def occupy(self, timeline: EmulatedTimeline, duration: int) -> int:
        """Let ``timeline`` be busy for ``duration`` nanoseconds as soon as possible, and return the time of the end."""

    def extend(self, timeline: EmulatedTimeline, time: int) -> int:
        """Let ``timeline`` be busy at least until ``time``, and return the time until which it is busy."""

    def note(self, device: int, start: int, end: int) -> None:
        """Note that ``device`` works from ``start`` to ``end``."""

    def ready(self, device: int) -> int:
        """Return the time at which all work is complete that streams of ``device`` were given so far."""

class EmulatedWork:
    """Begins and ends work of emulated devices that is done in the call that launches the work."""

    def __init__(self) -> None: ...
    def use(
        self,
        times: EmulatedTimes,
        thread: EmulatedThread,
        created: dict[int, Any],
        obstacles: tuple[list[Any], ...],
        kernel: KernelTime,
    ) -> None:
        """Use a runtime.

        Args:
            times: Moves the clock of the runtime.
            thread: The current device and the current streams of the calling thread.
            created: The streams of the runtime by handle, except the default streams.
            obstacles: Lists that are empty while work is done at once.
            kernel: Gives the time of a kernel.
        """

    def forget(self) -> None:
        """Forget the runtime, in a forked child."""

    def begin(self) -> tuple[Any, int] | None:
        """Begin work on the current stream.

        Returns:
            The stream for :meth:`end`, and the current device. None if the work is not done at once, if somebody
            watches or traces the work, if the program has chosen an allocator, or if the current stream is not a stream
            of the current device.
        """

    def end(self, timeline: EmulatedTimeline, bytes: int, operations: int = 0) -> None:
        """End work that has moved ``bytes`` bytes, and has done ``operations`` floating-point operations."""

class QuietCalls:
    """Calls functions of NumPy, which give no warnings of floating-point errors then.

    Args:
        silence: Called with ``silent`` before a function.
        silent: The argument of ``silence``.
        restore: Called after a function with the result of ``silence``.
    """

    def __init__(self, silence: Callable[[Any], Any], silent: Any, restore: Callable[[Any], object]) -> None: ...
    def __call__(self, function: Callable[..., _T], /, *args: Any, **kwargs: Any) -> _T:
        """Return what ``function`` returns."""

def set_variable(variable: ContextVar[_T], value: _T) -> Token[_T]:
    """Set a context variable. Meanwhile the garbage collector does not run."""

def emulated_operation(
    function: Callable[..., Any],
    inputs: int,
    reduces: bool,
    fallback: Callable[..., Any],
    kinds: dict[Any, Any],
    failed: Callable[[Callable[..., Any], Exception], object],
    quiet: QuietCalls,
    work: EmulatedWork,
    arrays: EmulatedArrays,
) -> Callable[..., Any]:
    """Return a callable that applies a function to arrays of emulated devices, in the call.

    Args:
        function: The function of NumPy arrays.
        inputs: The number of inputs. One more argument of the callable is the output, which becomes ``out``.
        reduces: Whether the function gives one number for one array; a function of each element otherwise.
        fallback: Called with the same arguments where the callable cannot compute.
        kinds: For a function of each element, the dtype of the output by the dtypes of the inputs. A Python scalar has
            its type in place of a dtype. For another function, the dtypes of the input.
        failed: Called with ``function`` and its error, in whose place the function may raise another error.
        quiet: Calls ``function``.
        work: Begins and ends the work.
        arrays: The arrays.
    """

def notice_system_calls() -> None:
    """Notice from now on the system calls that use watched memory, in the modules that are loaded now.

    Such a call is told as an access of the host, and does its work. The watch stays until the process ends.
    """

class PauseOfWatch:
    """Context manager during which no access to the host's memory is noticed."""

    def __init__(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...

class RaceAccess:
    """One of the two accesses of a race."""

    @property
    def operation(self) -> str:
        """The name of the operation."""

    @property
    def label(self) -> str:
        """The name of the argument of the operation, "" if none is known."""

    @property
    def kind(self) -> Literal["read", "write", "read and write"]: ...
    @property
    def device(self) -> int:
        """The device of the operation, -1 for the host."""

    @property
    def stream(self) -> int:
        """The handle of the stream."""

    @property
    def region(self) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
        """The address, the itemsize, the shape and the strides of the memory."""

    @property
    def stack(self) -> list[dict[str, Any]]:
        """The Python stack of the operation, innermost first. A node of a graph has the stack of its capture."""

    @property
    def launch_stack(self) -> list[dict[str, Any]] | None:
        """The Python stack of the launch of the graph, None outside of graphs."""

    @property
    def confidence(self) -> Literal["exact", "possible"]:
        """Whether the operation has surely accessed common bytes."""

    @property
    def number(self) -> int:
        """The number of the operation, in the order of the calls."""

    @property
    def host(self) -> bool:
        """Whether the access was one of the host."""

class RaceAllocation:
    """The memory that a race is in."""

    @property
    def address(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def device(self) -> int: ...
    @property
    def stream(self) -> int:
        """The handle of the stream for which the memory was allocated."""

    @property
    def stack(self) -> list[dict[str, Any]]: ...
    @property
    def freed_stack(self) -> list[dict[str, Any]] | None:
        """The Python stack of the free, None if the memory was not freed when the race was found."""

class Race:
    """Two accesses of the same bytes, at least one of them a write, that no order relates."""

    @property
    def kind(self) -> Literal["read after write", "write after read", "write after write"]: ...
    @property
    def use_after_free(self) -> bool:
        """Whether the memory was handed out again between the accesses."""

    @property
    def current(self) -> RaceAccess:
        """The later access, whose operation found the race."""

    @property
    def previous(self) -> RaceAccess: ...
    @property
    def overlap(self) -> tuple[int, int]:
        """The address of the first common byte, and the number of bytes up to the last one."""

    @property
    def is_overlap_exact(self) -> bool:
        """False if the regions may have no byte in common; both accesses are possible then."""

    @property
    def allocation(self) -> RaceAllocation | None:
        """The memory of the current access, None if it is not known."""

    @property
    def previous_allocation(self) -> RaceAllocation | None:
        """The memory of the previous access, if the memory was handed out again since."""

    @property
    def count(self) -> int:
        """How often the race was found until now."""

    @property
    def recent(self) -> list[dict[str, Any]]:
        """The last operations, records, waits and synchronisations before the race was found, oldest first.

        Each has the "kind" ("work", "record", "wait" or "sync"), the "number" of the last operation so far, the
        "device" (-1 if the event alone is known), the "stream" (None for a wait for the whole device), the "name", the
        "event" or None, and the "stack".
        """

def deliver_races() -> None:
    """Call the ``on_race`` of detectors now for the races that callbacks of the driver have found.

    Otherwise the main thread does that as soon as it runs Python code. Raises the exception of an ``on_race``; the
    other waiting races of that detector are then found only by :meth:`RaceDetector.races`.
    """

class RaceGraph:
    """An executable graph that :meth:`RaceDetector.graph` has made."""

class RaceDetector:
    """Finds races between the accesses of operations, from what a program does.

    A handle of a default stream means the default stream of the calling thread, as in CUDA. A stream that was not
    announced counts as a blocking stream. Any thread may call any method.

    Args:
        on_race: A function that is called with each new race, after the event that has found the race. The exception
            of a call is raised to the caller of the event, and the other races of the event are then found only by
            :meth:`races`. Races with equal names, kinds and stacks are the same race, which is reported once.
    """

    def __init__(self, on_race: Callable[[Race], object]) -> None: ...
    def stream_created(self, device: int, stream: int, blocking: bool) -> None: ...
    def stream_destroyed(self, device: int, stream: int) -> None: ...
    def stream_synchronized(self, device: int, stream: int) -> None:
        """Note that the host has waited for a stream, or that a query of the stream found it idle."""

    def device_synchronized(self, device: int) -> None: ...
    def event_recorded(self, event: int, device: int, stream: int) -> None: ...
    def event_waited(self, event: int, device: int, stream: int) -> None:
        """Note that a stream waits for the last record of an event."""

    def event_synchronized(self, event: int) -> None:
        """Note that the host has waited for an event, or that a query of the event found it complete."""

    def event_destroyed(self, event: int) -> None: ...
    def work(self, device: int, stream: int, name: str, accesses: Sequence[RaceUse]) -> None:
        """Note an operation, and compare its accesses with those before.

        Raises:
            TypeError: The name or a part of an access has another type.
            ValueError: An access has another form than :data:`RaceUse`.
        """

    def work_together(self, streams: Sequence[tuple[int, int]], name: str, accesses: Sequence[RaceUse]) -> None:
        """Note an operation on several streams, given as (device, stream), that wait for each other."""

    def graph(self, nodes: Sequence[tuple[str, Sequence[RaceUse], Sequence[int], int]]) -> RaceGraph:
        """Make an executable graph.

        Args:
            nodes: For each node the name, the accesses, the places of earlier nodes that the node depends on, and the
                number of the stack (:meth:`note_stack`).

        Raises:
            IndexError: A dependency is no earlier node.
        """

    def set_node(self, graph: RaceGraph, place: int, accesses: Sequence[RaceUse]) -> None:
        """Replace the accesses of the node at ``place`` of ``graph`` for the next launches.

        Raises:
            IndexError: The graph has no such node.
            ValueError: The graph belongs to another detector.
        """

    def follow(self, graph: RaceGraph, before: RaceGraph) -> None:
        """Let the launches of ``graph`` come after those of ``before``: both stand for one executable graph.

        Raises:
            ValueError: A graph belongs to another detector.
        """

    def launch(self, graph: RaceGraph, device: int, stream: int) -> None:
        """Note a launch of a graph, and compare the accesses of its nodes with those before.

        Raises:
            ValueError: The graph belongs to another detector.
        """

    def memory_allocated(self, address: int, size: int, device: int, stream: int) -> None: ...
    def memory_freed(self, address: int) -> None: ...
    def memory_unmapped(self, address: int, size: int) -> None:
        """Forget the accesses of memory. A size of 0 stands for the allocation that begins at ``address``."""

    def host_registered(self, address: int, size: int) -> None:
        """Take note of page-locked memory of the host."""

    def host_unregistered(self, address: int) -> None:
        """Forget the page-locked memory that begins at ``address``."""

    def watch_host(self) -> None:
        """Let the detector hear of the accesses of the host to page-locked memory in use, in the thread of the access.

        Only the whole pages of the memory are watched. A process has one such detector, the last one. Nothing happens
        on a machine that does not tell reads from writes.
        """

    def end_watch_of_host(self) -> None:
        """End the watch of :meth:`watch_host`, and protect no memory any more."""

    def attach(self, ledger: Ledger) -> None:
        """Let ``ledger`` tell the detector of all its memory, also of the live allocations.

        Raises:
            RuntimeError: The detector is attached already, or the ledger has another detector.
        """

    def detach(self) -> None:
        """End what :meth:`attach` has begun. Nothing happens if the detector is not attached."""

    def note_stack(self) -> int:
        """Return the number of the Python stack of the caller."""

    @property
    def operations(self) -> int:
        """The number of operations until now."""

    def races(self) -> list[Race]:
        """Return the distinct races, in the order in which they were found."""

    def forget_races(self) -> None:
        """Report races again that were reported before."""

class DriverWatch:
    """Tells a detector of all calls of the CUDA driver that this process makes, by CUPTI.

    The races wait as :func:`deliver_races` says, because no Python code runs during a call of the driver.

    Args:
        detector: The detector.
        cupti: The path or the name of CUPTI's library.
        driver: The path or the name of the driver's library.

    Raises:
        RuntimeError: CUPTI or the driver cannot be used; the text says why.
    """

    def __init__(self, detector: RaceDetector, cupti: str, driver: str = "libcuda.so.1") -> None: ...
    def end(self) -> None:
        """End the watch. Afterwards nothing is attached, and no thread tells the detector of anything."""

class MpiWatch:
    """Reports to a race detector the calls of MPI that mpi4py makes, until :meth:`end`.

    A call that is complete when it returns is an access of the host. A nonblocking call uses its memory until a wait
    for its request, or a test that finds the request complete. Only uses of device memory and of page-locked memory are
    told. The races wait for Python's main thread (:func:`deliver_races`).

    Args:
        detector: The detector.

    Raises:
        RuntimeError: There is such a watch already.
    """

    def __init__(self, detector: RaceDetector) -> None: ...
    def end(self) -> None:
        """End the watch. Requests in progress count as complete. A second call does nothing."""

def noticed_mpi_functions() -> list[str]:
    """Return the names of the functions of MPI whose calls are noticed; none if mpi4py is not loaded."""

class Notes:
    """The memory that the kernels of a thread use, as a program tells it.

    Args:
        accesses: Tuples as :meth:`RaceDetector.work` takes them.
    """

    def __init__(self, accesses: Sequence[RaceUse]) -> None: ...
    def begin(self) -> None:
        """Let the notes hold in this thread."""

    def end(self) -> bool:
        """End what :meth:`begin` has begun; return False if the notes hold in another thread."""

def note_calls(
    type: type[Any], array_type: type[Any], pointer_type: type[Any], prepare: Callable[[Any], tuple[str, ...]]
) -> None:
    """Note the arrays that the calls of the objects of a type are given.

    Args:
        type: A type whose objects are called with a grid, a block and the arguments of a kernel.
        array_type: The type of arrays.
        pointer_type: The type of pointers to memory.
        prepare: The function that is called with an object before its first call, and that returns the names of the
            parameters of its kernel.

    Raises:
        RuntimeError: The calls of a type are noted already, or Python's type has no slot for calls.
    """

def stop_noting_calls() -> None:
    """End what :func:`note_calls` has begun."""

def note_stacks_of(type: type[Any]) -> None:
    """Note the stack when an object of a type is called, for work that the call queues without Python's lock.

    A second call for the same type does nothing.

    Args:
        type: A type whose calls run no code of the program.

    Raises:
        RuntimeError: Python's type has no slot for calls, or there are too many types.
    """

def stop_noting_stacks() -> None:
    """End the notes of :func:`note_stacks_of` for all types."""

def check_calls(function: Callable[[tuple[tuple[Any, ...], dict[str, Any] | None]], object] | None) -> None:
    """Call a function before each call that :func:`note_calls` or :func:`note_stacks_of` follows.

    Args:
        function: A function that takes the positional arguments and the named arguments of the call. An exception of
            the function refuses the call. None ends that.
    """

def forget_prepared_calls() -> None:
    """Let :func:`note_calls` prepare all objects again."""

def uses_of_ptx(text: bytes) -> dict[str, _KernelUse]:
    """Return what the kernels of a PTX module do with the memory that their parameters point to.

    Returns:
        For each name of a kernel: ``(offset, size)`` of each parameter; ``(offset, kind, possible, label)`` of each
        pointer; and whether the kernel uses no other memory.
    """

def begin_library_calls(modules: Sequence[str] = ()) -> None:
    """Note what the calls of NVIDIA's libraries read and write.

    CuPy's and PyTorch's modules call the libraries through their import tables. The entries of these tables lead to
    functions of the core until :func:`end_library_calls` has been called as often as this function. A module that is
    loaded later is found by :func:`look_for_library_calls`.

    Args:
        modules: Parts of the paths of other modules whose calls are noted too.
    """

def end_library_calls() -> None:
    """End what :func:`begin_library_calls` began: the last end restores the import tables."""

def look_for_library_calls() -> None:
    """Find the modules that were loaded since the last look, if calls of libraries are noted."""

def notes_library_calls() -> bool:
    """Return whether somebody wants the notes of libraries' calls."""

def noting_function(name: str, address: int) -> int:
    """Return the address of a function that notes the memory and calls a function of NVIDIA's libraries.

    Args:
        name: The name of the library's function.
        address: The address of the library's function. The result is this address if the function is not known.
    """

def describe_kernel(module: int, name: str, parameters: _Parameters, pointers: _Pointers, complete: bool) -> None:
    """Tell what a kernel does with memory, for race detectors.

    Args:
        module: The handle of the module.
        name: The mangled name of the kernel.
        parameters: The offset and the size of each parameter, in bytes.
        pointers: For each pointer its offset in the parameter block, the kind (0 for a pointer that is not used, 1 for
            a read, 2 for a write, 3 for both), whether the kernel may do less, the number of dimensions, the size of
            an item, and the name of the parameter. The number of dimensions is -1 for a pointer without a known extent.
            Otherwise the pointer begins a ``CArray`` of CuPy.
        complete: Whether the kernel uses no memory but that of ``pointers``.

    Raises:
        ValueError: The kind of a pointer is no such number.
    """

def add_ptx(module: int, text: bytes | str) -> None:
    """Tell the PTX of a module. The text is looked at when a kernel without a description is first launched."""

def forget_module(module: int) -> None:
    """Forget the descriptions and the PTX of a module."""

has_wings: bool
"""Whether the core was compiled with the classes of emulated devices and of the search for races."""

class EventFinalizer:
    """A base of :class:`tcuda.Event`: the death of an event that has a CUDA event calls its ``_release()``."""

    cuda_event: int
    def __del__(self) -> None: ...

class Forwarder:
    """A function that calls ``target``, with the same arguments."""

    target: Callable[..., Any]
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
