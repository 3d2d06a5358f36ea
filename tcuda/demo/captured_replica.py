"""A replica whose work is captured in CUDA graphs, so that a step takes one launch instead of dozens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tcuda
from tcuda.demo.replica import Replica

if TYPE_CHECKING:
    from tcuda.demo.arrays import DeviceArray, Floats
    from tcuda.demo.config import Config


class CapturedReplica(Replica):
    """The network on one device, whose work on a batch is captured once and then replayed.

    A graph works on the memory that it was captured with, so each device buffer of the loader has a graph of its own.
    The first batch in a buffer captures the graph of the buffer. The graph is replayed for this batch and for all later
    batches. If there is only one device, the graph also updates the parameters. Work on the arrays of another device is
    ordered by events and is not captured.

    The arguments are those of :class:`~tcuda.demo.replica.Replica`, and the results are the same to the bit.
    """

    def __init__(self, device: int, parameters: Floats, config: Config, velocity: Floats | None = None) -> None:
        super().__init__(device, parameters, config, velocity)
        self._alone = config.devices == 1
        self._batch_size = config.batch_size
        self._capture_stream = tcuda.Stream(device)
        self._pool = tcuda.graph_pool_handle()
        self._graphs: dict[int, tcuda.CUDAGraph] = {}

    def compute_gradients(self, batch: DeviceArray) -> None:
        """Run ``batch`` through the network and back, and update the parameters if there is only one device."""
        with tcuda.device(self.device):
            address = batch.data.ptr
            if address not in self._graphs:
                self._graphs[address] = self._capture(batch)
            with self.phases.measure("step"):
                self._graphs[address].replay()
            self._gradients_ready.record()

    def update(self, batch_size: int) -> None:
        """Update the parameters, unless the graph has done so."""
        if not self._alone:
            super().update(batch_size)

    def _capture(self, batch: DeviceArray) -> tcuda.CUDAGraph:
        """Return a graph of the work on ``batch``, without doing the work."""
        graph = tcuda.CUDAGraph()
        # The graphs share memory, because they share the pool and the stream. The graphs may be replayed in any order:
        # one replay ends before the next begins, and no graph reads memory that another graph has written.
        with tcuda.graph(graph, self._pool, self._capture_stream):
            self._backward(*self._forward(batch))
            if self._alone:
                self._follow_gradients(self._batch_size)
        return graph
