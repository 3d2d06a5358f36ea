"""The part of one worker: a replica on the worker's device, whose gradients are added to those of the other workers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import tcuda
from tcuda._runtime import runtime
from tcuda.demo.loader import Loader
from tcuda.demo.replica import Replica
from tcuda.demo.train import beginning, memory_of, shuffle
from tcuda.demo.workers.share import Share, State

if TYPE_CHECKING:
    from tcuda.dask import Communicator
    from tcuda.demo.arrays import DeviceArray
    from tcuda.demo.config import Config
    from tcuda.demo.digits import Digits


class Member:
    """A worker of a team.

    Args:
        communicator: The connection with the other workers.
        config: The settings.
        digits: The data.
    """

    def __init__(self, communicator: Communicator, config: Config, digits: Digits) -> None:
        self._communicator = communicator
        self._config = config
        self._digits = digits
        self._device = tcuda.current_device()
        self._share = slice(communicator.rank, None, communicator.size)

    def epoch(self, before: State | None, *, last: bool) -> Share:
        """Run this worker's part of an epoch.

        All workers draw the same random numbers and update their parameters in the same way, so they exchange only
        gradients. The generator of the device afterwards has the state that it had before.

        Args:
            before: The state before the epoch; None before the first epoch.
            last: Whether the epoch is the last one, after which the network is tested.

        Raises:
            GroupError: Another worker of the team is gone.
        """
        config, device = self._config, self._device
        with contextlib.ExitStack() as stack:
            stack.enter_context(tcuda.random.fork_rng([device]))
            begin = before or beginning(config, device)
            tcuda.set_rng_state(begin.rng_state, device)
            replica = Replica(device, begin.parameters, config, begin.velocity)
            order = shuffle(len(self._digits.train), config.batch_size, device)[:, self._share]
            loader = Loader(self._digits.train, order.shape[1], overlap=config.overlap, phases=replica.phases)
            for batch in loader.batches(order):
                self._step(replica, batch)
            loss, correct = replica.take_score()
            self._communicator.barrier()  # Without all workers, the last sums of NCCL may be wrong.
            state = State(replica.parameters_on_host(), replica.velocity_on_host(), tcuda.get_rng_state(device))
        return Share(
            order.size,
            loss,
            correct,
            recognised=replica.count_recognised(self._digits.test[self._share]) if last else None,
            phases=dict(replica.phases.milliseconds),
            runtime=runtime().name,
            memory=memory_of(device),
            state=state,
        )

    def _step(self, replica: Replica, batch: DeviceArray) -> None:
        replica.compute_gradients(batch)
        replica.sum_gradients(self._communicator.all_reduce)
        replica.update(self._config.batch_size)

    def close(self) -> None:
        """Leave the team after an epoch."""
        self._communicator.close()

    def leave(self, reason: str) -> None:
        """Leave the team during an epoch, and tell the other workers the reason. Any thread may call the method."""
        self._communicator.abandon(reason)
