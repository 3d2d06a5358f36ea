"""The parts of the runtime: one object for each family of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.runtime.capture_calls import CaptureCalls
from tcuda.emulation.runtime.copy_calls import CopyCalls
from tcuda.emulation.runtime.device_calls import DeviceCalls
from tcuda.emulation.runtime.driver_streams import DriverStreams
from tcuda.emulation.runtime.event_calls import EventCalls
from tcuda.emulation.runtime.graph_calls import GraphCalls
from tcuda.emulation.runtime.green_context_calls import GreenContextCalls
from tcuda.emulation.runtime.launches import Launches
from tcuda.emulation.runtime.memory_calls import MemoryCalls
from tcuda.emulation.runtime.operations import Operations
from tcuda.emulation.runtime.stream_calls import StreamCalls

if TYPE_CHECKING:
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.work import Work


class Parts:
    """The families of calls of a runtime.

    Args:
        machine: The state of the devices.
        work: Does the work of streams.

    Attributes:
        work: Does the work of streams.
        devices: The calls for devices.
        memory: The calls for memory.
        copies: The calls that copy and set memory.
        streams: The calls for streams.
        green_contexts: The calls for green contexts.
        launches: The calls that launch kernels.
        events: The calls for events.
        graphs: The calls for graphs.
        captures: The calls for captures.
        driver_streams: The stream entries of the core's driver table.
    """

    def __init__(self, machine: Machine, work: Work) -> None:
        operations = Operations(machine, work)
        self.work = work
        self.devices = DeviceCalls(machine)
        self.memory = MemoryCalls(machine, work, operations)
        self.copies = CopyCalls(machine, operations)
        self.streams = StreamCalls(machine)
        self.green_contexts = GreenContextCalls(machine, self.streams)
        self.launches = Launches(machine, work, operations)
        self.events = EventCalls(machine)
        self.graphs = GraphCalls(machine, work)
        self.captures = CaptureCalls(machine, operations, self.graphs)
        self.driver_streams = DriverStreams(machine, self.memory.poison)
