"""The cost of data-parallel training on one device and on many, by measurements on this machine and by a model.

    python bench/scaling.py                  the tables of the model, for docs/many-machines.md
    python bench/scaling.py --measure 1 2 4  a table of trainings of ``tcuda demo`` with so many workers on this machine

The model adds up the computation of a step and an all-reduce of the gradients. The all-reduce takes the time that
NCCL's own model predicts when NCCL chooses an algorithm, so the model has no constant of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import math
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from table import markdown

DEVICES_OF_A_MACHINE = 8
NVLINK = 18 * 20.6
"""GB/s that a device sends over NVLink: 18 links of 20.6 GB/s, the figure that NCCL uses for Hopper (SM90_NVLINK_BW in
src/graph/topo.h). The data sheets of NVIDIA H100 and H200 promise 25 GB/s for each link and direction."""

INFINIBAND = 8 * 50.0
"""GB/s that a machine sends: 8 ports of 400 Gb/s, one for each device (NVIDIA DGX H100/H200 user guide)."""


class Algorithm(NamedTuple):
    """The figures of an algorithm in NCCL's model (src/graph/tuning.cc, NCCL 2.19 and later).

    Attributes:
        name: The name, and NCCL's protocol.
        base: The microseconds of every call.
        nvlink: The microseconds of a step between devices of a machine.
        network: The microseconds of a step between machines.
        efficiency: The share of the bandwidth that carries data, in a machine and between machines.
        limit: The most GB/s that the protocol reaches, in a machine and between machines.
    """

    name: str
    base: float
    nvlink: float
    network: float
    efficiency: tuple[float, float]
    limit: tuple[float, float] = (math.inf, math.inf)


RING = Algorithm("ring", 8.4, 3.4, 14.0, (1, 1))
TREE = Algorithm("tree", 14.0, 1.25, 8.5, (0.92 * 7 / 9, 0.92 * 120 / 128))
SMALL_TREE = Algorithm("tree, LL", 6.8, 0.6, 5.0, (0.92 / 3.8, 0.92 / 3.8), (141.0, 35.0))
ALGORITHMS = (RING, TREE, SMALL_TREE)


GRADIENTS = {
    "77 kB (`tcuda demo`)": 9_610 * 8,
    "100 MB (25 million parameters)": 25_000_000 * 4,
    "1 GB (250 million parameters)": 250_000_000 * 4,
}
"""The bytes of the gradients of networks. The workers of the demo add up ``float64``."""

STEPS = {"`tcuda demo`": 620_000 / 660, "`tcuda demo --graph`": 46_000 / 660}
"""The microseconds of a step on one NVIDIA H200, from docs/benchmarks.md."""

USEFUL = 0.9
"""The share of the time in which the devices should compute."""

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def machines(devices: int) -> int:
    """Return the number of machines that ``devices`` devices are on."""
    return math.ceil(devices / DEVICES_OF_A_MACHINE)


def all_reduce(size: float, devices: int) -> tuple[float, Algorithm]:
    """Return the microseconds of an all-reduce of ``size`` bytes on two or more devices, and the fastest algorithm."""
    return min((_time(algorithm, size, devices), algorithm) for algorithm in ALGORITHMS)


def _time(algorithm: Algorithm, size: float, devices: int) -> float:
    nodes = machines(devices)
    bandwidth = NVLINK if nodes == 1 else min(NVLINK, INFINIBAND)
    bandwidth = min(bandwidth * algorithm.efficiency[nodes > 1], algorithm.limit[nodes > 1])
    if algorithm is RING:
        steps, between = 2 * (devices - 1), 2 * (nodes - 1)
        latency = (steps - between) * algorithm.nvlink + between * algorithm.network
        sent = steps / devices * size
    else:
        inside = devices // nodes - 1
        latency = 2 * (inside * algorithm.nvlink + math.log2(nodes) * algorithm.network)
        sent = 2 * size
    return algorithm.base + latency + sent / (bandwidth * 1000)


def all_reduce_rows() -> list[list[str]]:
    """Return the table of the all-reduces."""
    rows = [["devices", "machines", *GRADIENTS]]
    for devices in COUNTS[1:]:
        chosen = [all_reduce(size, devices) for size in GRADIENTS.values()]
        cells = [f"{_duration(time)} ({algorithm.name})" for time, algorithm in chosen]
        rows.append([f"{devices:,}", str(machines(devices)), *cells])
    return rows


def step_rows() -> list[list[str]]:
    """Return the table of the demo's steps, with the share of the time in which the devices compute."""
    demo, *_ = GRADIENTS.values()
    rows = [["devices", *(f"{name}: {_duration(compute)} of work" for name, compute in STEPS.items())]]
    for devices in COUNTS:
        exchange = all_reduce(demo, devices)[0] if devices > 1 else 0.0
        steps = [(compute + exchange, compute) for compute in STEPS.values()]
        rows.append([f"{devices:,}", *(f"{_duration(step)} ({compute / step:.0%})" for step, compute in steps)])
    return rows


def work_rows() -> list[list[str]]:
    """Return the table of the work that a step needs, so that the devices compute in most of the time."""
    _, *others = GRADIENTS.items()
    rows = [["devices", *(name for name, _ in others)]]
    for devices in COUNTS[1:]:
        work = [USEFUL / (1 - USEFUL) * all_reduce(size, devices)[0] for _, size in others]
        rows.append([f"{devices:,}", *map(_duration, work)])
    return rows


def _duration(microseconds: float) -> str:
    return f"{microseconds:.0f} µs" if microseconds < 1000 else f"{microseconds / 1000:.2f} ms"


def measured_rows(counts: list[int], epochs: int) -> list[list[str]]:
    """Train on each number of workers for ``1 + epochs`` epochs, and return the table of the times."""
    import tcuda
    import tcuda.dask
    from tcuda.demo import digits
    from tcuda.demo.config import Config
    from tcuda.demo.workers import cluster
    from tcuda.demo.workers.train import train

    if "TCUDA_RUNTIME" not in os.environ and not tcuda.is_available():
        tcuda.emulation.enable(max(counts))
    rows = [["workers", "start", "a step (fastest epoch)", "an all-reduce (fastest)", "parameters (SHA-256)"]]
    data = digits.load()
    demo, *_ = GRADIENTS.values()
    ends: list[float] = []
    for count in counts:
        ends.clear()
        begin = time.perf_counter()
        with cluster.local(count) as client:
            started = time.perf_counter()
            result = train(
                client,
                count,
                Config(kernel="exact", epochs=1 + epochs),
                data,
                lambda epoch: ends.append(time.perf_counter()),
            )
            group = tcuda.dask.group(client, [worker.address for worker in result.cluster.workers])
            exchange = max(client.gather(group.submit(client, time_all_reduces, demo, rounds=50)))
        # The first epoch also imports modules. The fastest of the others is least disturbed by other programs.
        fastest = min(end - begin for begin, end in itertools.pairwise(ends))
        step = fastest / (len(data.train) // result.config.batch_size)
        digest = hashlib.sha256(result.parameters.tobytes()).hexdigest()
        rows.append(
            [
                str(count),
                f"{started - begin:.1f} s",
                f"{step * 1000:.1f} ms",
                f"{exchange * 1000:.1f} ms",
                f"`{digest[:8]}`",
            ]
        )
    return rows


def time_all_reduces(group: Any, size: int, rounds: int) -> float:
    """Return the seconds of the fastest all-reduce of ``size`` bytes; a task of each worker of ``group``."""
    from time import perf_counter

    import tcuda

    array = tcuda.xp.zeros(size // 8, "float64")
    times = []
    with group.join() as communicator:
        for _ in range(rounds):
            communicator.barrier()
            begin = perf_counter()
            communicator.all_reduce(array)
            tcuda.synchronize()
            times.append(perf_counter() - begin)
    return min(times)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Print the cost of data-parallel training as tables.")
    parser.add_argument("--measure", metavar="N", type=int, nargs="+", help="train on N workers of this machine")
    parser.add_argument("--epochs", type=int, default=5, help="the number of measured epochs, and one more (5)")
    options = parser.parse_args()
    if options.measure:
        print(markdown(measured_rows(options.measure, options.epochs)))
    else:
        print(*map(markdown, (all_reduce_rows(), step_rows(), work_rows())), sep="\n\n")


if __name__ == "__main__":
    main()
