"""The program: data parallel training with streams and events, as in a program for ``torch.cuda``."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy

import tcuda
from tcuda import xp
from tcuda.demo import network
from tcuda.demo.captured_replica import CapturedReplica
from tcuda.demo.checkpoint import Checkpoint
from tcuda.demo.loader import Loader
from tcuda.demo.replica import Replica
from tcuda.demo.result import DeviceMemory, Epoch, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tcuda.demo.arrays import DeviceArray, Indices
    from tcuda.demo.config import Config
    from tcuda.demo.digits import Digits
    from tcuda.demo.phases import Phases

_ROOT = 0
"""The device that draws random numbers and updates the parameters."""


def train(
    config: Config,
    digits: Digits,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    on_checkpoint: Callable[[Checkpoint], None] = lambda checkpoint: None,
    *,
    resume_from: Checkpoint | None = None,
) -> Result:
    """Train the network.

    Between the batches of an epoch the program waits only for host buffers: a loader fills a host buffer again only
    after the earlier copy from the buffer. The program waits for the other work of the devices when it gets the order
    of the digits, the score of an epoch, or a checkpoint.

    All random numbers come from the default generator of device 0. After the training, this generator has the state
    that it had before.

    Args:
        config: The settings.
        digits: The data.
        on_epoch: Called after every epoch.
        on_checkpoint: Called with a checkpoint after the epoch that the settings name.
        resume_from: The checkpoint from which the training goes on; None to begin with the first epoch.

    Raises:
        RuntimeError: There are fewer devices than the settings ask for, or kernels of CUDA C++ cannot be compiled.
        ValueError: The settings do not fit the checkpoint ``resume_from``.
    """
    if resume_from is not None:
        resume_from.require_fitting(config)
    tcuda.init()
    if config.devices > tcuda.device_count():
        raise RuntimeError(
            f"CUDA error: invalid device ordinal. The settings ask for {config.devices} devices, and this machine has "
            f"{tcuda.device_count()}; ask for fewer, or check CUDA_VISIBLE_DEVICES and TCUDA_EMULATED_DEVICES."
        )
    with contextlib.ExitStack() as stack:
        stack.enter_context(tcuda.random.fork_rng([_ROOT]))
        begin = resume_from or beginning(config)
        tcuda.set_rng_state(begin.rng_state, _ROOT)
        kind = CapturedReplica if config.graph else Replica
        replicas = [kind(device, begin.parameters, config, begin.velocity) for device in range(config.devices)]
        root = replicas[_ROOT]
        epochs = list(begin.epochs)
        start, end = tcuda.Event(enable_timing=True), tcuda.Event(enable_timing=True)
        loaders = [_loader(replica, digits, config) for replica in replicas]
        start.record(tcuda.current_stream(root.device))
        for number in range(begin.epoch + 1, config.epochs + 1):
            order = shuffle(len(digits.train), config.batch_size)
            shares = [loader.batches(order[:, config.share(device)]) for device, loader in enumerate(loaders)]
            for batch in zip(*shares, strict=True):
                train_step(replicas, batch, config.batch_size)
            epochs.append(_epoch(number, replicas, order.size))
            on_epoch(epochs[-1])
            if number == config.save_at:
                on_checkpoint(_checkpoint(config, root, epochs))
        end.record(tcuda.current_stream(root.device))
        end.synchronize()
    return Result(
        config,
        resumed_after=None if resume_from is None else resume_from.epoch,
        epochs=epochs,
        accuracy=root.count_recognised(digits.test) / len(digits.test),
        parameters=root.parameters_on_host(),
        phases=_total(replica.phases for replica in replicas),
        elapsed=start.elapsed_time(end),
        devices=[memory_of(replica.device) for replica in replicas],
    )


def train_step(replicas: Sequence[Replica], batch: Iterable[DeviceArray], batch_size: int) -> None:
    """Let every device work on its share of ``batch``, and give all devices the updated parameters."""
    for replica, share in zip(replicas, batch, strict=True):
        replica.compute_gradients(share)
    root, *others = replicas
    for other in others:
        root.add_gradients_of(other)
    root.update(batch_size)
    for other in others:
        other.copy_parameters_of(root)


def beginning(config: Config, device: int = _ROOT) -> Checkpoint:
    """Return a checkpoint of the training before the first epoch; the random numbers come from ``device``."""
    with tcuda.device(device):
        tcuda.manual_seed(config.seed)
        parameters = network.initial_parameters(config.hidden_units)
    return Checkpoint(config, parameters, numpy.zeros_like(parameters), tcuda.get_rng_state(device), epochs=())


def _checkpoint(config: Config, root: Replica, epochs: Iterable[Epoch]) -> Checkpoint:
    """Return a checkpoint of the training now; the other devices have only copies of the parameters of ``root``."""
    return Checkpoint(
        config, root.parameters_on_host(), root.velocity_on_host(), tcuda.get_rng_state(_ROOT), tuple(epochs)
    )


def _loader(replica: Replica, digits: Digits, config: Config) -> Loader:
    share = len(range(config.batch_size)[config.share(replica.device)])
    with tcuda.device(replica.device):
        return Loader(digits.train, share, overlap=config.overlap, phases=replica.phases)


def shuffle(count: int, batch_size: int, device: int = _ROOT) -> Indices:
    """Return the numbers below ``count`` in random order, one batch in each row; an incomplete row is left out.

    The random numbers come from ``device``.
    """
    batches = count // batch_size
    with tcuda.device(device):
        order: Indices = xp.random.permutation(count).get()
    return order[: batches * batch_size].reshape(batches, batch_size)


def _epoch(number: int, replicas: Sequence[Replica], count: int) -> Epoch:
    losses, correct = zip(*(replica.take_score() for replica in replicas), strict=True)
    return Epoch(number, sum(losses) / count, sum(correct) / count)


def _total(measured: Iterable[Phases]) -> dict[str, float]:
    total: defaultdict[str, float] = defaultdict(float)
    for phases in measured:
        for name, milliseconds in phases.milliseconds.items():
            total[name] += milliseconds
    return dict(total)


def memory_of(device: int) -> DeviceMemory:
    """Return the memory of ``device``."""
    free, total = tcuda.mem_get_info(device)
    return DeviceMemory(device, tcuda.get_device_name(device), total - free, free)
