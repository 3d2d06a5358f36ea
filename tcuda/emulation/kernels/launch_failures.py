"""The errors of launches, from the reports of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.cells import line_in
from tcuda._base.statuses import Status
from tcuda.emulation.devices.driver_error import CUDADriverError
from tcuda.emulation.kernels.other_orders import words

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
    kernel: LaunchedKernel, report: tuple[Any, ...], why: str, lines: Sequence[tuple[str, int] | None], order: int
) -> CUDADriverError:
    """Return the error for an access to memory that the kernel may not use.

    Args:
        kernel: The kernel.
        report: The report of the core on the access.
        why: The reason why the kernel may not use the memory.
        lines: The lines of the source that have the access.
        order: The order of the blocks and threads.
    """
    _, address, size, write, thread, block = report
    details = (
        f"Invalid __global__ {'write' if write else 'read'} of size {size} bytes at {address:#x}\n"
        f"    in {kernel.name}{_lines_text(lines)}, by thread {thread} of block {block}.\n"
        f"{why}{_order_text(order)}"
    )
    # A GPU reports an access to the address 0 like __trap().
    status = Status.ILLEGAL_ADDRESS if address else Status.LAUNCH_FAILURE
    return CUDADriverError(status, kernel.call, details)


def failure(
    kernel: LaunchedKernel, report: tuple[Any, ...], lines: Sequence[tuple[str, int] | None], order: int
) -> CUDADriverError:
    """Return the error for another report of the core.

    Args:
        kernel: The kernel.
        report: The report.
        lines: The lines of the source at which the kernel failed.
        order: The order of the blocks and threads.
    """
    kind, text, file, line, function, thread, block = report
    where = f"{line_in(file, line) or f'{file}:{line}'}: " if file else ""
    inside = f"{function}: " if function else ""
    what = f"Assertion `{text}` failed." if kind == "assert" else text
    what = what or "The kernel called __trap()."
    if kind == "constant":
        what = _constant(kernel, int(text))
    name = f"{kernel.name}{'' if file else _lines_text(lines)}"
    details = f"{where}{inside}block: {list(block)}, thread: {list(thread)}: {what}\n    in {name}."
    if kind == "deadlock":
        details = f"The block {block} cannot go on: {text}\n    in {name}."
        if "__syncthreads()" in text and " returned" in text:
            details += f"\n{BARRIER}"
    status = _STATUSES.get(kind, Status.LAUNCH_FAILURE)
    return CUDADriverError(status, kernel.call, f"{details}{_order_text(order)}")


def _constant(kernel: LaunchedKernel, address: int) -> str:
    """Return the words for a write to constant memory."""
    variables = kernel.module.global_variables()
    name = next((f" {name}" for name, begin, end in variables if begin <= address < end), "")
    return (
        f"The kernel writes to the __constant__ variable{name}, which kernels can only read. Write the variable from "
        "Python by the pointer of get_global(), pass this pointer to the kernel, or declare the variable __device__."
    )


def _order_text(order: int) -> str:
    """Return a line about an order of the blocks and threads; an empty text for the usual order."""
    if order == 0:
        return ""
    return (
        f"\nThe kernel fails if its blocks and its threads run {words(order)}. With the usual order, the kernel has "
        "ended. CUDA promises no order of blocks and threads."
    )


def _lines_text(lines: Sequence[tuple[str, int] | None]) -> str:
    """Return the lines in words, behind a comma; an empty text if no line is known."""
    known = dict.fromkeys(line_in(*line) or f"{line[0]}:{line[1]}" for line in filter(None, lines))
    return f" at {' and '.join(known)}" if known else ""
