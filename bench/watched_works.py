"""The work of the benchmarks of the race detector on CUDA, in the spelling of CuPy and of torch.

A work is a function without arguments that makes a round of 100 calls or steps.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy
from loop import CALLS, inlined

if TYPE_CHECKING:
    from collections.abc import Callable

    from loop import Loop

LAUNCH, OPERATION, TRAINING = "launch of an empty kernel", "x += 1", "training step"
WORKS = (LAUNCH, OPERATION, TRAINING)

# The launch is that of an empty kernel, and the code of the kernel has a read and a write.
_EMPTY = 'extern "C" __global__ void empty(const float *x, float *y) { if (x == y) *y = *x + 1; }'
_ROWS, _INPUTS, _HIDDEN, _OUTPUTS = 256, 64, 128, 10


def of_cupy(xp: Any, work: str, synchronize: Callable[[], None]) -> Loop:
    """Return a work on arrays of ``xp``."""
    if work == LAUNCH:
        kernel = xp.RawKernel(_EMPTY, "empty")
        x, y = xp.zeros(1000, xp.float32), xp.zeros(1000, xp.float32)
        return inlined("kernel((1,), (1,), (x, y))", {"kernel": kernel, "x": x, "y": y})
    if work == OPERATION:
        return inlined("add(x, 1)", {"add": operator.iadd, "x": xp.zeros(1000, xp.float32)})
    return _training(xp.asarray, lambda x: xp.maximum(x, 0), synchronize)


def of_torch(torch: Any, work: str, synchronize: Callable[[], None]) -> Loop:
    """Return a work on tensors.

    Raises:
        LookupError: torch's sanitizer sees no launch of a kernel that the program compiles.
    """
    if work == LAUNCH:
        raise LookupError(work)
    if work == OPERATION:
        return inlined("add(x, 1)", {"add": operator.iadd, "x": torch.zeros(1000, device="cuda")})
    return _training(lambda array: torch.from_numpy(array).cuda(), torch.relu, synchronize)


def _training(on_device: Callable[[Any], Any], relu: Callable[[Any], Any], synchronize: Callable[[], None]) -> Loop:
    """Return 100 steps of the training of a small network, and the wait for the device after them."""
    drawn = numpy.random.default_rng(0)
    rows, targets, first, second = (
        on_device(drawn.standard_normal(shape, numpy.float32) * 0.1)
        for shape in ((_ROWS, _INPUTS), (_ROWS, _OUTPUTS), (_INPUTS, _HIDDEN), (_HIDDEN, _OUTPUTS))
    )
    weights = [first, second]

    def step() -> None:
        hidden = relu(rows @ weights[0])
        wrong = hidden @ weights[1] - targets
        back = (wrong @ weights[1].T) * (hidden > 0)
        weights[0] -= 0.001 * (rows.T @ back)
        weights[1] -= 0.001 * (hidden.T @ wrong)

    def steps() -> None:
        for _ in range(CALLS):
            step()
        synchronize()

    return steps
