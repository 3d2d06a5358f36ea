"""The calls that copy and set memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.statuses import Status
from tcuda._runtime.protocol import MEMCPY_DEVICE_TO_DEVICE
from tcuda.emulation.runtime import costs
from tcuda.emulation.runtime.accesses import WRITE, span
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.graphs import Node

if TYPE_CHECKING:
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.memory import Copy
    from tcuda.emulation.runtime.operations import Operations


class CopyCalls:
    """The calls that copy and set memory.

    Args:
        machine: The state of the devices.
        operations: Adds operations to streams.
    """

    def __init__(self, machine: Machine, operations: Operations) -> None:
        self._lock = machine.lock
        self._clock = machine.clock
        self._races = machine.races
        self._device = machine.device
        self._captures = machine.captures
        self._streams = machine.streams
        self._memory = machine.memory
        self._host_uses = machine.host_uses
        self._operations = operations

    def memcpy(self, dst: int, src: int, size: int, kind: int) -> None:
        call = "cudaMemcpy({:#x}, {:#x}, {}, {})", dst, src, size, kind
        with self._lock:
            copy = self._memory.plan_copy(dst, src, size, kind, call)
            timeline = self._streams.find(0, call)
            self._clock.wait_until(self._operations.run(timeline, self._copying(copy), call))
            # cudaMemcpy does not wait for a copy within devices.
            if len(copy.addresses) < 2:
                self._races.watcher.finished(timeline)

    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:
        call = "cudaMemcpyAsync({:#x}, {:#x}, {}, {}, {:#x})", dst, src, size, kind, stream
        with self._lock:
            self._copy(self._memory.plan_copy(dst, src, size, kind, call), stream, call)

    def memcpy2DAsync(
        self, dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, stream: int
    ) -> None:
        text = "cudaMemcpy2DAsync({:#x}, {}, {:#x}, {}, {}, {}, {}, {:#x})"
        call = text, dst, dpitch, src, spitch, width, height, kind, stream
        with self._lock:
            self._copy(self._memory.plan_rows(dst, dpitch, src, spitch, width, height, kind, call), stream, call)

    def memcpyPeerAsync(self, dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int) -> None:
        text = "cudaMemcpyPeerAsync({:#x}, {}, {:#x}, {}, {}, {:#x})"
        call = text, dst, dstDevice, src, srcDevice, size, stream
        target, source = self._device(dstDevice, call), self._device(srcDevice, call)
        if size and (self._memory.owner(dst) is not target or self._memory.owner(src) is not source):
            raise failure(Status.INVALID_VALUE, call)
        with self._lock:
            self._copy(self._memory.plan_copy(dst, src, size, MEMCPY_DEVICE_TO_DEVICE, call), stream, call)

    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None:
        call = "cudaMemsetAsync({:#x}, {}, {}, {:#x})", ptr, value, size, stream
        with self._lock:
            fill = self._memory.plan_set(ptr, value, size, call)
            timeline = self._streams.find(stream, call)
            duration = costs.kernel(size, 0, timeline.multiprocessors)
            node = Node("memset", duration, fill, (ptr,) if size else (), size, kind="memset")
            if size and (self._races.watcher.follows or self._captures.in_progress):
                node.accesses = [span(ptr, size, WRITE, "a")]  # as fill() of an array names its operand
            self._operations.run(timeline, node, call)

    def _copy(self, copy: Copy, stream: int, call: Call) -> None:
        timeline = self._streams.find(stream, call)
        end = self._operations.run(timeline, self._copying(copy), call)
        if copy.host and timeline.capture is None:
            self._host_uses.add(copy.host, timeline, end)
        if copy.host_waits:
            self._clock.wait_until(end)
            if timeline.capture is None:
                self._races.watcher.finished(timeline)

    def _copying(self, copy: Copy) -> Node:
        node = Node("memcpy", copy.duration, copy.make, copy.addresses, copy.size, kind="memcpy")
        node.host = copy.host
        # A watcher that begins later needs the accesses of the nodes of graphs.
        if self._races.watcher.follows or self._captures.in_progress:
            node.accesses = self._memory.accesses(copy)
            node.pageable = len(node.accesses) < 2 and copy.layout is not None
        return node
