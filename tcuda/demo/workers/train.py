"""The program: runs epochs on a team of workers, and goes on from the last checkpoint if a worker is lost."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING

from tcuda.demo.checkpoint import Checkpoint
from tcuda.demo.result import Cluster, Epoch, Loss, Result, Worker
from tcuda.demo.workers.share import Share, State
from tcuda.demo.workers.team import Team, WorkerLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from distributed import Client

    from tcuda.demo.config import Config
    from tcuda.demo.digits import Digits

_MOST_LOSSES = 3
"""The number of times that workers may be lost in the same epoch."""

_UNTIL_REPLACED = 120.0
"""The seconds within which a lost worker must be replaced."""

_BETWEEN_LOOKS = 0.1


def train(
    client: Client,
    workers: int,
    config: Config,
    digits: Digits,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    on_checkpoint: Callable[[Checkpoint], None] = lambda checkpoint: None,
    on_loss: Callable[[Loss], None] = lambda loss: None,
    *,
    resume_from: Checkpoint | None = None,
    patience: float = _UNTIL_REPLACED,
) -> Result:
    """Train the network on workers of a cluster.

    The result does not depend on the number of workers, and not on losses of workers.

    Args:
        client: The client of the cluster, whose workers have the plugin ``tcuda.dask.Devices``.
        workers: The number of workers, which share each batch.
        config: The settings; the kernel is ``"exact"``, and each worker has one device.
        digits: The data.
        on_epoch: Called after every epoch.
        on_checkpoint: Called with a checkpoint after the epoch that the settings name.
        on_loss: Called when workers are lost, and the training goes on from the last checkpoint.
        resume_from: The checkpoint from which the training goes on; None to begin with the first epoch.
        patience: The seconds within which the cluster must have enough workers.

    Raises:
        RuntimeError: The cluster has too few workers for too long, or loses workers again and again in one epoch.
        ValueError: ``workers`` does not divide the batch, or the settings do not fit the checkpoint ``resume_from`` or
            this function.
    """
    require_fitting(config, workers)
    if resume_from is not None:
        resume_from.require_fitting(config)
    training = _Training(config, resume_from)
    losses: list[Loss] = []
    begin = time.perf_counter()
    while not training.complete:
        team = Team(client, wait_for_workers(client, workers, patience)[:workers], config, digits)
        try:
            team.join()
            while not training.complete:
                epoch = training.run_epoch(team)
                on_epoch(epoch)
                if epoch.number == config.save_at:
                    on_checkpoint(training.checkpoint())
        except WorkerLostError as lost:
            epoch_lost = training.epoch + 1
            losses.append(Loss(epoch_lost, lost.addresses))
            times = sum(loss.epoch == epoch_lost for loss in losses)
            if times > _MOST_LOSSES:
                raise RuntimeError(
                    f"Workers were lost {times} times in epoch {epoch_lost}; see the logs of the workers."
                ) from lost
            on_loss(losses[-1])
        finally:
            team.dissolve()
    return training.result(len(digits.test), (time.perf_counter() - begin) * 1000, losses)


def require_fitting(config: Config, workers: int) -> None:
    """Insist that ``workers`` workers can run the training with the settings ``config``.

    Raises:
        ValueError: ``workers`` does not divide the batch, or the settings ask for several devices in a process, for
            graphs, or for a kernel other than ``"exact"``.
    """
    if workers < 1 or config.batch_size % workers:
        raise ValueError(f"{workers} workers cannot share a batch of {config.batch_size} digits equally.")
    if config.kernel != "exact":
        raise ValueError(f"kernel is {config.kernel!r}; workers need the kernel 'exact'.")
    if config.devices != 1:
        raise ValueError(f"devices is {config.devices}; each worker has one device.")
    if config.graph:
        raise ValueError("graph is True; the steps of workers cannot be captured, because they exchange gradients.")


class _Training:
    """The state of the training in the program."""

    def __init__(self, config: Config, resume_from: Checkpoint | None) -> None:
        self._config = config
        self._resumed_after = resume_from.epoch if resume_from else None
        self._epochs = list(resume_from.epochs) if resume_from else []
        self._state = (
            State(resume_from.parameters, resume_from.velocity, resume_from.rng_state) if resume_from else None
        )
        self._phases: defaultdict[str, float] = defaultdict(float)
        self._shares: list[Share] = []
        self._addresses: Sequence[str] = ()

    @property
    def epoch(self) -> int:
        """The number of the last epoch."""
        return len(self._epochs)

    @property
    def complete(self) -> bool:
        """Whether all epochs are over."""
        return self.epoch == self._config.epochs

    def run_epoch(self, team: Team) -> Epoch:
        """Run the next epoch on ``team``.

        Raises:
            WorkerLostError: A worker of the team is gone. The state is that before the epoch.
        """
        number = self.epoch + 1
        shares = team.epoch(self._state, last=number == self._config.epochs)
        self._state = shares[0].state
        self._shares, self._addresses = shares, team.addresses
        for share in shares:
            for phase, milliseconds in share.phases.items():
                self._phases[phase] += milliseconds
        count = sum(share.digits for share in shares)
        loss, correct = (sum(getattr(share, name) for share in shares) for name in ("loss", "correct"))
        self._epochs.append(Epoch(number, loss / count, correct / count))
        return self._epochs[-1]

    def checkpoint(self) -> Checkpoint:
        """Return a checkpoint after the last epoch."""
        assert self._state is not None
        return Checkpoint(self._config, *self._state, epochs=tuple(self._epochs))

    def result(self, tested: int, milliseconds: float, losses: Sequence[Loss]) -> Result:
        """Return the result of the training, which is complete.

        Args:
            tested: The number of held-out digits.
            milliseconds: The time of the training, by the clock of the program.
            losses: The losses of workers.
        """
        assert self._state is not None
        shares = zip(self._addresses, self._shares, strict=True)
        return Result(
            self._config,
            resumed_after=self._resumed_after,
            epochs=self._epochs,
            accuracy=sum(share.recognised or 0 for share in self._shares) / tested,
            parameters=self._state.parameters,
            phases=dict(self._phases),
            elapsed=milliseconds,
            devices=[share.memory for share in self._shares],
            cluster=Cluster(
                runtime=self._shares[0].runtime,
                workers=[Worker(rank, address, share.memory) for rank, (address, share) in enumerate(shares)],
                losses=list(losses),
            ),
        )


def wait_for_workers(client: Client, count: int = 1, patience: float = _UNTIL_REPLACED) -> list[str]:
    """Return the addresses of the workers of the cluster, as soon as the cluster has ``count`` workers.

    Raises:
        RuntimeError: The cluster has fewer workers after ``patience`` seconds.
    """
    deadline = time.monotonic() + patience
    while len(present := sorted(client.nthreads())) < count:
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"After {patience:.0f} seconds the number of workers in the cluster is {len(present)}; the training "
                f"needs {count}."
            )
        time.sleep(_BETWEEN_LOOKS)
    return present
