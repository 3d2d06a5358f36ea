"""CuPy's memory pools as sources of the ledger, and the error for a lack of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda import _core
from tcuda._base.errors import OutOfMemoryError
from tcuda._base.statuses import Status
from tcuda._cupy.streams import Handle

if TYPE_CHECKING:
    from typing import NoReturn

_UNIT = 512  # CuPy's pools round sizes up to a multiple of these bytes


def source(cupy: Any, name: str, ledger: _core.Ledger, current_stream: object) -> _core.Source:
    """Return CuPy's ``MemoryPool``, which takes its segments from ``ledger``, or its ``MemoryAsyncPool``.

    Args:
        cupy: The package.
        name: ``"cupy"`` or ``"cudaMallocAsync"``.
        ledger: The ledger.
        current_stream: The C function of CuPy that returns the handle of the current stream.
    """
    cuda = cupy.cuda
    if name == "cudaMallocAsync":
        return _core.PythonSource(_Pool(cuda, cuda.MemoryAsyncPool()), reports_segments=False, unit=_UNIT)

    def refuse() -> NoReturn:  # on this error CuPy's pool gives back its unused memory, and tries again
        raise cuda.runtime.CUDARuntimeError(int(Status.MEMORY_ALLOCATION))

    segments = cuda.CFunctionAllocator(*ledger.cupy_segment_functions(current_stream, refuse), ledger)
    pool = _Pool(cuda, cuda.MemoryPool(segments.malloc))
    return _core.PythonSource(pool, reports_segments=True, unit=_UNIT)


class _Held(NamedTuple):
    """Memory of a pool of CuPy, and the stream on which CuPy frees the memory.

    The stream is before the memory, because the stream must live longer, and Python drops the last field first.
    """

    ptr: int
    stream: Any
    memory: Any


class _Pool:
    """A pool of CuPy that allocates for a given device and stream, instead of the current ones."""

    def __init__(self, cuda: Any, pool: Any) -> None:
        self._cuda = cuda
        self._pool = pool

    def allocate(self, size: int, device: int, stream: int) -> Any:
        with self._cuda.Device(device):
            if self._cuda.get_current_stream().ptr == stream:
                return self._pool.malloc(size)
            base = self._cuda.stream._BaseStream
            other = Handle(stream, device) if stream else self._cuda.Stream.null
            base.__enter__(other)
            try:
                memory = self._pool.malloc(size)
            finally:
                base.__exit__(None)
            return _Held(memory.ptr, other, memory)

    def empty_cache(self, device: int) -> None:
        with self._cuda.Device(device):
            self._pool.free_all_blocks()


def out_of_memory_error(cupy_error: type[MemoryError]) -> type[OutOfMemoryError]:
    """Return a subclass of tcuda's error for a lack of memory and of ``cupy_error``, CuPy's error."""

    class CupyOutOfMemoryError(OutOfMemoryError, cupy_error):  # type: ignore[misc, valid-type]
        __doc__ = OutOfMemoryError.__doc__

        # The constructor of CuPy's error is not called, because its arguments are numbers and not a message.
        def __init__(self, message: str) -> None:
            RuntimeError.__init__(self, message)

        def __reduce__(self) -> tuple[type[OutOfMemoryError], tuple[Any, ...]]:
            return OutOfMemoryError, self.args  # CuPy may be missing in the process that unpickles the error

    CupyOutOfMemoryError.__name__ = CupyOutOfMemoryError.__qualname__ = OutOfMemoryError.__name__
    CupyOutOfMemoryError.__module__ = OutOfMemoryError.__module__
    return CupyOutOfMemoryError
