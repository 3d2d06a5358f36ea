# What nanobind.stubgen does not know of tcuda._core: names that only types use, and the classes that the core makes by
# Python's own C API. docs/_tools/write_core_stub.py reads this file. A line without indentation is a regular expression
# for a name. The lines below replace what stubgen would write for that name.

tcuda._core.__prefix__$:
    \from collections.abc import Callable, Sequence
    \from contextvars import ContextVar, Token
    \from types import TracebackType
    \from typing import Any, Literal, NoReturn, Protocol, TypeAlias, TypeVar
    \from typing_extensions import Self
    \import numpy
    \import numpy.typing

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

tcuda._core.for_tests$:

tcuda._core.version$:
    version: str
    """The version of the package that the core was compiled for."""

tcuda._core.has_wings$:
    has_wings: bool
    """Whether the core was compiled with the classes of emulated devices and of the search for races."""

tcuda._core.pack_capacities$:
    pack_capacities: tuple[int, int]
    """The most arrays in a small table and in a large table of arrays to pack."""

tcuda._core.KernelFunction$:
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

tcuda._core.DeviceScope$:
    class DeviceScope:
        """Context manager that makes the device ``idx`` current; a negative ``idx`` has no effect."""

        idx: int
        prev_idx: int
        def __enter__(self) -> None: ...
        def __exit__(
            self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
        ) -> None: ...

tcuda._core.StreamScope$:
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

tcuda._core.EventFinalizer$:
    class EventFinalizer:
        """A base of :class:`tcuda.Event`: the death of an event that has a CUDA event calls its ``_release()``."""

        cuda_event: int
        def __del__(self) -> None: ...

tcuda._core.OwnedMemory$:
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

tcuda._core.PageLockedMemory$:
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

tcuda._core.EmulatedArray$:
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

tcuda._core.StreamMethods$:
    class StreamMethods:
        """The methods of a stream that make the stream a context manager, in which the stream is current."""

        def __enter__(self) -> Self: ...
        def __exit__(
            self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
        ) -> None: ...

tcuda._core.__suffix__$:
    class Forwarder:
        """A function that calls ``target``, with the same arguments."""

        target: Callable[..., Any]
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
