"""Lazy initialisation: no device is used before the first call that needs a device.

As in torch, the first call that needs a device initialises tcuda, and then runs the calls that were queued before. In a
forked child of an initialised process, that call raises an error.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tcuda._backend import backend_of
from tcuda._base import log
from tcuda._base.errors import AcceleratorError, DeferredCudaCallError
from tcuda._base.messages import WITHOUT_GPU
from tcuda._base.statuses import Status
from tcuda._process.fork import call_in_child
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime

    Step: TypeAlias = Callable[[Runtime, Backend], object]


class _InUse(NamedTuple):
    cuda: Runtime
    backend: Backend


_lock = threading.RLock()
_initialized: _InUse | None = None
_begun = False  # whether a device may have been used; true also after an initialisation that failed later
_is_forked = False
_in_bad_fork = False
_running_queued = threading.local()
_steps: tuple[Step, ...] = ()
_when_ready: list[Callable[[], object]] = []
_queued: list[tuple[Callable[[], object], list[str]]] = []
_wrong: list[Callable[[], object]] = []  # the functions that read variables with bad values


_FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start "
    "method"
)


class _Ready:
    """The members of an object in use, kept in the dictionary of the instance, where Python finds them fastest."""


class _Lazy(_Ready):
    """A stand-in for an object in use; the first use of a member initialises tcuda.

    The stand-in then becomes a :class:`_Ready`, because ``__getattr__`` in the class makes every look-up 50 ns slower.
    """

    def __getattr__(self, name: str) -> Any:
        in_use = _initialize()
        return getattr(in_use.cuda if self is _lazy_cuda else in_use.backend, name)

    def become_ready(self, in_use: object) -> None:
        """Take over the members of ``in_use``."""
        self.__dict__.update({name: getattr(in_use, name) for name in dir(in_use) if name[0] != "_"})
        self.__class__ = _Ready  # type: ignore[assignment]

    @staticmethod
    def become_lazy(stand_in: _Ready) -> None:
        """Forget the members of the object in use."""
        stand_in.__dict__.clear()
        stand_in.__class__ = _Lazy


_lazy_cuda, _lazy_backend = _Lazy(), _Lazy()
cuda = cast("Runtime", _lazy_cuda)
"""The CUDA runtime in use."""

backend = cast("Backend", _lazy_backend)
"""The array library in use."""


def init() -> None:
    """Initialise tcuda's state (``torch.cuda.init``).

    Every function that needs a device calls :func:`init` by itself. A second call does nothing.

    Raises:
        RuntimeError: The process has no device, or is a forked child of a process that has used a device.
        DeferredCudaCallError: A call that was queued before failed.
        ValueError: An environment variable of tcuda has a value that is not allowed.

    Example:
        >>> tcuda.init()
        >>> tcuda.is_initialized()
        True
    """
    _lazy_init()


def is_initialized() -> bool:
    """Return whether tcuda's state has been initialised (``torch.cuda.is_initialized``).

    Example:
        >>> tcuda.is_initialized()
        False
        >>> x = tcuda.xp.ones(3)
        >>> tcuda.is_initialized()
        True
    """
    return _initialized is not None


def _lazy_init() -> None:
    """Initialise tcuda if it is not initialised yet (``torch.cuda._lazy_init``)."""
    if _initialized is None:
        _initialize()


def _lazy_call(callable: Callable[[], object], **kwargs: Any) -> None:
    """Call ``callable`` now, or at initialisation if tcuda is not initialised yet (``torch.cuda._lazy_call``)."""
    if _initialized is None:
        import traceback  # here, because the import takes long

        queued = callable, traceback.format_stack()
        with _lock:
            if _initialized is None:
                _queued.append(queued)
                return
    callable()  # without the lock, because the call may wait for another thread


def read_variables(*readers: Callable[[], object]) -> None:
    """Let each of ``readers`` read its variables of the environment now.

    A variable with a bad value does not end ``import tcuda``, because a command could then not say in one line what is
    wrong. :func:`require_variables`, which every initialisation calls, reads the variable again and raises the error.
    """
    for reader in readers:
        try:
            reader()
        except (OSError, ValueError):
            _wrong.append(reader)


def require_variables() -> None:
    """Raise the error of a variable that was wrong when tcuda was imported, unless the variable is right by now.

    Raises:
        OSError: A file that a variable names cannot be read.
        ValueError: A variable has a value that is not allowed.
    """
    with _lock:
        while _wrong:
            _wrong[0]()
            _wrong.pop(0)


def set_steps(*steps: Step) -> None:
    """Let initialisation take ``steps``, in this order and before the queued calls.

    Each step is called with the runtime and the array library, and must use neither ``cuda`` nor ``backend``. A step
    may run again: after an initialisation that failed, and in a finalizer that runs in the middle of a step. So a step
    must do nothing if its work is done already.
    """
    global _steps
    _steps = steps


def call_when_ready(function: Callable[[], object]) -> None:
    """Let every initialisation end with a call of ``function``, which may use ``cuda`` and ``backend``."""
    _when_ready.append(function)


def _initialize() -> _InUse:
    global _begun, _initialized
    with _lock:
        if _initialized is not None:
            return _initialized
        if _in_bad_fork:
            raise RuntimeError(_FORKED)
        require_variables()
        chosen = runtime()
        in_use = _InUse(chosen, backend_of(chosen))
        if getattr(_running_queued, "by_this_thread", False):
            return in_use
        _require_device(chosen)
        _begun = True
        for step in _steps:
            step(*in_use)
        _run_queued()
        if not is_initialized():  # a finalizer that ran meanwhile may have done the rest
            log.debug("tcuda is initialised. The number of devices is %d.", chosen.getDeviceCount())
            _initialized = in_use
            _lazy_cuda.become_ready(in_use.cuda)
            _lazy_backend.become_ready(in_use.backend)
            for function in _when_ready:
                function()
        return in_use


def _require_device(in_use: Runtime) -> None:
    try:
        if in_use.getDeviceCount() > 0:
            if _is_forked:
                in_use.getDevice()  # after a fork CUDA may still count the devices, but refuses this call
            return
        reason = "the driver reports none"
    except AcceleratorError as error:
        if _is_forked and error.error_code == Status.INITIALIZATION_ERROR:
            raise RuntimeError(_FORKED) from error
        reason = str(error).splitlines()[0]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    hidden = f"CUDA_VISIBLE_DEVICES={visible!r} may hide all devices, also emulated ones: unset the variable. "
    raise RuntimeError(
        f"No CUDA GPUs are available ({reason}). {hidden if visible is not None else ''}Check the NVIDIA driver; on a "
        f"machine without a GPU, {WITHOUT_GPU}"
    )


def _run_queued() -> None:
    """Run the queued calls; a call may use tcuda, and does not start initialisation again."""
    _running_queued.by_this_thread = True
    try:
        while _queued:
            call, stack = _queued[0]
            try:
                call()
            except Exception as error:
                raise DeferredCudaCallError(
                    f"CUDA call failed lazily at initialization with error: {error}\n\n"
                    f"CUDA call was originally invoked at:\n\n{''.join(stack)}"
                ) from error
            _queued.pop(0)
    finally:
        del _running_queued.by_this_thread


def _forget_in_child() -> None:
    global _initialized, _in_bad_fork, _is_forked, _lock
    _is_forked = True
    _in_bad_fork = _in_bad_fork or _begun
    _initialized = None
    _Lazy.become_lazy(_lazy_cuda)
    _Lazy.become_lazy(_lazy_backend)
    _lock = threading.RLock()  # another thread of the parent may have held it


call_in_child(_forget_in_child)
