"""The choice of the source of memory: tcuda's own allocator, a pool of CuPy, or a library of the user."""

from __future__ import annotations

import ctypes
import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._base.arguments import function, text
from tcuda._base.copying import refusing
from tcuda._base.symbols import exported_functions
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
        """Return the functions of the library, as the core calls them; None if the source is not a library."""
        return self._allocator


class CUDAPluggableAllocator(_CUDAAllocator):
    """An allocator made of two functions of a shared library (``torch.cuda.CUDAPluggableAllocator``).

    A library that was written for torch works unchanged. The functions have these signatures in C::

        void *alloc_fn(ssize_t size, int device, cudaStream_t stream);
        void free_fn(void *ptr, ssize_t size, int device, cudaStream_t stream);

    Any thread may call the functions, and several threads may call them at the same time. If ``alloc_fn`` returns
    ``NULL``, the allocation raises :class:`tcuda.OutOfMemoryError`. The library stays loaded as long as memory of the
    library is in use.

    Args:
        path_to_so_file: The path of the shared library.
        alloc_fn_name: The name of the function that allocates.
        free_fn_name: The name of the function that frees.

    Raises:
        OSError: The library cannot be loaded.
        TypeError: An argument is not a text.
        ValueError: ``path_to_so_file`` is empty, or an argument has characters that cannot be in a name.
        AttributeError: The library has no function of that name.

    Example:
        >>> # cc -shared -fPIC -o pluggable_allocator.so docs/examples/pluggable_allocator.c -ldl
        >>> allocator = tcuda.CUDAPluggableAllocator("./pluggable_allocator.so", "example_alloc", "example_free")
        >>> with tcuda.use_mem_pool(tcuda.MemPool(allocator)):
        ...     x = tcuda.xp.ones(1000)  # in memory of the library
    """

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
        path = os.fsdecode(path_to_so_file)
        if not path:
            raise ValueError("path_to_so_file is empty; it must name a shared library.")
        names = text(alloc_fn_name, "alloc_fn_name"), text(free_fn_name, "free_fn_name")
        library = ctypes.CDLL(path)
        alloc, free = (_address(library, path, name) for name in names)
        super().__init__(_core.LibrarySource(alloc, free, library))


def _address(library: ctypes.CDLL, path: str, name: str) -> int:
    """Return the address of the function ``name`` of a library.

    Raises:
        AttributeError: The library has no function of that name.
    """
    try:
        found = library[name]
    except AttributeError as error:
        raise AttributeError(f"{error}.{_names_like(name, path)}", name=name, obj=library) from None
    return _address_of(found)


def _address_of(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None  # a function of a loaded library has an address
    return address


def _names_like(name: str, path: str) -> str:
    """Return a text with the functions that the library at ``path`` exports under names like ``name``."""
    try:
        exported = exported_functions(Path(path).read_bytes())
    except OSError:  # The library was found by its name alone.
        return ""
    mangled = [each for each in exported if each.startswith("_Z") and f"{len(name)}{name}" in each]
    if mangled:
        return (
            f" The library exports {', '.join(mangled)}: the function has the name of a C++ function. Declare it as "
            f'extern "C".'
        )
    like = difflib.get_close_matches(name, exported)
    return f" The library exports functions with names like this: {', '.join(like)}." if like else ""


def change_current_allocator(allocator: _CUDAAllocator) -> None:
    """Take the memory of all arrays from ``allocator`` (``torch.cuda.memory.change_current_allocator``).

    Args:
        allocator: A :class:`CUDAPluggableAllocator`, the result of its ``allocator()``, or the ``allocator`` of a
            :class:`MemPool`.

    Raises:
        RuntimeError: The program has allocated memory already, and the allocator can be changed only before the first
            allocation. A :class:`MemPool` can have another allocator at any time.
        TypeError: ``allocator`` is not an allocator.

    Example:
        >>> # cc -shared -fPIC -o pluggable_allocator.so docs/examples/pluggable_allocator.c -ldl
        >>> allocator = tcuda.CUDAPluggableAllocator("./pluggable_allocator.so", "example_alloc", "example_free")
        >>> tcuda.change_current_allocator(allocator)
        >>> x = tcuda.xp.ones(1000)  # in memory of the library
        >>> tcuda.get_allocator_backend()
        'pluggable'
    """
    source = source_of(allocator)
    if source is None or not choose("pluggable", source):
        raise RuntimeError(
            "Can't swap an already initialized allocator: memory was allocated before. Call change_current_allocator() "
            "before the first array is made, or use the allocator for a part of the program by "
            "tcuda.use_mem_pool(tcuda.MemPool(allocator))."
        )


def source_of(allocator: Any) -> _core.Source | None:
    """Return the functions of ``allocator``, as the core calls them.

    Args:
        allocator: A :class:`CUDAPluggableAllocator`, or the result of its ``allocator()``.

    Raises:
        TypeError: ``allocator`` is neither of the two.
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
    """Return the name of the source of memory (``torch.cuda.get_allocator_backend``).

    ``TCUDA_ALLOC_CONF=backend:...`` chooses one of the first three sources.

    Returns:
        ``"native"`` for tcuda's own caching allocator, ``"cupy"`` for ``cupy.cuda.MemoryPool``, ``"cudaMallocAsync"``
        for ``cupy.cuda.MemoryAsyncPool``, or ``"pluggable"`` after :func:`change_current_allocator`.

    Raises:
        RuntimeError: ``TCUDA_ALLOC_CONF`` has an unknown option, or an option has an invalid value. The error is a
            ``ValueError`` too.

    Example:
        >>> tcuda.get_allocator_backend()  # without TCUDA_ALLOC_CONF
        'native'
    """
    return source_name()


def _get_current_allocator() -> _CUDAAllocator:
    """Return the allocator in use (``torch.cuda.memory._get_current_allocator``)."""
    return _CUDAAllocator(chosen_source())


def _set_allocator_settings(env: str) -> None:
    """Change the options of the allocator (``torch.cuda.memory._set_allocator_settings``).

    Args:
        env: Options as in ``TCUDA_ALLOC_CONF``. All other options go back to their defaults. The backend stays, and so
            does a memory fraction that :func:`tcuda.set_per_process_memory_fraction` has set.

    Raises:
        RuntimeError: An option is unknown or has an invalid value, or ``env`` names another backend than the backend in
            use. The error is a ``ValueError`` too. All settings stay as they were.
        TypeError: ``env`` is not a text.

    Example:
        >>> tcuda.init()
        >>> tcuda.memory._set_allocator_settings("max_split_size_mb:128")
        >>> tcuda.memory_stats()["max_split_size"]  # bytes
        134217728
        >>> tcuda.memory._set_allocator_settings("")  # the defaults
    """
    from tcuda._process.alloc_conf import parse

    if not isinstance(env, str):
        raise TypeError(f"Expected the allocator's settings as a str such as 'max_split_size_mb:128'; got {env!r}.")
    change_conf(parse(env))


def torch_allocator() -> Any:
    """Return an allocator for PyTorch that takes memory from tcuda, so that both libraries share one pool.

    ::

        torch.cuda.memory.change_current_allocator(tcuda.memory.torch_allocator())

    torch demands this call before torch's first allocation. After the call, tensors and arrays use the same memory, and
    ``tcuda.memory_stats()`` counts the memory of both. torch's own statistics stay at 0. ``Tensor.record_stream()``
    works with the shared pool. If an allocation of torch finds no memory, torch raises a ``RuntimeError`` with tcuda's
    message.

    Returns:
        A ``torch.cuda.memory.CUDAPluggableAllocator``.

    Raises:
        ImportError: PyTorch is not installed.

    Example:
        >>> import torch
        >>> torch.cuda.memory.change_current_allocator(tcuda.memory.torch_allocator())
        >>> x = torch.ones(1000, device="cuda")
        >>> tcuda.memory_allocated()
        4096
    """
    import torch

    ledger().share()
    allocator = torch.cuda.memory.CUDAPluggableAllocator(_core.__file__, "tcuda_torch_malloc", "tcuda_torch_free")
    record_stream = _address_of(ctypes.CDLL(_core.__file__).tcuda_torch_record_stream)
    allocator.allocator().set_record_stream_fn(record_stream)
    return allocator


def attach_out_of_memory_observer(observer: Observer) -> None:
    """Call ``observer`` whenever memory runs out, before :class:`tcuda.OutOfMemoryError` is raised.

    The function of torch is ``torch._C._cuda_attach_out_of_memory_observer``. An observer can, for instance, dump a
    snapshot.

    Args:
        observer: The function to call, with four arguments: the index of the device, the requested size, the total
            memory of the device, and the free memory of the device. The sizes are in bytes. An exception in
            ``observer`` replaces the :class:`tcuda.OutOfMemoryError`.

    Raises:
        TypeError: ``observer`` cannot be called.

    Example:
        >>> def observer(device, size, total, free):
        ...     print(f"device {device} has no {size} bytes left")
        >>> tcuda.memory.attach_out_of_memory_observer(observer)
        >>> try:
        ...     x = tcuda.xp.zeros(2**45, dtype="uint8")
        ... except tcuda.OutOfMemoryError:
        ...     pass
        device 0 has no 35184372088832 bytes left
    """
    function(observer, "observer")
    attach_observer(observer)
