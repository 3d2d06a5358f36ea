"""The annotation of calls: which arrays the calls in a block of code use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._base.arguments import a_kind
from tcuda._base.scope import Scope
from tcuda._base.strides import packed_strides
from tcuda._core import cleanup_on_error
from tcuda.sanitizer import _detector

if TYPE_CHECKING:
    from typing_extensions import Self

_READ, _WRITE = 1, 2


class uses(Scope):
    """Context manager and decorator that says which arrays the calls in a block of code use.

    The race detector believes the annotation: the kernels that the current thread launches in the block read the arrays
    of ``reads``, write the arrays of ``writes``, and use no other memory. An array of which a kernel uses only a part
    can be given as that part: ``reads=[x[:n]]``. The innermost of nested annotations counts. The annotation changes
    nothing about copies, fills and events.

    On emulated devices the detector sees every access of a kernel, so the annotation changes nothing there. Without a
    detector, only the arguments are checked.

    The block must end in the thread in which it began. In a coroutine, the annotation must not be around an ``await``,
    because other tasks of the thread would be annotated too.

    Args:
        reads: An array, or a sequence of arrays, that the calls read: arrays of ``tcuda.xp``, CUDA tensors of torch, or
            any objects with ``__cuda_array_interface__``.
        writes: An array, or a sequence of arrays, that the calls write. An array in both is read and written.

    Raises:
        RuntimeError: The block ends in another thread, or is entered twice.
        TypeError: ``reads`` or ``writes`` is neither an array on a device nor a sequence of such arrays.
        ValueError: Neither ``reads`` nor ``writes`` is given. (``reads=[]`` says that the calls use no array.)

    Example:
        >>> x, out = xp.ones(1000), xp.empty(1000)
        >>> with tcuda.sanitizer.uses(reads=[x], writes=[out]):
        ...     y = xp.sqrt(x, out=out)  # or a call of a library with x.data.ptr and out.data.ptr
    """

    def __init__(self, *, reads: Any = None, writes: Any = None) -> None:
        """Prepare an annotation; the block begins the annotation."""
        if reads is None and writes is None:
            raise ValueError("uses() needs reads=..., writes=... or both; reads=[] says that the calls use no array.")
        self._reads = _arrays(reads, "reads")
        self._writes = _arrays(writes, "writes")
        self._notes: _core.Notes | None = None
        self._is_lost = False

    def begin(self) -> None:
        """Begin the annotation.

        Example:
            >>> x = xp.ones(3)
            >>> uses = tcuda.sanitizer.uses(reads=[x])
            >>> uses.begin()  # as at the start of a block
            >>> uses.undo()
        """
        if _detector.is_started():
            self._notes = _core.Notes(self._accesses())
            self._notes.begin()

    def undo(self) -> None:
        """End the annotation.

        Example:
            >>> x = xp.ones(3)
            >>> uses = tcuda.sanitizer.uses(reads=[x])
            >>> uses.begin()
            >>> uses.undo()  # as at the end of a block
        """
        if self._notes is not None:
            self._is_lost = not self._notes.end()
            if not self._is_lost:  # otherwise the first thread can still end the annotation
                self._notes = None

    def again(self) -> Self:
        """Return a new annotation of the same arrays.

        Example:
            >>> x = xp.ones(3)
            >>> uses = tcuda.sanitizer.uses(reads=[x])
            >>> with uses.again():
            ...     y = x + 1
        """
        return type(self)(reads=self._reads, writes=self._writes)

    def _accesses(self) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...], int, str]]:
        kinds: dict[tuple[int, int, tuple[int, ...], tuple[int, ...]], int] = {}
        for arrays, kind in ((self._reads, _READ), (self._writes, _WRITE)):
            for array in arrays:
                memory = _memory(array)
                kinds[memory] = kinds.get(memory, 0) | kind
        return [(*memory, kind, "") for memory, kind in kinds.items()]

    def _leave(self, *exception: Any) -> None:
        self._end()
        if self._is_lost and exception and exception[0] is None:
            raise RuntimeError(
                "The block of tcuda.sanitizer.uses() must end in the thread in which it began; another thread has "
                "ended the block."
            )

    __exit__ = cleanup_on_error(_leave, Scope._end)


def _arrays(given: Any, name: str) -> tuple[Any, ...]:
    """Return the arrays of an argument.

    Raises:
        TypeError: The argument is neither an array on a device nor a sequence of such arrays.
    """
    if given is None:
        return ()
    if _is_array(given):
        return (given,)
    try:
        arrays = tuple(given)
    except TypeError:
        raise TypeError(
            f"{name} must be an array on a device or a sequence of such arrays; got {_kind(given)}."
        ) from None
    for place, array in enumerate(arrays):
        if not _is_array(array):
            raise TypeError(f"{name}[{place}] must be an array on a device; got {_kind(array)}.")
    return arrays


def _is_array(array: Any) -> bool:
    kind = type(array)
    if hasattr(kind, "data_ptr") and hasattr(kind, "is_cuda"):  # torch
        return bool(array.is_cuda)
    if hasattr(kind, "data") and hasattr(getattr(array, "data", None), "ptr"):
        return True
    return hasattr(array, "__cuda_array_interface__")


def _kind(given: Any) -> str:
    if hasattr(type(given), "is_cuda"):
        return f"a tensor on {given.device}"
    return a_kind(given)


def _memory(array: Any) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    """Return the address, the itemsize, the shape and the strides of an array."""
    kind = type(array)
    if hasattr(kind, "data_ptr"):
        itemsize = int(array.element_size())
        strides = tuple(step * itemsize for step in array.stride())
        return int(array.data_ptr()), itemsize, tuple(array.shape), strides
    if hasattr(kind, "data"):
        return int(array.data.ptr), int(array.itemsize), tuple(array.shape), tuple(array.strides)
    interface = array.__cuda_array_interface__
    shape = tuple(int(length) for length in interface["shape"])
    itemsize = int(interface["typestr"][2:])
    given = interface.get("strides")
    strides = packed_strides(itemsize, shape) if given is None else tuple(given)
    return int(interface["data"][0]), itemsize, shape, strides
