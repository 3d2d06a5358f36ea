"""A replica whose work is captured in CUDA graphs, so that a step takes one launch instead of dozens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tcuda
from tcuda.demo.replica import Replica

if TYPE_CHECKING:
    from tcuda.demo.arrays import DeviceArray, Floats
    from tcuda.demo.config import Config


class CapturedReplica(Replica):
    """The network on one device, which is told only once what to do with a batch.

    A graph works on the memory that it was captured with, so there is one for each buffer that batches come in. It is
    captured when the first batch comes there, and replayed for this one and all others. A device that shares the
    batches with no other also updates its parameters in that graph. What devices do with arrays of each other is
    ordered by events, and stays outside.

    Takes what :class:`~tcuda.demo.replica.Replica` takes, and comes to the same bits.
    """

    def __init__(self, device: int, parameters: Floats, config: Config, velocity: Floats | None = None) -> None:
        super().__init__(device, parameters, config, velocity)
        self._alone = config.devices == 1
        self._batch_size = config.batch_size
        self._capture_stream = tcuda.Stream(device)
        self._pool = tcuda.graph_pool_handle()
        self._graphs: dict[int, tcuda.CUDAGraph] = {}

    def compute_gradients(self, batch: DeviceArray) -> None:
        """Run ``batch`` through the network and back, and follow the gradients if no other device has any."""
        with tcuda.device(self.device):
            address = batch.data.ptr
            if address not in self._graphs:
                self._graphs[address] = self._capture(batch)
            with self.phases.measure("step"):
                self._graphs[address].replay()
            self._gradients_ready.record()

    def update(self, batch_size: int) -> None:
        """Follow the gradients, unless the graph has done it."""
        if not self._alone:
            super().update(batch_size)

    def _capture(self, batch: DeviceArray) -> tcuda.CUDAGraph:
        """Return a graph of the work on ``batch``, none of which is done yet."""
        graph = tcuda.CUDAGraph()
        # With the pool and the stream they share memory. They may, in any order: they run one after the other, and none
        # reads what another one left there.
        with tcuda.graph(graph, self._pool, self._capture_stream):
            self._backward(*self._forward(batch))
            if self._alone:
                self._follow_gradients(self._batch_size)
        return graph
