"""Operations on streams: copies, kernels and allocations, which run now or become nodes of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.statuses import Status
from tcuda.emulation.runtime.calls import failure

if TYPE_CHECKING:
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.graphs import Node
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.timeline import Timeline
    from tcuda.emulation.runtime.work import Work


class Operations:
    """Adds operations to streams. The caller holds the lock of the machine.

    Args:
        machine: The state of the devices.
        work: Does the work of the operations.
    """

    def __init__(self, machine: Machine, work: Work) -> None:
        self._clock = machine.clock
        self._races = machine.races
        self._capturing = machine.captures.in_progress
        self._streams = machine.streams
        self._times = machine.streams.times
        self._memory = machine.memory
        self._host_uses = machine.host_uses
        self._work = work

    def enqueue(self, timeline: Timeline, node: Node, call: Call) -> int:
        """Add an operation to ``timeline``, and return the time at which the operation is complete."""
        if timeline.capture is not None:
            if not timeline.capture.valid:
                raise failure(Status.STREAM_CAPTURE_INVALIDATED, call)
            node.stack = self._races.watcher.stack()
            node.devices = (timeline.device,)
            if node.host:
                node.hold = self._host_uses.hold(node.host)
            timeline.capture.add(timeline.handle, node)
            return self._clock.now()
        if self._capturing:
            self._streams.forbid_implicit(timeline, call)
        return self._times.occupy(timeline, node.duration)

    def run(self, timeline: Timeline, node: Node, call: Call) -> int:
        """Add an operation to ``timeline``, do its work unless the stream captures, and return the time of its end."""
        end = self.enqueue(timeline, node, call)
        if timeline.capture is None:
            timelines = self._taking_part(timeline, node)
            self._work.perform(node.work, timelines)
            self._races.watcher.moved(timelines, node)
        return end

    def _taking_part(self, timeline: Timeline, node: Node) -> list[Timeline]:
        """Return the streams that a copy or a memset on ``timeline`` waits for, and that wait for the operation.

        A copy between devices on a legacy default stream has the legacy default streams of both devices ("Peer-to-Peer
        Memory Copy" in the CUDA C++ Programming Guide). Any other operation has its own stream only.
        """
        if timeline.handle == 0 and len(node.addresses) > 1:
            devices = self._memory.devices_of(node.addresses)
            if len(devices) > 1:
                return [self._streams.default(device) for device in sorted({timeline.device, *devices})]
        return [timeline]
