"""Measures the collectives of tcuda, of torch and of CuPy's binding of NCCL: ``python bench/collectives.py``.

A time is the median of many calls, each until all devices are synchronised. The three sides alternate, so that a change
of the clock rate of a device concerns all of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from typing import TYPE_CHECKING, Any

from chosen_runtime import ON_CUDA
from table import plain

import tcuda
from tcuda import nccl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Calls = dict[str, Callable[[], object]]

SIZES = {"1 KiB": 1 << 10, "64 KiB": 64 << 10, "4 MiB": 4 << 20, "256 MiB": 256 << 20, "2 GiB": 2 << 30}
ROUNDS = {"1 KiB": 500, "64 KiB": 500, "4 MiB": 200, "256 MiB": 30, "2 GiB": 15}
FLOAT32 = 7


def calls_of(surface: Any, whole: Sequence[Any], part: Sequence[Any]) -> Calls:
    """Return the collectives of ``surface``, which is ``tcuda.nccl`` or ``torch.cuda.nccl``.

    Args:
        surface: The module.
        whole: An array on each device.
        part: On each device, an array for the part of the device.
    """
    return {
        "all_reduce": lambda: surface.all_reduce(whole),
        "reduce": lambda: surface.reduce(whole),
        "broadcast": lambda: surface.broadcast(whole),
        "all_gather": lambda: surface.all_gather(part, whole),
        "reduce_scatter": lambda: surface.reduce_scatter(whole, part),
    }


def calls_of_cupy(whole: Sequence[Any], part: Sequence[Any]) -> Calls:
    """Return the collectives of CuPy's binding on the default streams, without any check."""
    from cupy.cuda import nccl as binding

    members = binding.NcclCommunicator.initAll(list(range(len(whole))))

    def group(call: Callable[..., None], arguments: Callable[[Any, Any], tuple[Any, ...]]) -> Callable[[], None]:
        made = [(*arguments(*arrays), 0) for arrays in zip(whole, part, strict=True)]

        def run() -> None:
            binding.groupStart()
            for member, given in zip(members, made, strict=True):
                call(member, *given)
            binding.groupEnd()

        return run

    made = binding.NcclCommunicator
    size, part_size = whole[0].size, part[0].size
    return {
        "all_reduce": group(made.allReduce, lambda w, _: (w.data.ptr, w.data.ptr, size, FLOAT32, 0)),
        "reduce": group(made.reduce, lambda w, _: (w.data.ptr, w.data.ptr, size, FLOAT32, 0, 0)),
        "broadcast": group(made.broadcast, lambda w, _: (w.data.ptr, w.data.ptr, size, FLOAT32, 0)),
        "all_gather": group(made.allGather, lambda w, p: (p.data.ptr, w.data.ptr, part_size, FLOAT32)),
        "reduce_scatter": group(made.reduceScatter, lambda w, p: (w.data.ptr, p.data.ptr, part_size, FLOAT32, 0)),
    }


def sides(devices: int, nbytes: int) -> dict[str, Calls]:
    """Return the collectives of every side that this machine has, on arrays of ``nbytes`` on ``devices`` devices."""

    def arrays(count: int) -> list[Any]:
        made = []
        for device in range(devices):
            with tcuda.device(device):
                made.append(tcuda.xp.zeros(count, "float32"))
        return made

    count = nbytes // 4 // devices * devices
    whole, part = arrays(count), arrays(count // devices)
    found = {"tcuda": calls_of(nccl, whole, part)}
    if ON_CUDA:
        found["CuPy"] = calls_of_cupy(whole, part)
        if importlib.util.find_spec("torch"):
            import torch

            tensors = [
                [torch.zeros(array.size, device=f"cuda:{device}") for device, array in enumerate(side)]
                for side in (whole, part)
            ]
            found["torch"] = calls_of(torch.cuda.nccl, *tensors)
    return found


def measure(calls: Sequence[Callable[[], object]], devices: int, rounds: int) -> list[float]:
    """Return the median of the microseconds of each of ``calls``, until all devices are synchronised."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 5):
        for place, call in enumerate(calls):
            start = time.perf_counter()
            call()
            for device in range(devices):
                tcuda.synchronize(device)
            if turn >= 5:
                times[place].append(time.perf_counter() - start)
    return [1e6 * statistics.median(each) for each in times]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of the times in microseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, nargs="*", help="numbers of devices; all from 2 on by default")
    parser.add_argument("--sizes", nargs="*", choices=SIZES, default=list(SIZES), help="sizes of the arrays")
    parser.add_argument("--rounds", type=int, help="calls of each collective; depends on the size by default")
    options = parser.parse_args(arguments)
    for devices in options.devices or range(2, tcuda.device_count() + 1):
        for size in options.sizes:
            by_side = sides(devices, SIZES[size])
            rows = [[f"{devices} devices, {size}", *by_side]]
            for name in by_side["tcuda"]:
                times = measure([calls[name] for calls in by_side.values()], devices, options.rounds or ROUNDS[size])
                rows.append([name, *(f"{each:.1f}" for each in times)])
            print(plain(rows), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
