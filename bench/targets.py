"""The targets for the cost of calls on an NVIDIA H200, and for the memory that allocators hold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from results import Costs


class Target(NamedTuple):
    """The upper bounds of the cost of a call. By default, a call may cost as much as torch's call.

    Attributes:
        at_most: The bound in nanoseconds.
        over_below: The bound in nanoseconds above the cost of the layer below.
        of_below: The bound as a multiple of the cost of the layer below.
        of_torch: The bound as a multiple of the cost of torch's call.
    """

    at_most: float = math.inf
    over_below: float = math.inf
    of_below: float = math.inf
    of_torch: float = 1.0

    def met(self, costs: Costs) -> bool:
        """Return whether the cost of tcuda is within all bounds; a side that was not measured is no bound."""
        within = costs.tcuda <= self.at_most
        if costs.torch is not None:
            within = within and costs.tcuda <= self.of_torch * costs.torch
        if costs.below is not None:
            within = within and costs.over_below <= self.over_below and costs.ratio <= self.of_below
        return within

    def __str__(self) -> str:
        bounds = [f"≤ {self.at_most:,}"] if self.at_most < math.inf else []
        bounds += [f"≤ below + {self.over_below}"] if self.over_below < math.inf else []
        bounds += [f"≤ {_multiple(self.of_below)}below"] if self.of_below < math.inf else []
        return ", ".join([*bounds, f"≤ {_multiple(self.of_torch)}torch"])


MOST_GROWTH = 3.0
"""The bound of the cost of a call beside many blocks, streams or graphs, as a multiple of the cost beside few."""


def _multiple(of: float) -> str:
    return "" if of == 1 else f"{of:.3g} "


TARGETS = {
    "current_device()": Target(250),
    "device_count()": Target(250),
    "current_stream()": Target(250),
    "default_stream()": Target(250),
    "with device(0)": Target(500),
    "with stream(s)": Target(1200),
    "Stream()": Target(500),
    "Event()": Target(400),
    "event.record()": Target(600),
    "event.wait()": Target(500),
    "stream.record_event()": Target(1000),
    "stream.wait_stream(s2)": Target(900),
    "get_device_properties()": Target(300),
    "mem_get_info()": Target(over_below=60),
    "event.query()": Target(over_below=60),
    "stream.query()": Target(over_below=150),
    "event.synchronize()": Target(over_below=60),
    "stream.synchronize()": Target(over_below=150),
    "synchronize()": Target(over_below=150),
    "memory_allocated()": Target(300),
    "max_memory_allocated()": Target(300),
    "memory_reserved()": Target(300),
    "memory_stats()": Target(of_torch=0.2),
    "caching_allocator_alloc(1 KiB) + delete": Target(of_torch=0.3),
    "caching_allocator_alloc(20 MiB) + delete": Target(of_torch=0.3),
    "empty(1000)": Target(of_below=1.0),
    "jiterator, beside RawKernel": Target(of_below=1.0, of_torch=0.6),
    "jiterator, beside ElementwiseKernel": Target(of_below=1.0, of_torch=0.6),
    "jiterator of 4 inputs": Target(of_below=1.0, of_torch=0.7),
    "jiterator of broadcast inputs": Target(of_below=1.0),
    "randn of 100 million": Target(of_torch=1 / 0.9),
    "capture of 20 kernels": Target(of_below=1.15),
    "replay() of 20 kernels": Target(over_below=150, of_torch=0.7),
    # The call of the driver alone takes 0.7 of the call of a RawKernel, so no launch can meet this target of 0.6. The
    # next target bounds what tcuda adds to the driver.
    "launch of a compiled kernel": Target(of_below=0.6),
    "launch of a compiled kernel, beside the driver's": Target(over_below=300),
    **{
        f"{work}, {state}": Target(of_below=bound, of_torch=1.0 if state == "checking" else math.inf)
        for work in ("launch of an empty kernel", "x += 1", "training step", "demo")
        for state, bound in {"off": 1.0, "attached": 1.1, "checking": 2.0, "off again": 1.0}.items()
    },
    "manual_seed(1)": Target(of_torch=0.5),
    "get_rng_state()": Target(of_torch=0.5),
    "set_rng_state(state)": Target(of_torch=0.5),
}
"""The targets of calls that have other bounds than the cost of torch's call."""

COLD_KERNELS = {
    "the first kernel": 15.0,
    "the second kernel": 5.5,
    "the kernel that makes the precompiled header": 14.0,
    "a later kernel": 4.0,
    "a module of eight kernels": 8.0,
    "the first ElementwiseKernel": 9.0,
    "all of them in a second process": 1.0,
}
"""The bounds of the processor time of the compile of a kernel, as a multiple of that of an empty C++ file."""

BEFORE_A_KERNEL = 1.25
"""The bound of the cost of a call before the first kernel of a process, as a multiple of the cost after it."""

CAPTURES_OF_CUPY = {
    "20 kernels": 1.3,
    "20 kernels and 20 arrays in a kept pool": 1.3,
    "20 kernels and 20 arrays in a new pool": 1.6,
    "20 kernels in a block of graph()": 2.0,
}
"""The bounds of the time of a capture, as a multiple of the time of a capture that CuPy makes alone.

The bounds are above what an H200 shows. The aim is 6 us more than CuPy for the kernels, which is 1.05, and 10 us more
with the arrays.
"""

CAPTURES_OF_TORCH = {
    "20 kernels": 1.2,
    "20 kernels and 20 arrays in a kept pool": 1.6,
    "20 kernels and 20 arrays in a new pool": 1.1,
    "20 kernels in a block of graph()": 1.2,
}
"""The bounds of the time of a capture, as a multiple of the time of torch's. The aim for the kernels is 0.95."""

COLD_TIME_OF_TORCH = 0.8
"""The bound of the time of arrays of new memory from the device, as a multiple of the time of torch's arrays."""

COLD_ALLOCATIONS = {"cold_small": 57, "cold_medium": 54, "cold_large": 110}
"""The allocations from the driver in the cold workloads, which are the same in every run.

torch's default mode makes 202 in the first workload. torch's expandable segments would make 196, 150 and 273.
"""

CALLS_OF_TORCH = {
    "churn_small": 56,
    "churn_large": 116,
    "deeplab_infer": 27,
    "gpt2_generate": 37,
    "vit_train": 93,
    "diffusion_sample": 10,
    "train_transformer": 61,
    "train_convnet": 128,
    "kv_generate": 37,
    "kv_paged": 35,
    "rl_train": 39,
    "sparse_solve": 27,
    "image_pipeline": 15,
}
"""The calls of the driver in the first replay with torch's expandable segments.

The figures of five workloads were measured on an H200 on 2026-11-28: ``deeplab_infer``, ``gpt2_generate``,
``vit_train``, ``train_transformer`` and ``train_convnet``. All figures are those of tcuda's allocator with the steps of
torch: 20 MiB for large requests, 2 MiB for small ones. For these five workloads, the two are the same.
"""

RIVALS = ("torch", "torch_expandable", "cupy")
"""The allocators whose reserved memory bounds tcuda's."""

SETTLED_AFTER = {"train_sharded": 3}
"""The most replays before a replay calls no driver; 1 for the other workloads."""

SMALLEST_LIMITS = {
    "churn_small": 1.15,
    "churn_large": 1.03,
    "deeplab_infer": 1.005,
    "gpt2_generate": 1.008,
    "vit_train": 1.005,
    "diffusion_sample": 1.013,
    "train_transformer": 1.003,
    "train_convnet": 1.001,
    "kv_generate": 1.009,
    "kv_paged": 1.013,
    "rl_train": 1.032,
    "sparse_solve": 1.042,
    "image_pipeline": 1.058,
}
"""The bounds of the smallest limits on which the workloads run, on idle and on busy streams.

The bounds are multiples of the rounded peaks of live bytes.
"""

NEAR_LIVE = 1.01
"""The aim of the smallest limit.

A workload above the aim may need a piece of 2 MiB beside what is live, or as much as a plan that knows the workload
beforehand and gives each allocation one address.
"""

ABOVE_PLAN = {"churn_small"}
"""The workload that needs more than that: a random churn, in which most live blocks are smaller than a piece."""

HELD_OVER_TORCH = 2 << 20
"""The bytes that may be held at leisure above what torch's expandable segments hold: one step of small requests."""


class HeldByTorch(NamedTuple):
    """The peak of the memory that torch holds in the first replay, in MiB, by the kind of its segments."""

    fixed: int
    expandable: int


HELD_BY_TORCH = {
    "churn_small": HeldByTorch(366, 344),
    "churn_large": HeldByTorch(6490, 5400),
    "deeplab_infer": HeldByTorch(880, 500),
    "gpt2_generate": HeldByTorch(622, 592),
    "vit_train": HeldByTorch(3722, 3468),
    "diffusion_sample": HeldByTorch(300, 206),
    "train_transformer": HeldByTorch(2896, 2854),
    "train_convnet": HeldByTorch(6948, 6120),
    "kv_generate": HeldByTorch(832, 762),
    "kv_paged": HeldByTorch(730, 666),
    "rl_train": HeldByTorch(600, 610),
    "sparse_solve": HeldByTorch(590, 414),
    "image_pipeline": HeldByTorch(324, 212),
    "train_sharded": HeldByTorch(2696, 2574),
}
"""What torch 2.11 held on an NVIDIA H200 on 2026-11-27. torch holds the same in every run, and with a busy stream."""

HELD_BY_TORCH_BUSY = {**HELD_BY_TORCH, "train_sharded": HeldByTorch(2744, 2654)}
"""The same with streams that have work all the time. On several streams, torch then holds more."""
