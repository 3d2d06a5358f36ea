import enum
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

_F = TypeVar("_F", bound=Callable[..., Any])

class _CurrentStream(Protocol):  # as in tcuda._runtime.protocol, which imports this module
    @property
    def ptr(self) -> int: ...
    @property
    def device_id(self) -> int: ...

version: str
"""The version of the package that the core was compiled for."""

class HostMemory:
    """Memory of an emulated device: host memory behind a limit, in blocks as ``cudaMalloc`` gives them."""

    def __init__(self, limit: int) -> None: ...
    def allocate(self, size: int) -> int:
        """Return the address of a new block of ``size`` bytes, or 0 when the limit or the host refuses it."""
    def release(self, address: int) -> bool:
        """Free the block that starts at ``address``; False, with nothing changed, if none does."""
    def block_at(self, address: int) -> tuple[int, int] | None:
        """Return ``(address, size)`` of the live block, or of the mapped range, that holds ``address``."""
    def is_unmapped(self, address: int) -> bool:
        """Tell whether ``address`` is reserved and has no memory."""
    @property
    def limit(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def live(self) -> int: ...

class PhiloxState:
    """The state of a generator: a seed, and an offset that says how far every subsequence has come."""

    def __init__(self, seed: int, offset: int = 0) -> None: ...
    def read(self) -> tuple[int, int]:
        """Return the seed and the offset."""
    def write(self, seed: int, offset: int) -> None:
        """Change the seed and the offset."""
    def move_to(self, offset: int) -> None:
        """Change the offset alone."""
    def advance(self, increment: int) -> tuple[int, int]:
        """Move the offset, and return the seed and the offset as they were: the caller's own."""
    def store(self, target: npt.NDArray[np.uint8] | bytearray) -> None:
        """Write seed and offset to the 16 bytes of ``target``."""
    def load(self, source: object) -> bool:
        """Read seed and offset from an array of bytes; False, with nothing changed, if it has not the 16 of a state."""

def philox_passes(size: int, itemsize: int, lanes: int, most_blocks: int) -> list[tuple[int, int, int, int]]:
    """Return the kernels that fill an array: first element, elements, blocks, and by how much each moves the offset.

    A kernel of no elements is none: the offset moves for nothing.
    """

class CapturedState:
    """The state of a generator for the kernels of one graph, which read it from ``words`` on the device.

    Args:
        state: The state of the generator.
        function: A ``CUfunction``: ``put()`` of ``philox.cuh``.
        words: The address of two words of 64 bits.
        owner: What keeps their memory.
    """

    def __init__(self, state: PhiloxState, function: int, words: int, owner: object) -> None: ...
    def prepare(self, exec: int) -> int:
        """Move the generator past what the graph draws, for the next launch of ``exec``; return a status."""

class CudaCalls:
    """Calls of the CUDA runtime that CuPy lacks, made through the driver; each returns a status first.

    CUDA must have been initialised before.

    Raises:
        RuntimeError: There is no driver, or the driver is older than that of CUDA 11.4.
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

class CudaGraphs:
    """What CuPy does not have of the driver's functions for graphs; each returns a status first.

    Raises:
        RuntimeError: There is no driver, or one older than that of CUDA 12.4.
    """

    def __init__(self) -> None: ...
    def capture_info(self, stream: int) -> tuple[int, int, int]:
        """Return a status, that of the capture of ``stream``, and the number of the capture."""
    def instantiate(self, graph: int, flags: int) -> tuple[int, int]:
        """Return a status, and a ``cudaGraphExec_t``; captures do not forbid it."""
    def destroy_exec(self, exec: int) -> int:
        """Destroy a ``cudaGraphExec_t``; captures do not forbid it."""
    def contents(self, graph: int) -> tuple[int, int, list[int]]:
        """Return a status, the number of nodes, and what may be an address in their parameters."""

class GraphLauncher:
    """Launches ``exec`` on the stream whose handle CuPy's C function ``current_stream`` returns.

    It does so while the device is current that was so when it was made.
    """

    def __init__(self, exec: int, current_stream: object) -> None: ...
    @property
    def launched(self) -> bool:
        """Whether :meth:`launch` was called."""
    def launch(self) -> int:
        """Return a status: 201 or 900, with nothing done, if another device is current or the stream is capturing."""

class FillKernel:
    """A kernel that fills an array with random numbers: ``function``, a ``CUfunction`` of those of ``philox.cuh``.

    Its methods return a status, with the state as it was if they failed: 201 if this thread has no current context, 900
    if the stream is capturing.
    """

    def __init__(self, function: int, itemsize: int, lanes: int, most_blocks: int) -> None: ...
    def fill_integers(self, state: PhiloxState, stream: int, out: int, size: int, low: int, range: int) -> int: ...
    def fill_reals(self, state: PhiloxState, stream: int, out: int, size: int, first: float, second: float) -> int: ...
    def capture_integers(self, state: CapturedState, stream: int, out: int, size: int, low: int, range: int) -> int: ...
    def capture_reals(
        self, state: CapturedState, stream: int, out: int, size: int, first: float, second: float
    ) -> int: ...

def block_allocator(allocate: Callable[..., Any], memory: object, size: object) -> Callable[..., Any]:
    """Return ``allocate`` for CuPy, with the size of the memory that it returns set to the size of the block.

    Args:
        allocate: ``CFunctionAllocator.malloc`` for :meth:`Ledger.cupy_functions`.
        memory: The descriptor of the attribute ``mem`` of what it returns.
        size: The descriptor of the attribute ``size`` of that.
    """

def translated(
    function: Callable[..., Any],
    failure: type[BaseException] | tuple[type[BaseException], ...],
    raise_instead: Callable[..., NoReturn],
) -> Callable[..., Any]:
    """Return ``function`` with ``raise_instead(error, *args)`` called where it raises ``failure``; costs no frame."""

def mended(function: _F, mend: Callable[[Any], object]) -> _F:
    """Return a method that calls ``function`` and, where that raises, ``mend(self)`` again and again until it returns.

    No signal handler can run between the two, so that what ``function`` began is always put in order.
    """

class DeviceScope:
    """Context manager that makes the device ``idx`` current; nothing happens if that is negative."""

    idx: int
    prev_idx: int
    def __enter__(self) -> None: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

class StreamScope:
    """Context manager that makes ``stream`` current, and its device; nothing happens if that is None."""

    stream: _CurrentStream | None
    src_prev_stream: _CurrentStream | None
    dst_prev_stream: _CurrentStream | None
    def __enter__(self) -> None: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

class StreamMethods:
    """What lets a stream be a scope in which it is current."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None: ...

def find_calls_by(function: Callable[[], tuple[tuple[Any, ...], bool]]) -> None:
    """Let scopes find the calls of the runtime by ``function``.

    It initialises, and returns a tuple of ``getDevice``, ``setDevice``, ``currentStream``, ``useStream``,
    ``enterStream``, ``exitStream`` and ``defaultStream``, and whether they may be kept.
    """

def forget_scopes() -> None:
    """Forget these calls and all scopes that threads are in: for a forked child."""

class Settings:
    """The options of the caching allocator."""

    max_split_size: int
    max_non_split_rounding: int
    garbage_collection_threshold: float
    expandable_segments: bool
    roundup_power2_divisions: Sequence[int]

class Driver:
    """A driver table: what the allocator asks of a CUDA driver."""

class CudaDriver(Driver):
    """The table of ``libcuda.so.1``; RuntimeError if that cannot be used."""

class HostDriver(Driver):
    """The table of emulated devices with ``memories``; ``streams`` has the stream and event entries as methods."""

    def __init__(self, memories: list[HostMemory], streams: object) -> None: ...

class FaultyDriver(Driver):
    """The table of ``driver``, one call of which fails."""

    def __init__(self, driver: Driver) -> None: ...
    def fail(self, entry: str, calls: int, status: int) -> None:
        """Let ``entry`` fail once with ``status``, after ``calls`` calls that go through."""
    @property
    def failed(self) -> bool:
        """Whether that has happened."""
    def meanwhile(self, function: Callable[[], object]) -> None:
        """Let every call for memory wait until a thread of its own has called ``function``."""

class Source:
    """Where memory comes from, if not from the caching allocator."""

class PythonSource(Source):
    """A pool that is a Python object: ``allocate(size, device, stream)`` returns what holds memory at its ``ptr``."""

    def __init__(self, pool: object, reports_segments: bool, unit: int) -> None: ...

class LibrarySource(Source):
    """Two functions with the signatures of torch's pluggable allocator, in a library that ``owner`` keeps loaded."""

    def __init__(self, allocate: int, free: int, owner: object) -> None: ...

class Tracker:
    """Measures allocations while it is attached to the ledger of a device."""

    def __init__(self, of_thread: bool) -> None: ...

class Stacks(enum.IntEnum):
    """Which stacks the history notes."""

    NONE = ...
    LIVE = ...
    ALLOCATIONS = ...
    ALL = ...

class Ledger:
    """The ledger of all devices, through which every allocation goes.

    ``fail_memory(**facts)`` and ``fail_driver(status, call)`` raise what a failure is for Python.
    """

    def __init__(
        self,
        driver: Driver,
        devices: int,
        settings: Settings,
        fail_memory: Callable[..., NoReturn],
        fail_driver: Callable[[int, str], NoReturn],
    ) -> None: ...
    def allocate(self, device: int, size: int, stream: int) -> int:
        """Return the address of ``size`` bytes for use on ``stream``."""
    def allocate_block(self, device: int, size: int, stream: int) -> tuple[int, int]:
        """Allocate, and return the address and the size of the block: all of it belongs to the caller."""
    def free(self, address: int) -> bool:
        """Free what begins at ``address``; False, with nothing changed, if nothing live does."""
    def record_stream(self, device: int, address: int, stream: int) -> bool:
        """Hold back what begins at ``address``, once freed, until ``stream`` is done with it; False if nothing does."""
    def size_of(self, device: int, address: int) -> int:
        """Return the size of what begins at ``address``, 0 if nothing live does."""
    def stream_created(self, device: int, stream: int) -> None:
        """Let the handle be used for questions about the stream."""
    def stream_about_to_be_destroyed(self, device: int, stream: int) -> None:
        """Let the handle not be used any more."""
    def empty_cache(self, device: int) -> None:
        """Give what is free back to the device."""
    def allocate_segment(self, device: int, size: int) -> int:
        """Return the address of new memory for a source that reports its segments, 0 if there is none."""
    def free_segment(self, device: int, address: int) -> None:
        """Give back what :meth:`allocate_segment` gave."""
    def cupy_functions(self, current_stream: object) -> tuple[int, int, int]:
        """Return ``param``, ``malloc`` and ``free`` for ``CFunctionAllocator``; the ledger then lives for ever."""
    def cupy_segment_functions(self, current_stream: object, refuse: Callable[[], NoReturn]) -> tuple[int, int, int]:
        """Return the same for the segments of a CuPy pool, to which ``refuse()`` says that there is no memory."""
    def share(self) -> None:
        """Let the functions that torch loads use this ledger, which then lives for ever."""
    def change_source(self, source: Source | None) -> bool:
        """Take memory from ``source``, or the caching allocator; False if some was taken before."""
    def change_settings(self, settings: Settings) -> None: ...

    caching: bool

    def next_pool(self) -> int: ...
    def create_pool(
        self, device: int, id: tuple[int, int], library: Source | None, split: bool, use_on_oom: bool
    ) -> None: ...
    def release_pool(self, device: int, id: tuple[int, int]) -> None: ...
    def pool_uses(self, device: int, id: tuple[int, int]) -> int: ...
    def begin_pool(self, device: int, id: tuple[int, int], use: int = 0) -> None: ...
    def end_pool(self, device: int, id: tuple[int, int], use: int = 0) -> None:
        """End the use of this number, from any thread, or for 0 the thread's latest; do nothing if there is none."""
    def begin_capture(self, id: tuple[int, int], device: int, stream: int) -> int:
        """Let what is allocated on the streams of a capture come from a pool, and keep what this thread frees.

        The graph that comes of it uses the pool. Returns the number of the capture, which has begun on ``stream``.
        """
    def end_capture(self, capture: int) -> None:
        """Let memory be allocated and freed as before."""
    def has_capture(self, capture: int) -> bool:
        """Tell whether that capture has begun, and not ended."""
    def hold(self, addresses: Sequence[int], capture: int) -> list[int]:
        """Keep the allocations that have these addresses and are older than the capture; return where they begin."""
    def release_graph(self, id: tuple[int, int], held: Sequence[int], replayed: bool) -> None:
        """Let go of what :meth:`hold` returned, and of the pool; if ``replayed``, when the devices are done with it."""
    def set_memory_fraction(self, device: int, fraction: float) -> None: ...
    def memory_fraction(self, device: int) -> float: ...
    def statistics(self, device: int) -> dict[str, int]: ...
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
    def stop_history(self) -> None: ...
    def set_metadata(self, text: str) -> None: ...
    def metadata(self) -> str: ...
    def snapshot(
        self, pool: tuple[int, int] | None, traces: bool
    ) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]: ...
    def abandon(self) -> None:
        """Let frees do nothing: this is a forked child."""
    def close(self) -> None:
        """Let frees only count: the process is exiting."""
