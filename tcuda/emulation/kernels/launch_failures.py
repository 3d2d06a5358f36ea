"""The errors of launches, from the reports of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.statuses import Status
from tcuda.emulation.devices.driver_error import CUDADriverError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.kernels.launched_kernel import LaunchedKernel

_STATUSES = {
    "assert": Status.ASSERT,
    "bounds": Status.ILLEGAL_ADDRESS,
    "deadlock": Status.LAUNCH_TIMEOUT,
    "memory": Status.ILLEGAL_ADDRESS,
    "misaligned": Status.MISALIGNED_ADDRESS,
    "timeout": Status.LAUNCH_TIMEOUT,
}
"""The status of each kind of failure; other failures are launch failures, as after ``__trap()``."""

BARRIER = (
    "CUDA leaves a barrier undefined that not all threads of the block reach. A GPU of today does not wait for the "
    "threads that have returned. Let all threads of the block reach the barrier, or turn this check off with "
    "TCUDA_EMULATED_CHECKS=memory."
)


def illegal_access(
    kernel: LaunchedKernel, report: tuple[Any, ...], why: str, lines: Sequence[tuple[str, int] | None]
) -> CUDADriverError:
    """Return the error for an access to memory that the kernel may not use.

    Args:
        kernel: The kernel.
        report: The report of the core on the access.
        why: The reason why the kernel may not use the memory.
        lines: The lines of the source that have the access.
    """
    _, address, size, write, thread, block = report
    details = (
        f"Invalid __global__ {'write' if write else 'read'} of size {size} bytes at {address:#x}\n"
        f"    in {kernel.name}{_lines_text(lines)}, by thread {thread} of block {block}.\n"
        f"{why}"
    )
    # A GPU reports an access to the address 0 like __trap().
    status = Status.ILLEGAL_ADDRESS if address else Status.LAUNCH_FAILURE
    return CUDADriverError(status, kernel.call, details)


def failure(
    kernel: LaunchedKernel, report: tuple[Any, ...], lines: Sequence[tuple[str, int] | None]
) -> CUDADriverError:
    """Return the error for another report of the core.

    Args:
        kernel: The kernel.
        report: The report.
        lines: The lines of the source at which the kernel failed.
    """
    kind, text, file, line, function, thread, block = report
    where = f"{file}:{line}: " if file else ""
    inside = f"{function}: " if function else ""
    what = f"Assertion `{text}` failed." if kind == "assert" else text
    what = what or "The kernel called __trap()."
    name = f"{kernel.name}{'' if file else _lines_text(lines)}"
    details = f"{where}{inside}block: {list(block)}, thread: {list(thread)}: {what}\n    in {name}."
    if kind == "deadlock":
        details = f"The block {block} cannot go on: {text}\n    in {name}."
        if "__syncthreads()" in text and " returned" in text:
            details += f"\n{BARRIER}"
    return CUDADriverError(_STATUSES.get(kind, Status.LAUNCH_FAILURE), kernel.call, details)


def _lines_text(lines: Sequence[tuple[str, int] | None]) -> str:
    """Return the lines in words, behind a comma; an empty text if no line is known."""
    known = dict.fromkeys(f"{file}:{number}" for file, number in filter(None, lines))
    return f" at {' and '.join(known)}" if known else ""
