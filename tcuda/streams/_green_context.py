"""Contexts whose streams use a share of a device."""

from __future__ import annotations

import itertools
import threading
import warnings
from typing import TYPE_CHECKING, Literal

from tcuda._base.arguments import integer
from tcuda._base.copying import refusing
from tcuda._base.scope import undone_by
from tcuda._base.warnings import stacklevel
from tcuda._device import device, get_device_properties
from tcuda._process.captures import keep_in_graphs, require_no_capture
from tcuda._process.device_rules import existing_device
from tcuda._process.exit import finalizer
from tcuda._process.lazy import cuda, init
from tcuda._process.ledger import ledger, ledger_if_any
from tcuda._process.streams import make_current
from tcuda._runtime.protocol import STREAM_NON_BLOCKING
from tcuda.streams._current import current_stream
from tcuda.streams._rings import LAST
from tcuda.streams._stream import ExternalStream

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument
    from tcuda.streams._stream import Stream as _Stream

_SCOPES = {"device_ctx": 0, "balanced": 1}
_NO_SCOPE = -1
_MOST = (1 << 31) - 1
_DEPRECATED = (
    "`GreenContext.set_context` and `GreenContext.pop_context` are deprecated. Please create a stream with "
    "`GreenContext.Stream()` and use `tcuda.stream(stream)` instead."
)


class _Thread(threading.local):
    """The contexts that this thread has set and not yet left, the latest last."""

    def __init__(self) -> None:
        self.contexts: list[GreenContext] = []


_thread = _Thread()


class GreenContext:
    """A context whose streams run on some of the multiprocessors of a device (``torch.cuda.GreenContext``).

    Kernels on the streams of the context use no other multiprocessors, so they leave the rest of the device to other
    streams. The context uses the memory, the arrays and the kernels of its device. The streams are non-blocking: only
    an event or a wait orders a stream of the context and another stream.

    The CUDA context lives as long as this object, a stream of :meth:`Stream`, or a graph whose capture began while the
    context existed. The end of the last of them waits for the work of the streams.

    CUDA needs a driver of CUDA 12.8 or later (``cuGreenCtxCreate``). On emulated devices, the kernels of the streams
    take longer on the emulated clock, in proportion to the share.

    Args:
        num_sms: The least number of multiprocessors. CUDA rounds the number up, on an H200 to a multiple of 8;
            :attr:`sm_count` has the true number. None means all multiprocessors. Two contexts may share
            multiprocessors.
        workqueue_scope: ``"device_ctx"``: the streams use the work queues of all contexts of the device.
            ``"balanced"``: the streams use other work queues than other balanced contexts, where possible. None leaves
            the work queues as they are. CUDA needs a driver of CUDA 13.1 or later.
        workqueue_concurrency_limit: The number of streams that are expected to work at the same time; CUDA's own limit
            if None.
        device_id: The device; the current device if None.

    Raises:
        RuntimeError: ``num_sms`` is not a number of multiprocessors that the device has, neither ``num_sms`` nor
            ``workqueue_scope`` is given, ``workqueue_concurrency_limit`` is given without ``workqueue_scope``, or the
            driver is too old.
        ValueError: ``workqueue_scope`` is not one of the words, or ``workqueue_concurrency_limit`` is not positive.
        TypeError: A number is not an integer, or ``workqueue_scope`` is not a text.
        AcceleratorError: ``device_id`` does not exist, or CUDA refuses the share.

    Example:
        >>> half = tcuda.get_device_properties().multi_processor_count // 2
        >>> context = tcuda.GreenContext(num_sms=half)
        >>> side = context.Stream()
        >>> side.wait_stream(tcuda.current_stream())
        >>> with tcuda.stream(side):
        ...     x = xp.ones(1000) * 2  # the kernels run on half of the multiprocessors
        >>> tcuda.current_stream().wait_stream(side)
        >>> float(x.sum())
        2000.0
    """

    __slots__ = ("__weakref__", "_is_leaving", "_parent", "_set", "_share")

    _parent: _Stream | None  # the stream that was current before set_context()
    _set: tuple[_Stream, _Stream] | None  # during set_context(), the streams that were current on both devices
    _is_leaving: bool  # whether pop_context() has begun to change what is current
    _share: _Share

    def __init__(
        self,
        *,
        num_sms: int | None = None,
        workqueue_scope: Literal["device_ctx", "balanced"] | None = None,
        workqueue_concurrency_limit: int | None = None,
        device_id: DeviceArgument = None,
    ) -> None:
        scope = _scope(workqueue_scope)
        count = 0 if num_sms is None else integer(num_sms, "num_sms", -_MOST, _MOST)
        if num_sms is None and scope == _NO_SCOPE:
            raise RuntimeError("At least one of num_sms or workqueue_scope must be specified")
        if workqueue_concurrency_limit is None:
            limit = 0
        elif scope == _NO_SCOPE:
            raise RuntimeError("workqueue_concurrency_limit requires workqueue_scope to be set")
        else:
            limit = integer(workqueue_concurrency_limit, "workqueue_concurrency_limit", 1, _MOST)
        init()
        index = existing_device(device_id)
        if num_sms is not None:
            most = get_device_properties(index).multi_processor_count
            if not 0 < count <= most:
                raise RuntimeError(
                    f"Invalid number of SMs requested for green context: {count} (device has {most} SMs)"
                )
        require_no_capture("GreenContext()", device=index)
        self._parent = self._set = None
        self._is_leaving = False
        self._share = _Share(index, count, scope, limit)

    @staticmethod
    def create(
        *,
        num_sms: int | None = None,
        workqueue_scope: Literal["device_ctx", "balanced"] | None = None,
        workqueue_concurrency_limit: int | None = None,
        device_id: DeviceArgument = None,
    ) -> GreenContext:
        """Return ``GreenContext(...)`` with the same arguments (``torch.cuda.GreenContext.create``).

        Before torch 2.15, this method was the only way to make a context.

        Example:
            >>> context = tcuda.GreenContext.create(num_sms=2, device_id=0)
            >>> 2 <= context.sm_count <= tcuda.get_device_properties(0).multi_processor_count
            True
        """
        return GreenContext(
            num_sms=num_sms,
            workqueue_scope=workqueue_scope,
            workqueue_concurrency_limit=workqueue_concurrency_limit,
            device_id=device_id,
        )

    @staticmethod
    def max_workqueue_concurrency(device_id: DeviceArgument = None) -> int:
        """Return how many concurrent streams a device has work queues for (``cuDeviceGetDevResource``).

        Args:
            device_id: The device; the current device if None.

        Raises:
            AcceleratorError: ``device_id`` does not exist.
            RuntimeError: The driver is older than that of CUDA 13.1.

        Example:
            >>> try:
            ...     streams = tcuda.GreenContext.max_workqueue_concurrency()
            ... except RuntimeError:
            ...     streams = 1  # the driver is older than that of CUDA 13.1
            >>> streams >= 1
            True
        """
        init()
        return cuda.deviceGetWorkQueueConcurrency(existing_device(device_id))

    @property
    def device_id(self) -> int:
        """The index of the device of the context."""
        return self._share.device

    @property
    def sm_count(self) -> int:
        """The number of multiprocessors of the context."""
        return self._share.multiprocessors

    def Stream(self) -> ExternalStream:  # torch's name
        """Return a stream of the context (``cuGreenCtxStreamCreate``).

        As for :class:`tcuda.Stream`, the streams come in turn from a ring of 32 streams.

        Raises:
            AcceleratorError: CUDA cannot make a stream.

        Example:
            >>> context = tcuda.GreenContext.create(num_sms=2)
            >>> side = context.Stream()
            >>> with tcuda.stream(side):
            ...     x = xp.ones(1000)
            >>> side.synchronize()
        """
        return self._share.stream()

    def _undo_set(self) -> None:
        """Undo the changes of a :meth:`set_context` that raised."""
        if self._set is None:
            return
        on_device, parent = self._set
        self._forget_parent()
        make_current(on_device)
        make_current(parent)
        self._set = None

    def _forget_parent(self) -> None:
        self._parent = None
        if self in _thread.contexts[-1:]:
            _thread.contexts.pop()

    @undone_by(_undo_set)
    def set_context(self) -> None:
        """Make a stream of the context the current stream (``torch``). Deprecated: use :meth:`Stream`.

        The stream waits for the work of the stream that was current. In contrast to torch, the CUDA context of the
        device stays current, because CuPy makes that context current again whenever CuPy changes the device.

        Raises:
            AcceleratorError: The device captures a graph (900).
            RuntimeError: A thread has set the context already.

        Example:
            >>> import warnings
            >>> warnings.simplefilter("ignore", FutureWarning)
            >>> context = tcuda.GreenContext.create(num_sms=2)
            >>> context.set_context()
            >>> x = xp.ones(1000)
            >>> context.pop_context()
        """
        warnings.warn(_DEPRECATED, FutureWarning, stacklevel=stacklevel())
        if self._parent is not None:
            raise RuntimeError("set_context called twice before pop_context")
        require_no_capture("GreenContext.set_context()", device=self.device_id)
        parent = current_stream()
        inner = self._share.stream()
        inner.wait_event(parent.record_event())
        self._set = current_stream(self.device_id), parent
        make_current(inner)
        _thread.contexts.append(self)
        self._parent = parent
        self._set = None

    def _leave(self) -> None:
        """Complete a :meth:`pop_context` that has begun to change what is current."""
        if self._is_leaving:
            if self._parent is not None:
                make_current(self._parent)
            self._forget_parent()
            self._is_leaving = False

    @undone_by(_leave)
    def pop_context(self) -> None:
        """Make the stream current again that was current before :meth:`set_context`. Deprecated: use :meth:`Stream`.

        That stream waits for the work of the stream that is current now.

        Raises:
            AcceleratorError: The device captures a graph (900).
            RuntimeError: :meth:`set_context` was not called, or the thread has set another context since then, or
                another thread has set this context.

        Example:
            >>> import warnings
            >>> warnings.simplefilter("ignore", FutureWarning)
            >>> context = tcuda.GreenContext.create(num_sms=2)
            >>> before = tcuda.current_stream()
            >>> context.set_context()
            >>> context.pop_context()
            >>> tcuda.current_stream() == before
            True
        """
        warnings.warn(_DEPRECATED, FutureWarning, stacklevel=stacklevel())
        parent = self._parent
        if parent is None:
            raise RuntimeError("pop_context called without matching set_context")
        if self not in _thread.contexts[-1:]:
            raise RuntimeError(
                "pop_context called for a context that this thread has not set last. Leave the context that was set "
                "last first, and each context in the thread that has set the context."
            )
        require_no_capture("GreenContext.pop_context()", device=self.device_id)
        parent.wait_event(current_stream().record_event())
        self._is_leaving = True
        self._leave()

    __reduce__ = refusing(
        "copy or pickle", "its share of a device belongs to one process. Make another one with GreenContext(...)."
    )

    def __repr__(self) -> str:
        return f"<tcuda.GreenContext device_id={self.device_id} sm_count={self.sm_count}>"


class _Share:
    """The context of CUDA with its streams, which end with the last of the objects that use them.

    Args:
        index: The index of the device.
        multiprocessors: The least number of multiprocessors; 0 for all.
        scope: The sharing scope of the work queues, or ``_NO_SCOPE``.
        limit: The number of concurrent streams; 0 for CUDA's own limit.

    Attributes:
        device: The index of the device.
        multiprocessors: The number of multiprocessors.
    """

    def __init__(self, index: int, multiprocessors: int, scope: int, limit: int) -> None:
        self._handle = 0
        self.device = index
        with device(index):  # CUDA makes the primary context of the current device
            self._handle, self.multiprocessors = cuda.greenCtxCreate(index, multiprocessors, scope, limit)
        self._streams: dict[int, int] = {}
        self._made: list[int] = []  # all streams of CUDA, also those that no turn has
        self._next_turn = itertools.count().__next__
        keep_in_graphs(self)

    def stream(self) -> ExternalStream:
        turn = self._next_turn() & LAST
        handle = self._streams.get(turn) or self._create(turn)
        stream = ExternalStream._wrap(handle, self.device)
        stream.__dict__["_share"] = self  # keeps the stream of CUDA alive
        return stream

    def _create(self, turn: int) -> int:
        # No lock is held, because finalizers and signal handlers may run meanwhile. A stream that they replace, or that
        # is lost because they raise, ends with the context. The ledger must learn of the end of each stream that it
        # knows, because the driver crashes at a query of a destroyed stream.
        made = cuda.greenCtxStreamCreate(self._handle, STREAM_NON_BLOCKING, 0)
        self._made.append(made)
        ledger().stream_created(self.device, made)
        return self._streams.setdefault(turn, made)

    def _release(self) -> None:
        if self._handle == 0:  # CUDA has not made the context
            return
        known = ledger_if_any()
        if known is not None:
            for stream in self._made:
                known.stream_about_to_be_destroyed(self.device, stream)
        cuda.greenCtxDestroy(self._handle)

    __del__ = finalizer(_release)


def _scope(name: str | None) -> int:
    if name is None:
        return _NO_SCOPE
    if not isinstance(name, str):
        raise TypeError(f"workqueue_scope must be 'device_ctx' or 'balanced', or None; got {name!r}")
    if name not in _SCOPES:
        raise ValueError(f"workqueue_scope must be 'device_ctx' or 'balanced', got '{name}'")
    return _SCOPES[name]
