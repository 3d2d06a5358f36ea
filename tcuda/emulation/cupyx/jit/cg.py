"""Cooperative groups for kernels in Python (``cupyx.jit.cg``)."""

from __future__ import annotations

from tcuda.emulation.cupyx.jit import indexing
from tcuda.emulation.cupyx.jit.types import BOOL, DIM3, UINT32, UINT64, VOID, Array, Pointer, Type
from tcuda.emulation.cupyx.jit.values import Code, Intrinsic, Scope, Value, cast, code_of

_HEADER = "cooperative_groups.h"


class _Group(Type):
    """A group of threads.

    Args:
        name: The class in C++.
        methods: The types of the results of the methods by name.
        cooperative: Whether the threads can meet in a cooperative launch only.
    """

    def __init__(self, name: str, methods: dict[str, Type], *, cooperative: bool = False) -> None:
        self.name = f"cooperative_groups::{name}"
        self.methods = methods
        self._cooperative = cooperative

    def method(self, value: Code, name: str) -> Intrinsic | None:
        """Return the method ``name`` of the group ``value``; None if groups have no such method."""
        if name not in self.methods:
            return None

        def translate(scope: Scope) -> Value:
            if name == "sync" and self._cooperative:
                scope.launch_cooperatively()
            return Code(f"{value.text}.{name}()", self.methods[name])

        return Intrinsic(name, translate)


_BLOCK = _Group(
    "thread_block",
    {
        "sync": VOID,
        **dict.fromkeys(["thread_rank", "num_threads", "size"], UINT32),
        **dict.fromkeys(["group_index", "thread_index", "dim_threads", "group_dim"], DIM3),
    },
)

_GRID = _Group(
    "grid_group",
    {
        "sync": VOID,
        "is_valid": BOOL,
        **dict.fromkeys(["thread_rank", "block_rank", "num_threads", "num_blocks", "size"], UINT64),
        **dict.fromkeys(["dim_blocks", "block_index", "group_dim"], DIM3),
    },
    cooperative=True,
)


def _this_thread_block(scope: Scope) -> Value:
    """Return the group of the threads of the block."""
    scope.include(_HEADER)
    return Code("cooperative_groups::this_thread_block()", _BLOCK)


def _this_grid(scope: Scope) -> Value:
    """Return the group of the threads of the launch."""
    scope.include(_HEADER)
    return Code("cooperative_groups::this_grid()", _GRID)


def _waiting(group: Code) -> Code:
    return Code(f"{group.text}.sync()", VOID)


def _group(value: Value, mode: str) -> Code:
    group = code_of(value, mode)
    if not isinstance(group.type, _Group):
        raise ValueError("group must be a valid cooperative group")
    return group


def _sync(scope: Scope, group: Value) -> Value:
    """Wait for all threads of ``group``. As in CuPy, only the method ``sync()`` of a grid lets blocks run together."""
    return _waiting(_group(group, scope.mode))


def _wait(scope: Scope, group: Value) -> Value:
    """Wait for all copies of ``group``."""
    return _waiting(_group(group, scope.mode))


def _wait_prior(scope: Scope, group: Value, step: Value) -> Value:
    """Wait for the copies of ``group`` but the last ``step`` ones. Emulated devices wait for all copies."""
    if isinstance(step, Code):
        raise ValueError("step must be a compile-time constant")
    return _waiting(_group(group, scope.mode))


def _memcpy_async(
    scope: Scope,
    group: Value,
    dst: Value,
    dst_idx: Value,
    src: Value,
    src_idx: Value,
    size: Value,
    *,
    aligned_size: Value | None = None,
) -> Value:
    """Copy ``size`` bytes to ``dst[dst_idx]`` from ``src[src_idx]``, each thread of ``group`` some elements."""
    if isinstance(aligned_size, Code):
        raise ValueError("aligned_size must be a compile-time constant")
    places = []
    for array, index in ((dst, dst_idx), (src, src_idx)):
        if not isinstance(code_of(array, scope.mode).type, (Array, Pointer)):
            raise TypeError("dst/src must be of array type.")
        places.append(code_of(indexing.element_of(array, index, scope.mode), scope.mode))
    count = cast(size, UINT32, "same_kind", scope.mode)
    threads = _group(group, scope.mode).text
    return Code(f"tcuda::jit::copy_by({threads}, &{places[0].text}, &{places[1].text}, {count.text})", VOID)


this_grid = Intrinsic("cg.this_grid", _this_grid)
this_thread_block = Intrinsic("cg.this_thread_block", _this_thread_block)
sync = Intrinsic("cg.sync", _sync)
wait = Intrinsic("cg.wait", _wait)
wait_prior = Intrinsic("cg.wait_prior", _wait_prior)
memcpy_async = Intrinsic("cg.memcpy_async", _memcpy_async)

__all__ = ["memcpy_async", "sync", "this_grid", "this_thread_block", "wait", "wait_prior"]


def __dir__() -> list[str]:
    return sorted(__all__)
