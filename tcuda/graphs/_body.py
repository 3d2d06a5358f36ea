"""The body of a conditional node while the body is captured, and the flag that says whether the body runs."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base.arguments import a_kind
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._process.captures import BodyCapture, captures
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import backend, cuda
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import CONDITIONAL_WHILE, STREAM_NON_BLOCKING
from tcuda.graphs._end import end_capture
from tcuda.streams import Stream
from tcuda.streams import stream as in_stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcuda._process.captures import Capture
    from tcuda._runtime.protocol import Conditional
    from tcuda.streams._scope import StreamContext

BOOL = {"b1": 1}
"""The kinds of elements of a flag, with the bytes of an element: only bool."""

BOOL_OR_INT32 = {"b1": 1, "i4": 4}
"""The kinds of elements of a flag, with the bytes of an element: bool and int32."""

_MAY_CONTAIN = (
    "The body of a conditional node may contain only kernels, copies, fills and conditional nodes, all on the device "
    "of the node. Copies must use neither pageable memory of the host nor memory that the device cannot access. Events "
    "with external=True, memory of cudaMallocAsync and collectives are not allowed."
)

_NAMES = {"b1": "bool", "i4": "int32"}


class Flag(NamedTuple):
    """A flag in the memory of a device.

    Attributes:
        address: The address.
        size: The bytes of the flag.
    """

    address: int
    size: int


def flag_of(array: Any, kinds: Mapping[str, int], call: str) -> Flag:
    """Return the flag that ``array`` holds.

    Args:
        array: An array with ``__cuda_array_interface__``.
        kinds: The bytes of an element for each kind of elements that the flag may have. A kind is written as in
            ``__cuda_array_interface__``, without the order of the bytes.
        call: The name of the call in errors.

    Raises:
        RuntimeError: ``array`` has not one element of one of the kinds on the current device.
        TypeError: ``array`` is not an array of a device.
    """
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{call} takes an array on a device as its flag; got {a_kind(array)}.")
    kind = interface["typestr"][1:]
    allowed = " or ".join(_NAMES[each] for each in kinds)
    if kind not in kinds:
        raise RuntimeError(f"{call}: expected a flag of dtype {allowed}, but found {getattr(array, 'dtype', kind)}.")
    if math.prod(interface["shape"]) != 1:
        raise RuntimeError(f"{call}: expected a flag with one element, but found the shape {interface['shape']}.")
    address = interface["data"][0]
    where, here = cuda.pointerGetDevice(address), cuda.getDevice()
    if where != here:
        raise RuntimeError(
            f"{call}: expected a flag on the current device cuda:{here}, but found "
            + (f"a flag on cuda:{where}." if where >= 0 else "a flag in memory of the host.")
        )
    return Flag(address, kinds[kind])


class Body:
    """The body of a conditional node, from the start to the end of its capture.

    Args:
        whole: The capture of the graph.
        kind: ``CONDITIONAL_IF`` or ``CONDITIONAL_WHILE``.
        flag: The flag that every launch reads.

    Attributes:
        stream: The handle of the stream on which the body is captured; 0 before the start.
        capture: The capture of the body; None before the start.
    """

    def __init__(self, whole: Capture, kind: int, flag: Flag) -> None:
        self.stream = 0
        self.capture: BodyCapture | None = None
        self._whole = whole
        self._kind = kind
        self._flag = flag
        self._node: Conditional | None = None
        self._scope: StreamContext | None = None

    def begin(self, stream: int) -> None:
        """Add the node to the capture of ``stream``, and make the stream current that captures the body."""
        device = cuda.getDevice()
        inside = _stream_for(self._whole, stream, device)
        self._node = cuda.streamAddConditional(stream, self._kind, *self._flag)
        self._whole.bodies.append(self._node.body)
        self.stream = inside  # before the start, because a signal handler may raise after it
        cuda.streamBeginCaptureToGraph(inside, self._node.body, self._whole.mode)
        number = ledger().begin_part(self._whole.number, device, inside)
        self.capture = BodyCapture(self._whole, inside, device, number)
        captures.append(self.capture)
        self._scope = in_stream(Stream._wrap(inside, device))
        self._scope.__enter__()

    def end(self) -> None:
        """End the capture; a body that is repeated reads the flag again at its end."""
        assert self._node is not None
        if self._kind == CONDITIONAL_WHILE:
            cuda.streamSetConditional(self.stream, self._node.handle, *self._flag)
        self._end_capture()
        self._leave()

    def abandon(self) -> None:
        """End the capture in any state. The capture of the graph then fails at its end. A second call does nothing."""
        self._whole.is_broken = True
        if self.stream:
            with contextlib.suppress(AcceleratorError):
                self._end_capture()
        self._leave()

    def _end_capture(self) -> None:
        try:
            end_capture(self.stream)
        except AcceleratorError:
            self._whole.has_lost_body = True
            raise

    def _leave(self) -> None:
        """Make the stream current again that was current before; a second call does nothing.

        If the stream of the body is not current, a block around the body has ended before the body. Then the current
        stream stays.
        """
        if self._scope is not None:
            current = backend.current_stream()
            if current.ptr == self.stream:
                self._scope.__exit__(None, None, None)
            elif self._whole.is_of_this_thread():
                with in_stream(current):
                    self._scope.__exit__(None, None, None)
            self._scope = None
        if self.capture is not None:
            if self.capture in captures:
                captures.remove(self.capture)
            ledger().end_part(self.capture.number)


def explained(error: AcceleratorError, bodies: object) -> AcceleratorError:
    """Return an error that says what ``bodies`` may contain, if CUDA does not instantiate a graph because of them."""
    if not bodies or error.error_code != Status.INVALID_VALUE:
        return error
    return AcceleratorError(error.error_code, error.call, _MAY_CONTAIN)


# Bodies are captured on streams of their own. A stream of the rings of tcuda.Stream could be one that captures already.
# Bodies that follow each other on a stream share one stream, and so share memory, too. Two streams of a capture may run
# their bodies at the same time, and so have different streams for them.

_in_use: dict[int, dict[int, tuple[int, int]]] = {}
"""For each capture of a graph, by its number: the device and the stream for bodies, by the stream that has the node."""

_spare: dict[int, list[int]] = {}
"""The streams that no capture uses, by device. The streams are never destroyed, as those of the rings."""

call_in_child(_in_use.clear)  # a forked child cannot use the streams of its parent
call_in_child(_spare.clear)


def _stream_for(whole: Capture, stream: int, device: int) -> int:
    """Return the stream for the bodies of the nodes that ``stream`` captures."""
    own = _in_use.setdefault(whole.number, {})
    if stream not in own:
        spare = _spare.setdefault(device, [])
        own[stream] = device, spare.pop() if spare else _new_stream(device)
    return own[stream][1]


def _new_stream(device: int) -> int:
    made = cuda.streamCreateWithPriority(STREAM_NON_BLOCKING, 0)
    ledger().stream_created(device, made)
    return made


def give_streams_back(capture: Capture) -> None:
    """Let other captures use the streams on which the bodies of an ended capture were captured."""
    if _in_use:
        for device, stream in _in_use.pop(capture.number, {}).values():
            _spare.setdefault(device, []).append(stream)
