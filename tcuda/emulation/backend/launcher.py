"""Launchers of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._backend.streams import CurrentStream
    from tcuda.emulation.runtime import EmulatedRuntime


class Launcher:
    """Launches an executable graph on the current stream of a device, while that device is current.

    Args:
        runtime: The runtime. The device of the launcher is the device that is current now.
        executable: The ``cudaGraphExec_t``.
        current_stream: Returns the current stream of a device.

    Attributes:
        launched: Whether :meth:`launch` was called.
    """

    def __init__(
        self, runtime: EmulatedRuntime, executable: int, current_stream: Callable[[int], CurrentStream]
    ) -> None:
        self._runtime = runtime
        self._executable = executable
        self._current_stream = current_stream
        self._device = runtime.getDevice()
        self.launched = False

    def launch(self) -> int:
        """Launch the graph and return success, or return the status that says why the graph was not launched."""
        self.launched = True
        if self._runtime.getDevice() != self._device:
            return Status.DEVICE_UNINITIALIZED
        return self._runtime.tryGraphLaunch(self._executable, self._current_stream(self._device).ptr)
