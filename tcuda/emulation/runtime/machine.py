"""The machine: the state of emulated devices, which all calls of the runtime share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda import _core
from tcuda._base.statuses import Status
from tcuda.emulation.runtime import settings
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.captures import Captures
from tcuda.emulation.runtime.clock import Clock
from tcuda.emulation.runtime.contents import Contents
from tcuda.emulation.runtime.default_stream import DEFAULT_STREAM
from tcuda.emulation.runtime.devices import EmulatedDevice
from tcuda.emulation.runtime.events import Events
from tcuda.emulation.runtime.handles import Handles
from tcuda.emulation.runtime.host_uses import HostUses
from tcuda.emulation.runtime.known_graphs import KnownGraphs
from tcuda.emulation.runtime.memory import Memory
from tcuda.emulation.runtime.streams import Streams
from tcuda.emulation.runtime.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.runtime.calls import Call


class Machine:
    """The devices of a machine, and all that a program has made there.

    Args:
        devices: The number of devices of the machine.
        memory: The bytes of memory of each device.
        visible: The devices that the process sees, in their order for the process; all devices if None.
        kind: The class of the memory.

    Attributes:
        clock: The clock.
        lock: The lock of the clock, which a call holds while the call changes the state.
        devices: The devices that the process sees.
        all_devices: The devices of the machine.
        thread: The state of the calling thread.
        handles: Gives the handles.
        contents: Knows which bytes no work has written, if the user wants the check of them.
        memory: The memory.
        captures: The captures.
        streams: The streams.
        events: The events.
        graphs: The graphs.
        races: The watch of a race detector.
        host_uses: The uses of page-locked memory by the work of streams.

    Raises:
        TypeError: ``devices`` or ``memory`` is not an integer.
        ValueError: ``devices`` or ``memory`` is too large, or not positive.
    """

    def __init__(
        self, devices: int, memory: int, visible: Sequence[int] | None = None, kind: type[Memory] = Memory
    ) -> None:
        settings.check(devices, memory)
        self.clock = Clock()
        self.lock = self.clock._lock
        seen = range(devices) if visible is None else visible
        self.devices = [EmulatedDevice(index, memory, ordinal) for index, ordinal in enumerate(seen)]
        unseen = [EmulatedDevice(-1, memory, ordinal) for ordinal in range(devices) if ordinal not in seen]
        self.all_devices = sorted([*self.devices, *unseen], key=lambda device: device.ordinal)
        self.thread = _core.EmulatedThread(len(self.devices), DEFAULT_STREAM)
        self.handles = Handles()
        self.contents = Contents()
        self.memory = kind(self.devices, self.contents)
        self.captures = Captures()
        self.streams = Streams(self.devices, self.thread, self.captures, self.clock)
        self.events = Events(self.handles, self.captures)
        self.graphs = KnownGraphs(self.handles)
        self.races = Watch(self.streams, self.handles)
        self.host_uses = HostUses(self.clock)

    def _about_missing(self, index: int) -> str:
        """Return what an error says of the device ``index``, which the process does not see."""
        count = len(self.devices)
        there = f"The process sees {count} emulated device{'s' if count > 1 else ''}."
        if count <= index < settings.MOST_DEVICES:
            return f"{there} TCUDA_EMULATED_DEVICES={index + 1} makes as many as the program asks for."
        return f"{there} tcuda.device_count() tells."

    def device(self, index: int, call: Call) -> EmulatedDevice:
        """Return the device ``index``.

        Raises:
            AcceleratorError: The process sees no such device (101).
        """
        if not 0 <= index < len(self.devices):
            raise failure(Status.INVALID_DEVICE, call, self._about_missing(index))
        return self.devices[index]
