"""What is missing between two accesses of one kernel: a barrier, an atomic function, a fence or a wider scope."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tcuda.sanitizer._missing import Missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.sanitizer._kernel_race import KernelMemory, KernelRaceAccess

WARP_BARRIER = "__syncwarp()"
"""The call that orders the threads of a warp, and no others."""

_BARRIER = re.compile(r"\b__syncthreads|\bsync\s*\(|\barrive_and_wait\b|\b__barrier_sync")
_ANY_BARRIER = re.compile(rf"\b__syncwarp|{_BARRIER.pattern}")
"""The calls in a line that may be the barrier of a block, and those that may be the barrier of a warp."""
_OF_BLOCK = re.compile(r"\b(\w+)_block\b")
_UPDATES = (
    (re.compile(r"\+\+|\+="), "atomicAdd"),
    (re.compile(r"--|-="), "atomicSub"),
    (re.compile(r"\|="), "atomicOr"),
    (re.compile(r"&="), "atomicAnd"),
    (re.compile(r"\^="), "atomicXor"),
    (re.compile(r"=[^=;]*\b[fi]?max[fl]?\s*\("), "atomicMax"),
    (re.compile(r"=[^=;]*\b[fi]?min[fl]?\s*\("), "atomicMin"),
)
"""The operators and functions in a line, and the atomic function that does the same."""


def missing_in_kernel(
    missing: str,
    first: KernelRaceAccess,
    second: KernelRaceAccess,
    memory: KernelMemory,
    *,
    benign: bool = False,
    between: Sequence[str] = (),
    without_fence: str = "both",
) -> Missing:
    """Return what would order two accesses of one kernel.

    Args:
        missing: What is missing: ``"barrier"``, ``"warp barrier"``, ``"atomic"``, ``"fence"`` or ``"scope"``.
        first: The access that ran first.
        second: The other access.
        memory: The memory of both.
        benign: Whether both write the same value.
        between: The lines of the source between the two accesses.
        without_fence: The access whose thread lacks a fence: ``"first"``, ``"second"`` or ``"both"``.

    Raises:
        ValueError: ``missing`` is none of these words.
    """
    if benign:
        call = f"atomicExch(&{memory.expression}, ...)"
        lines = " and ".join(dict.fromkeys(_names_of_lines(first, second)))
        return Missing(call, None, f"One thread alone, or an atomic function such as `{call}`, may write in {lines}.")
    if missing == "barrier" and first.block != second.block:
        sentence = "No barrier orders the blocks of a launch. Two launches, one after the other, order them."
        return Missing("two launches", second.line, sentence)
    if missing == "barrier":
        return _barrier("__syncthreads()", "A barrier", first, second, between)
    if missing == "warp barrier":
        return _barrier(WARP_BARRIER, "A barrier of the warp", first, second, between)
    if missing == "atomic":
        return _atomic(first, second, memory)
    if missing == "fence":
        return _fence(first, second, without_fence)
    if missing == "scope":
        return _scope(first, second)
    raise ValueError(f"missing must be 'barrier', 'warp barrier', 'atomic', 'fence' or 'scope'; got {missing!r}.")


def _barrier(
    call: str, name: str, first: KernelRaceAccess, second: KernelRaceAccess, between: Sequence[str]
) -> Missing:
    """Return the barrier. The order in which the emulated threads ran is not that of the lines."""
    other_way = ""
    early, late = first, second
    if not _has_two_files(first, second):
        early, late = sorted([first, second], key=lambda access: 0 if access.line is None else access.line.line)
    early_line, late_line = _names_of_lines(early, late)
    if early_line == late_line:
        where = f"between the access of one thread and that of the other in {early_line}"
        if not (first.kind.endswith("read") or second.kind.endswith("read")):
            other_way = ", or one thread alone writes"
    elif any((_ANY_BARRIER if call == WARP_BARRIER else _BARRIER).search(text) for text in between):
        # The barrier between the lines orders one round of a loop.
        where = f"between {late_line} and {early_line} of the next round"
        early, late = late, early
    else:
        where = f"between {early_line} and {late_line}"
    return Missing(call, late.line, f"{name} (`{call}`) {where} orders them{other_way}.")


def _atomic(first: KernelRaceAccess, second: KernelRaceAccess, memory: KernelMemory) -> Missing:
    names = _names_of_lines(first, second)
    plain = [access for access in (first, second) if access.kind != "atomic"]
    # The line that writes tells the operation.
    writer = next((access for access in plain if access.kind.endswith("write")), plain[0] if plain else second)
    named = [name for access, name in zip((first, second), names, strict=True) if access in (plain or [second])]
    lines = " and ".join(dict.fromkeys(named))
    function = next((name for pattern, name in _UPDATES if pattern.search(writer.source)), None)
    if function is None and writer.kind.endswith("read"):
        call = f"atomicAdd(&{memory.expression}, 0)"
        return Missing(
            call, None, f"An atomic function, such as `{call}`, in {lines} reads what the other thread has written."
        )
    call = f"{function or 'atomicExch'}(&{memory.expression}, ...)"
    return Missing(call, None, f"An atomic function, such as `{call}`, in {lines} lets no update get lost.")


def _fence(first: KernelRaceAccess, second: KernelRaceAccess, without_fence: str) -> Missing:
    call = "__threadfence()"
    first_line, second_line = _names_of_lines(first, second)
    early = f"`{call}` between {first_line} and the atomic function that hands the memory over"
    late = f"`{call}` between the atomic function that takes the memory and {second_line}"
    if without_fence == "first":
        return Missing(call, first.line, f"The thread that hands the memory over lacks a fence: {early}.")
    if without_fence == "second":
        return Missing(call, second.line, f"The thread that takes the memory lacks a fence: {late}.")
    return Missing(call, second.line, f"Two fences order them: {early}, and {late}.")


def _scope(first: KernelRaceAccess, second: KernelRaceAccess) -> Missing:
    names = _names_of_lines(first, second)
    for access, line in zip((first, second), names, strict=True):
        found = _OF_BLOCK.search(access.source)
        if found is not None:
            name = f"{found[1]}()"
            sentence = f"`{found[0]}()` in {line} needs device scope: `{name}` holds for all blocks of the device."
            return Missing(name, None, sentence)
    sentence = (
        f"What orders {names[0]} and {names[1]} holds for one block, and needs device scope: a function whose "
        "name does not end with `_block`, or `cuda::thread_scope_device`."
    )
    return Missing("device scope", None, sentence)


def _has_two_files(first: KernelRaceAccess, second: KernelRaceAccess) -> bool:
    return first.line is not None and second.line is not None and first.line.filename != second.line.filename


def _names_of_lines(first: KernelRaceAccess, second: KernelRaceAccess) -> tuple[str, str]:
    """Return the lines of two accesses in words, with their files if the files differ."""

    def name(access: KernelRaceAccess) -> str:
        if access.line is None:
            return "an unknown line"
        of_file = f" of {access.line.filename}" if _has_two_files(first, second) else ""
        return f"line {access.line.line}{of_file}"

    return name(first), name(second)
