"""The program: data parallel training with streams and events, as one writes it with ``torch.cuda``."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy

import tcuda
from tcuda.demo import network
from tcuda.demo.loader import Loader
from tcuda.demo.replica import Replica
from tcuda.demo.result import DeviceMemory, Epoch, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tcuda.demo.arrays import DeviceArray, Indices
    from tcuda.demo.config import Config
    from tcuda.demo.digits import Digits
    from tcuda.demo.phases import Phases


def train(config: Config, digits: Digits, on_epoch: Callable[[Epoch], None] = lambda epoch: None) -> Result:
    """Train the network.

    Within an epoch the program only hands out work: it waits for the devices when it asks for the score.

    Args:
        config: The settings.
        digits: The data.
        on_epoch: Called after every epoch.

    Raises:
        RuntimeError: There is no device, or not as many as the settings ask for.
    """
    tcuda.init()
    if config.devices > tcuda.device_count():
        raise RuntimeError(
            f"CUDA error: invalid device ordinal. The settings ask for {config.devices} devices, and this machine has "
            f"{tcuda.device_count()}; ask for fewer, or check CUDA_VISIBLE_DEVICES and TCUDA_EMULATED_DEVICES."
        )
    random = numpy.random.default_rng(config.seed)
    parameters = network.initial_parameters(config.hidden_units, random)
    replicas = [Replica(device, parameters, config) for device in range(config.devices)]
    root = replicas[0]
    start, end = tcuda.Event(enable_timing=True), tcuda.Event(enable_timing=True)
    epochs = []
    with contextlib.ExitStack() as stack:
        loaders = [stack.enter_context(_loader(replica, digits, config)) for replica in replicas]
        start.record(tcuda.current_stream(root.device))
        for number in range(1, config.epochs + 1):
            order = _shuffle(len(digits.train), config.batch_size, random)
            shares = [loader.batches(order[:, config.share(device)]) for device, loader in enumerate(loaders)]
            for batch in zip(*shares, strict=True):
                train_step(replicas, batch, config.batch_size)
            epochs.append(_epoch(number, replicas, order.size))
            on_epoch(epochs[-1])
        end.record(tcuda.current_stream(root.device))
        end.synchronize()
    return Result(
        config,
        epochs,
        accuracy=root.accuracy(digits.test),
        parameters=root.parameters_on_host(),
        phases=_total(replica.phases for replica in replicas),
        elapsed=start.elapsed_time(end),
        devices=[_memory(replica.device) for replica in replicas],
    )


def train_step(replicas: Sequence[Replica], batch: Iterable[DeviceArray], batch_size: int) -> None:
    """Let every device compute with its share of ``batch``, and give all of them the parameters that come of it."""
    for replica, share in zip(replicas, batch, strict=True):
        replica.compute_gradients(share)
    root, *others = replicas
    for other in others:
        root.add_gradients_of(other)
    root.update(batch_size)
    for other in others:
        other.copy_parameters_of(root)


def _loader(replica: Replica, digits: Digits, config: Config) -> Loader:
    share = len(range(config.batch_size)[config.share(replica.device)])
    with tcuda.device(replica.device):
        return Loader(digits.train, share, overlap=config.overlap, phases=replica.phases)


def _shuffle(count: int, batch_size: int, random: numpy.random.Generator) -> Indices:
    """Return the numbers below ``count`` in random order, a batch a row; what does not fill a row sits out."""
    batches = count // batch_size
    return random.permutation(count)[: batches * batch_size].reshape(batches, batch_size)


def _epoch(number: int, replicas: Sequence[Replica], count: int) -> Epoch:
    losses, correct = zip(*(replica.take_score() for replica in replicas), strict=True)
    return Epoch(number, sum(losses) / count, sum(correct) / count)


def _total(measured: Iterable[Phases]) -> dict[str, float]:
    total: defaultdict[str, float] = defaultdict(float)
    for phases in measured:
        for name, milliseconds in phases.milliseconds.items():
            total[name] += milliseconds
    return dict(total)


def _memory(device: int) -> DeviceMemory:
    free, total = tcuda.mem_get_info(device)
    return DeviceMemory(device, tcuda.get_device_name(device), total - free, free)
