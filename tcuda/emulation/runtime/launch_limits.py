"""The limits of a launch of a kernel, which are those of an NVIDIA H200."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda.emulation.runtime.costs import MULTIPROCESSORS

if TYPE_CHECKING:
    from typing import TypeAlias

    Dimensions: TypeAlias = tuple[int, int, int]

GRID = (2**31 - 1, 65535, 65535)
"""The most blocks along each axis."""

BLOCK = (1024, 1024, 64)
"""The most threads of a block along each axis."""

THREADS = 1024
"""The most threads of a block."""

SHARED = 48 << 10
"""The most bytes of shared memory of a block, if the kernel asks for no more."""

MOST_SHARED = 232448
"""The most bytes of shared memory of a block for which a kernel can ask."""

WARP = 32
"""The threads of a warp."""

RESIDENT_BLOCKS, RESIDENT_THREADS, RESIDENT_SHARED = 32, 2048, 233472
"""The most blocks, threads and bytes of shared memory of a multiprocessor at the same time."""

_RESERVED = 1024
"""The bytes of shared memory that CUDA keeps for itself in each block."""


def check(
    kernel: str, grid: Dimensions, block: Dimensions, shared: int, most_shared: int, most_threads: int = THREADS
) -> None:
    """Refuse a launch that CUDA refuses.

    Args:
        kernel: The name of the kernel.
        grid: The blocks along each axis.
        block: The threads of a block along each axis.
        shared: The bytes of dynamic shared memory.
        most_shared: The most bytes of dynamic shared memory for which the kernel has asked.
        most_threads: The most threads of a block of this kernel.

    Raises:
        AcceleratorError: A number is beyond its limit (1).
    """
    for what, numbers, most in (("grid", grid, GRID), ("block", block, BLOCK)):
        for axis, number, limit in zip("xyz", numbers, most, strict=True):
            if not 1 <= number <= limit:
                raise _refused(kernel, f"The {what} has {number} along {axis}; 1 to {limit} are possible.")
    threads = block[0] * block[1] * block[2]
    if threads > THREADS:
        raise _refused(kernel, f"The block has {threads} threads; at most {THREADS} are possible.")
    if threads > most_threads:
        details = f"The block has {threads} threads; __launch_bounds__ of the kernel allows {most_threads}."
        raise _refused(kernel, details)
    if shared > most_shared:
        raise _refused(
            kernel,
            f"The launch asks for {shared} bytes of dynamic shared memory, and the kernel may have {most_shared}. Set "
            f"max_dynamic_shared_size_bytes of the kernel to more, up to {MOST_SHARED}.",
        )


def most_together(block: Dimensions, shared: int, multiprocessors: int = MULTIPROCESSORS) -> int:
    """Return how many blocks run at the same time; 0 if a multiprocessor has no room for a block.

    Args:
        block: The threads of a block along each axis.
        shared: The bytes of shared memory of a block.
        multiprocessors: The number of multiprocessors.
    """
    threads = -(-block[0] * block[1] * block[2] // WARP) * WARP
    blocks = min(RESIDENT_BLOCKS, RESIDENT_THREADS // threads, RESIDENT_SHARED // (shared + _RESERVED))
    return multiprocessors * max(0, blocks)


def check_cooperative(kernel: str, grid: Dimensions, block: Dimensions, shared: int, multiprocessors: int) -> None:
    """Refuse a launch whose blocks cannot all run at the same time.

    Args:
        kernel: The name of the kernel.
        grid: The blocks along each axis.
        block: The threads of a block along each axis.
        shared: The bytes of shared memory of a block.
        multiprocessors: The number of multiprocessors that the kernel can run on.

    Raises:
        AcceleratorError: The grid has more blocks than can run at the same time (720).
    """
    most = most_together(block, shared, multiprocessors)
    blocks = grid[0] * grid[1] * grid[2]
    if blocks > most:
        details = (
            f"The cooperative launch has {blocks} blocks; at most {most} blocks of this size run at the same time on "
            f"{multiprocessors} multiprocessors. Let each thread do the work of several."
        )
        raise AcceleratorError(Status.COOPERATIVE_LAUNCH_TOO_LARGE, f"cuLaunchCooperativeKernel({kernel})", details)


def _refused(kernel: str, details: str) -> AcceleratorError:
    return AcceleratorError(Status.INVALID_VALUE, f"cuLaunchKernel({kernel})", details)
