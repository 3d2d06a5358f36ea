"""The parts of the runtime with the late schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.runtime.green_context_calls import GreenContextCalls
from tcuda.emulation.runtime.late_calls import (
    LateCaptureCalls,
    LateCopyCalls,
    LateDeviceCalls,
    LateEventCalls,
    LateGraphCalls,
    LateLaunches,
    LateMemoryCalls,
    LateStreamCalls,
)
from tcuda.emulation.runtime.late_driver_streams import LateDriverStreams
from tcuda.emulation.runtime.operations import Operations
from tcuda.emulation.runtime.parts import Parts

if TYPE_CHECKING:
    from tcuda.emulation.runtime.late_work import LateWork
    from tcuda.emulation.runtime.machine import Machine


class LateParts(Parts):
    """The families of calls of a runtime that does work late.

    Args:
        machine: The state of the devices.
        work: Does the work of streams.
    """

    def __init__(self, machine: Machine, work: LateWork) -> None:
        operations = Operations(machine, work)
        self.work = work
        self.devices = LateDeviceCalls(machine, work)
        self.memory = LateMemoryCalls(machine, work, operations)
        self.copies = LateCopyCalls(machine, work, operations)
        self.streams = LateStreamCalls(machine, work)
        self.green_contexts = GreenContextCalls(machine, self.streams)
        self.launches = LateLaunches(machine, work, operations)
        self.events = LateEventCalls(machine, work)
        self.graphs = LateGraphCalls(machine, work)
        self.captures = LateCaptureCalls(machine, work, operations, self.graphs)
        self.driver_streams = LateDriverStreams(machine, self.memory.poison, work)
