"""The functions of CuPy that tcuda replaces: the allocator of arrays, and functions that the first use of CuPy calls.

CuPy's first array, random number, stream or event initialises tcuda, because tcuda would not know memory and streams of
an earlier time. If the program has given CuPy an allocator of its own, CuPy keeps that allocator.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING, Any, NoReturn

from tcuda import _core
from tcuda._base.errors import AcceleratorError
from tcuda._cupy import loaded_kernels
from tcuda._process.fork import call_in_child

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._core import Ledger

    Allocator = Callable[[int], Any]

VARIABLE = "TCUDA_NO_CUPY_TAKEOVER"
"""The environment variable by which CuPy keeps its own pool and its own generators."""


def is_allowed() -> bool:
    """Return whether the environment allows tcuda to change CuPy."""
    return not os.environ.get(VARIABLE)


class FirstUse:
    """Replacements of CuPy's functions, which call ``initialize`` before CuPy allocates, draws or creates.

    Args:
        cupy: The package.
        initialize: A function that every use of CuPy calls from :meth:`begin` until :meth:`end`. The use fails with the
            exception that ``initialize`` raises.
    """

    def __init__(self, cupy: Any, initialize: Callable[[], object]) -> None:
        self._cupy = cupy
        self._initialize = initialize
        self._malloc: Allocator = cupy.get_default_memory_pool().malloc
        self._malloc_on_host: Allocator = cupy.get_default_pinned_memory_pool().malloc
        self.allocate_on_host = _core.forwarder(self._malloc_on_host)
        """The allocator of page-locked memory for CuPy. Like :meth:`allocate`, this function must work for ever."""
        self._has_begun = False
        self._undo: list[Callable[[], None]] = []
        self._ended = True

    def begin(self) -> None:
        """Replace CuPy's functions; CuPy keeps an allocator that the program has given it."""
        if not self._ended:
            return
        self._ended = False
        self.allocate_on_host.target = self._initialize_and_allocate_on_host
        cupy = self._cupy
        # The functions of cupy.random find get_random_state in the first of these modules, and programs in the second.
        places = ((cupy.random._generator, "get_random_state"), (cupy.random, "get_random_state"))
        for owner, name in (*places, (cupy.cuda.Stream, "__init__"), (cupy.cuda.Event, "__init__")):
            self._precede(owner, name)
        _replace_allocator(cupy, self._malloc, self.allocate)
        # CuPy does not tell its allocator of page-locked memory. So only an allocator that the program chooses later is
        # kept, and this allocator is never replaced by another one.
        if not self._has_begun:
            cupy.cuda.set_pinned_memory_allocator(self.allocate_on_host)
        self._has_begun = True

    def allocate(self, size: int) -> Any:
        """Return memory of CuPy's default pool, or after :meth:`end` of the allocator that was given to :meth:`end`.

        This method must work for ever, because a program may have kept the method as CuPy's allocator.
        """
        if not self._ended:
            self._initialize()
        return self._malloc(size)

    def _initialize_and_allocate_on_host(self, size: int) -> Any:
        if not self._ended:
            self._initialize()
        return self._malloc_on_host(size)

    def end(self, malloc: Allocator, malloc_on_host: Allocator) -> None:
        """Put CuPy's own functions back, and let CuPy allocate by the given functions.

        Args:
            malloc: The allocator of device memory, which replaces :meth:`allocate`.
            malloc_on_host: The allocator of page-locked memory.
        """
        self._malloc = malloc
        self._malloc_on_host = self.allocate_on_host.target = malloc_on_host
        self._ended = True
        while self._undo:
            self._undo.pop()()
        _replace_allocator(self._cupy, self.allocate, malloc)

    def _precede(self, owner: Any, name: str) -> None:
        found = getattr(owner, name)

        @functools.wraps(found)
        def use(*args: Any, **kwargs: Any) -> Any:
            if not self._ended:
                self._initialize()
            return found(*args, **kwargs)

        def undo() -> None:
            if getattr(owner, name) is use:  # another library may have replaced the function meanwhile
                setattr(owner, name, found)

        setattr(owner, name, use)
        self._undo.append(undo)


_first_use: FirstUse | None = None


def watch(cupy: Any, initialize: Callable[[], object]) -> None:
    """Let the first use of ``cupy`` call ``initialize``, unless the environment forbids to change CuPy."""
    global _first_use
    if is_allowed():
        _first_use = FirstUse(cupy, initialize)
        _first_use.begin()


def take_over(cupy: Any, malloc: Allocator, ledger: Ledger) -> None:
    """Let ``cupy`` allocate by ``malloc``, and tell ``ledger`` of CuPy's streams.

    CuPy keeps an allocator that the program has given it. The sources of the kernels that CuPy loads from now on are
    noted for race detectors.
    """
    if _first_use is not None:
        _first_use.end(malloc, _host_allocator(cupy, ledger))
    _announce_streams(cupy.cuda.Stream, ledger)
    loaded_kernels.follow(cupy)


def _host_allocator(cupy: Any, ledger: Ledger) -> Allocator:
    """Return an allocator of page-locked memory for CuPy, which takes the memory from ``ledger``."""

    def fail(error: Any, size: int) -> NoReturn:  # CuPy goes on without page-locked memory after its own error only
        raise cupy.cuda.runtime.CUDARuntimeError(error.error_code) from error

    malloc = _core.page_locked_pointers(ledger, cupy.cuda.PinnedMemoryPointer)
    return _core.translated(malloc, AcceleratorError, fail)


def _refuse_in_child() -> None:
    if _first_use is not None:
        _first_use.begin()  # every use then calls the initialisation, which raises the error for a forked child


call_in_child(_refuse_in_child)


def _replace_allocator(cupy: Any, expected: Allocator, malloc: Allocator) -> None:
    """Make ``malloc`` CuPy's allocator if the allocator is ``expected``, and not an allocator of the program."""

    def replace() -> None:
        current = cupy.cuda.get_allocator()
        cupy.cuda.set_allocator(malloc if current == expected else current)

    try:
        replace()
    except ValueError:
        # This thread is in a scope of using_allocator(), and can neither see nor set the allocator of all threads.
        thread = threading.Thread(target=replace)
        thread.start()
        thread.join()


def _announce_streams(stream_class: Any, ledger: Ledger) -> None:
    """Tell ``ledger`` of every stream that CuPy creates, and of every stream that CuPy is about to destroy.

    The ledger must know before the stream is destroyed, because the driver crashes at a query of a destroyed stream.
    CuPy destroys a stream when its Python object dies.
    """
    create, destroy = stream_class.__init__, stream_class.__del__

    @functools.wraps(create)
    def announce(self: Any, *args: Any, **kwargs: Any) -> None:
        create(self, *args, **kwargs)
        if self.device_id >= 0:  # a default stream, which every device has, is not announced
            ledger.stream_created(self.device_id, self.ptr)

    @functools.wraps(destroy)
    def retract(self: Any, *args: Any, **kwargs: Any) -> None:
        if getattr(self, "device_id", -1) >= 0:
            ledger.stream_about_to_be_destroyed(self.device_id, self.ptr)
        destroy(self, *args, **kwargs)

    stream_class.__init__, stream_class.__del__ = announce, _core.finalizing(retract)
