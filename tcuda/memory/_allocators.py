"""Which source the memory comes from: tcuda's own allocator, CuPy's pools, or a library of the user's."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._arguments import function, text
from tcuda._copying import refusing
from tcuda._process.ledger import change_conf, choose, chosen_source, ledger, source_name
from tcuda.memory._out_of_memory import attach_observer

if TYPE_CHECKING:
    from tcuda.memory._out_of_memory import Observer


class _CUDAAllocator:
    """A source of memory (``torch.cuda.memory._CUDAAllocator``)."""

    def __init__(self, allocator: _core.Source | None) -> None:
        self._allocator = allocator

    __reduce__ = refusing(
        "copy or pickle",
        "the functions of its library belong to this process. Make another CUDAPluggableAllocator of the same library.",
    )

    def allocator(self) -> _core.Source | None:
        """Return what the core calls; None for the source that is not a library."""
        return self._allocator


class CUDAPluggableAllocator(_CUDAAllocator):
    """Functions of a shared library that allocate and free (``torch.cuda.CUDAPluggableAllocator``).

    A library for torch works as it is. The functions are, in C::

        void *alloc_fn(ssize_t size, int device, cudaStream_t stream);
        void free_fn(void *ptr, ssize_t size, int device, cudaStream_t stream);

    They may be called by any thread, and two at a time. ``NULL`` says that there is no memory, and becomes
    :class:`tcuda.OutOfMemoryError`. The library stays loaded as long as anything that it allocated is alive.

    Args:
        path_to_so_file: The shared library.
        alloc_fn_name: The function that allocates.
        free_fn_name: The function that frees.

    Raises:
        OSError: The library cannot be loaded.
        TypeError: An argument is no text.
        ValueError: ``path_to_so_file`` is empty, or an argument has characters that cannot be in a name.
        AttributeError: It has no such function.
    """

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
        path = os.fsdecode(path_to_so_file)
        if not path:
            raise ValueError("path_to_so_file is empty; it must name a shared library.")
        names = text(alloc_fn_name, "alloc_fn_name"), text(free_fn_name, "free_fn_name")
        library = ctypes.CDLL(path)
        alloc, free = (_address(library[name]) for name in names)
        super().__init__(_core.LibrarySource(alloc, free, library))


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None  # a function that was found has one
    return address


def change_current_allocator(allocator: _CUDAAllocator) -> None:
    """Take the memory of all arrays from ``allocator`` (``torch.cuda.memory.change_current_allocator``).

    Args:
        allocator: A :class:`CUDAPluggableAllocator`.

    Raises:
        RuntimeError: Memory was allocated before: the allocator can be changed only before the first allocation. A
            :class:`MemPool` can have another allocator at any time.
        TypeError: It is no allocator.
    """
    source = source_of(allocator)
    if source is None or not choose("pluggable", source):
        raise RuntimeError(
            "Can't swap an already initialized allocator: memory was allocated before. Call change_current_allocator() "
            "before the first array is made, or use the allocator for a part of the program by "
            "tcuda.use_mem_pool(tcuda.MemPool(allocator))."
        )


def source_of(allocator: Any) -> _core.Source | None:
    """Return what the core calls of an allocator, or of what its ``allocator()`` returned.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(allocator, _CUDAAllocator):
        return allocator.allocator()
    if isinstance(allocator, _core.Source):
        return allocator
    raise TypeError(
        f"Expected a tcuda.memory.CUDAPluggableAllocator, or what its allocator() returns; got "
        f"{type(allocator).__name__}."
    )


def get_allocator_backend() -> str:
    """Return the source of the memory (``torch.cuda.get_allocator_backend``).

    ``TCUDA_ALLOC_CONF=backend:...`` chooses one of the first three.

    Returns:
        ``"native"`` for tcuda's own caching allocator, ``"cupy"`` for ``cupy.cuda.MemoryPool``, ``"cudaMallocAsync"``
        for ``cupy.cuda.MemoryAsyncPool``, ``"pluggable"`` after :func:`change_current_allocator`.

    Raises:
        RuntimeError: An option in ``TCUDA_ALLOC_CONF`` is unknown, or has a value that it cannot have; the error is a
            ``ValueError`` too.
    """
    return source_name()


def _get_current_allocator() -> _CUDAAllocator:
    """Return the allocator in use (``torch.cuda.memory._get_current_allocator``)."""
    return _CUDAAllocator(chosen_source())


def _set_allocator_settings(env: str) -> None:
    """Change the options of the allocator (``torch.cuda.memory._set_allocator_settings``).

    Args:
        env: Options as in ``TCUDA_ALLOC_CONF``. Those that the text does not name go back to their defaults. The
            backend stays, and so does a memory fraction that :func:`tcuda.set_per_process_memory_fraction` has set.

    Raises:
        RuntimeError: An option is unknown, or has a value that it cannot have, or the backend is another than the one
            in use; the error is a ``ValueError`` too. All settings stay as they were.
        TypeError: ``env`` is no text.
    """
    from tcuda._process.alloc_conf import parse

    if not isinstance(env, str):
        raise TypeError(f"Expected the allocator's settings as a str such as 'max_split_size_mb:128'; got {env!r}.")
    change_conf(parse(env))


def torch_allocator() -> Any:
    """Return an allocator for PyTorch that takes memory from tcuda, so that both libraries share one pool.

    ::

        torch.cuda.memory.change_current_allocator(tcuda.memory.torch_allocator())

    It has to be done before torch's first allocation, as torch demands. Then tensors and arrays use the same memory,
    and ``tcuda.memory_stats()`` counts both; torch's own statistics stay at nothing. ``Tensor.record_stream()`` reaches
    the pool. Out of memory, torch raises a ``RuntimeError`` with tcuda's message.

    Returns:
        A ``torch.cuda.memory.CUDAPluggableAllocator``.

    Raises:
        ImportError: PyTorch is not installed.
    """
    import torch

    ledger().share()
    allocator = torch.cuda.memory.CUDAPluggableAllocator(_core.__file__, "tcuda_torch_malloc", "tcuda_torch_free")
    record_stream = _address(ctypes.CDLL(_core.__file__).tcuda_torch_record_stream)
    allocator.allocator().set_record_stream_fn(record_stream)
    return allocator


def attach_out_of_memory_observer(observer: Observer) -> None:
    """Call ``observer`` at every lack of memory, before :class:`tcuda.OutOfMemoryError` is raised.

    This is ``torch._C._cuda_attach_out_of_memory_observer``. It is the place to dump a snapshot.

    Args:
        observer: Called with the index of the device, the size that was asked for, and the device's total and free
            memory, all in bytes. What it raises takes the place of the error.

    Raises:
        TypeError: ``observer`` cannot be called.
    """
    function(observer, "observer")
    attach_observer(observer)
