"""A stand-in for CUPTI and the driver, and the calls of the driver that a test lets happen."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from support.core import for_tests
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTEXT, OTHER_CONTEXT = 0x1000, 0x2000
CONTEXT_DESTROYED = 2  # the number of the callback
"""The contexts of the devices 0 and 1."""
MAIN, SIDE, BLOCKING, FAR = 0x100, 0x200, 0x300, 0x400
"""Streams: two of device 0, a blocking one of device 0, and one of device 1."""
MEMORY = 0x7F0000000000
"""The memory of device 0, which the detector knows to be live."""
MORE_MEMORY = 0x7F1000000000
"""Another allocation of the same size."""
MEMORY_SIZE = 1 << 20
LOCKED, PAGEABLE = 0x500000000000, 0x600000000000
"""Memory of the host."""
HOST_SIZE = 1 << 16
EVENT = 0x9000
FUNCTION = 0xF000
"""A kernel with two parameters: a pointer, and a struct of a number and a pointer."""
FAILURE = 719
NOT_READY = 600
_LOOKED_AT = [
    *((MEMORY + place, 1024) for place in range(0, 8192, 1024)),
    (MEMORY + 8192, MEMORY_SIZE - 8192),
    (MORE_MEMORY, MEMORY_SIZE),
    (LOCKED, HOST_SIZE),
    (PAGEABLE, HOST_SIZE),
]


class Use(NamedTuple):
    """An access that the detector knows, and that the host does not know to be complete."""

    operation: str
    device: int
    stream: int
    kind: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    confidence: str


class Cupti:
    """The stand-in. Its functions keep Python's lock, as the calls of the driver by a C extension do that keeps it.

    Args:
        path: The library that is built from ``tests/data/cupti_stub.cpp``.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.stub: Any = ctypes.PyDLL(path)
        self.ids = for_tests.watched_calls()
        self.stub.stub_call.argtypes = [
            ctypes.c_uint32, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int,
        ]  # fmt: skip
        self.stub.stub_add_context.argtypes = [ctypes.c_size_t, ctypes.c_int]
        self.stub.stub_set_stream.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint, ctypes.c_uint64]
        self.stub.stub_set_memory.argtypes = [ctypes.c_ulonglong, ctypes.c_int]
        self.stub.stub_add_node.argtypes = [
            ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t,
        ]  # fmt: skip
        self.stub.stub_set_memory_size.argtypes = [ctypes.c_ulonglong, ctypes.c_size_t]
        self.stub.stub_add_parameter.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t]
        self.stub.stub_resource.argtypes = [ctypes.c_uint32, ctypes.c_size_t]
        self.stub.stub_callback.restype = ctypes.c_void_p
        self.stub.stub_enabled_count.restype = ctypes.c_size_t
        self.reset()

    def reset(self) -> None:
        """Let the stand-in have two devices with streams, and no subscription."""
        self.stub.stub_reset()
        self.stub.stub_add_context(CONTEXT, 0)
        self.stub.stub_add_context(OTHER_CONTEXT, 1)
        for stream, context, flags in ((MAIN, CONTEXT, 1), (SIDE, CONTEXT, 1), (BLOCKING, CONTEXT, 0),
                                       (FAR, OTHER_CONTEXT, 1)):  # fmt: skip
            self.stub.stub_set_stream(stream, context, flags, 0)
        for offset in range(0, HOST_SIZE, 0x100):
            self.stub.stub_set_memory(LOCKED + offset, 1)
        self.stub.stub_add_parameter(FUNCTION, 0, 8)
        self.stub.stub_add_parameter(FUNCTION, 8, 16)

    def capture(self, stream: int, number: int) -> None:
        """Let ``stream`` take part in the capture ``number``; 0 stands for no capture."""
        self.stub.stub_set_stream(stream, CONTEXT, 1, number)

    def call(
        self,
        name: str,
        layout: str,
        *parameters: Any,
        context: int = CONTEXT,
        symbol: bytes | None = None,
        status: int = 0,
        sides: int = 3,
    ) -> int:
        """Let a call of the driver happen.

        Args:
            name: The name of the call, with its version.
            layout: The types of the parameters, as in :mod:`struct`.
            *parameters: The parameters.
            context: The context that is current.
            symbol: The name of the kernel.
            status: The result of the call.
            sides: 1 for the begin of the call, 2 for the end, 3 for both.

        Returns:
            How many callbacks there were.
        """
        packed = struct.pack("@" + layout, *parameters)
        return self.stub.stub_call(self.ids[name], context, symbol, packed, status, sides)  # type: ignore[no-any-return]

    def launch(self, stream: int, *, status: int = 0, context: int = CONTEXT) -> None:
        """Launch the kernel with pointers to both allocations."""
        with Parameters(MEMORY, MORE_MEMORY) as parameters:
            self.call("cuLaunchKernel", "P7IPPP", FUNCTION, 1, 1, 1, 1, 1, 1, 0, stream, parameters, 0,
                      symbol=b"kernel", status=status, context=context)  # fmt: skip

    def fill(self, stream: int, address: int = MEMORY, size: int = 1024) -> None:
        """Fill memory with ``cuMemsetD8Async``."""
        self.call("cuMemsetD8Async", "QBNP", address, 0, size, stream)

    def copy(self, stream: int, target: int, source: int, size: int = 1024) -> None:
        """Copy memory with ``cuMemcpyAsync``."""
        self.call("cuMemcpyAsync", "QQNP", target, source, size, stream)

    def record(self, stream: int, event: int = EVENT) -> None:
        """Record an event."""
        self.call("cuEventRecord", "PP", event, stream)

    def wait(self, stream: int, event: int = EVENT) -> None:
        """Let a stream wait for an event."""
        self.call("cuStreamWaitEvent", "PPI", stream, event, 0)


class Parameters:
    """The parameters of a launch of :data:`FUNCTION`: the array of their addresses, for a ``with`` statement."""

    def __init__(self, pointer: int, inner: int) -> None:
        self._values = (ctypes.c_uint64 * 3)(pointer, 77, inner)
        begin = ctypes.addressof(self._values)
        self._addresses = (ctypes.c_void_p * 2)(begin, begin + 8)

    def __enter__(self) -> int:
        return ctypes.addressof(self._addresses)

    def __exit__(self, *_: object) -> None:
        pass


class Watched:
    """A detector that is told of the calls of the stand-in.

    Args:
        cupti: The stand-in.
        known: The addresses of the allocations that the detector knows.

    Attributes:
        races: The races that were delivered.
        detector: The detector.
        watch: The watch; it has ended if it is None.
    """

    def __init__(self, cupti: Cupti, known: Iterable[int] = (MEMORY, MORE_MEMORY)) -> None:
        self.races: list[_core.Race] = []
        self.detector = _core.RaceDetector(self.races.append)
        for memory in known:
            self.own(memory)
        self.watch = _core.DriverWatch(self.detector, cupti.path, cupti.path)

    def own(self, memory: int) -> None:
        """Let the detector know an allocation of device 0."""
        self.detector.memory_allocated(memory, MEMORY_SIZE, 0, 0)

    def found(self) -> list[_core.Race]:
        """Return the races since the last call."""
        _core.deliver_races()
        found = self.races[:]
        self.races.clear()
        return found

    def uses(self) -> list[Use]:
        """Return all accesses that the host does not know to be complete, oldest first, a read before a write."""
        self.found()
        self.detector.forget_races()
        made = set()
        for address, size in _LOOKED_AT:  # one after the other, because races with equal names are the same race
            for_tests.host_access(self.detector, "probe", [(address, 1, (size,), (1,), 2, "")])
            for race in self.races:
                access = race.previous
                begin, itemsize, shape, strides = access.region
                if shape == ():
                    shape, strides = (itemsize,), (1,)
                use = Use(access.operation, access.device, access.stream, access.kind, begin, shape, strides,
                          access.confidence)  # fmt: skip
                made.add((access.number, access.kind, use))
            self.races.clear()
            self.detector.forget_races()
        return [use for *_, use in sorted(made)]

    def steps(self) -> list[tuple[str, int, int | None, int | None]]:
        """Return the kind, the device, the stream and the event of all steps."""
        return [
            (step["kind"], step["device"], step["stream"], step["event"])
            for step in for_tests.recent_steps(self.detector)
        ]
