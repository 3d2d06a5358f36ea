"""The functions and variables of ``cupyx.jit`` for kernels, beside groups, reductions and algorithms."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

from tcuda.emulation.cupyx.jit import indexing, operations
from tcuda.emulation.cupyx.jit.types import (
    DIM3,
    INT32,
    INT64,
    UINT32,
    VOID,
    Array,
    Pointer,
    Scalar,
    Structure,
    type_from,
)
from tcuda.emulation.cupyx.jit.values import (
    Code,
    Constant,
    Intrinsic,
    Items,
    Scope,
    Value,
    cast,
    code_of,
    require_arguments,
)

_FULL_MASK = 0xFFFFFFFF
_WIDTHS = (1, 2, 4, 8, 16, 32)
_ATOMIC: dict[str, tuple[str, str]] = {
    "add": ("atomicAdd", "int32 uint32 uint64 float16 float32 float64"),
    "sub": ("atomicSub", "int32 uint32"),
    "exch": ("atomicExch", "int32 uint32 uint64 float32"),
    "min": ("atomicMin", "int32 uint32 uint64"),
    "max": ("atomicMax", "int32 uint32 uint64"),
    "inc": ("atomicInc", "uint32"),
    "dec": ("atomicDec", "uint32"),
    "cas": ("atomicCAS", "int32 uint16 uint32 uint64"),
    "and": ("atomicAnd", "int32 uint32 uint64"),
    "or": ("atomicOr", "int32 uint32 uint64"),
    "xor": ("atomicXor", "int32 uint32 uint64"),
}
"""The name in CUDA C++ and the types of each atomic function."""
_SHUFFLED = ["int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


@dataclass(frozen=True)
class Range:
    """The numbers over which a loop runs.

    Attributes:
        start: The first number.
        stop: The number after the last one.
        step: The distance of the numbers.
        type: The type of the variable of the loop.
        up: Whether the numbers grow; None if the kernel decides.
        unroll: How often the compiler unrolls the loop; True for all numbers, None if the compiler decides.
    """

    start: Code
    stop: Code
    step: Code
    type: Scalar
    up: bool | None
    unroll: int | bool | None = None


def range_of(scope: Scope, *args: Value, unroll: Value | None = None) -> Range:
    """Return the numbers of a loop. The arguments are those of Python's ``range``.

    Args:
        scope: The function that is being translated.
        args: The first number, the number after the last one and the distance.
        unroll: How often the compiler unrolls the loop: a number, True for all numbers, False for no unrolling.
    """
    if not args:
        raise TypeError("range expected at least 1 argument, got 0")
    if len(args) > 3:
        raise TypeError(f"range expected at most 3 arguments, got {len(args)}")
    first, last, step = (Constant(0), args[0], Constant(1)) if len(args) == 1 else (*args, Constant(1))[:3]
    times = None
    if unroll is not None:
        if not all(isinstance(value, Constant) for value in (first, last, step, unroll)):
            raise TypeError("loop unrolling requires constant start, stop, step and unroll value")
        assert isinstance(unroll, Constant)
        times = unroll.value
        if not isinstance(times, int):
            raise TypeError(f"unroll value expected to be of type int, got {type(times).__name__}")
        times = 1 if times is False else times
        if times is not True and not 0 < times < 2**31:
            warnings.warn(f"unroll={times} is ignored: the number is not between 1 and 2147483647", stacklevel=2)
    codes = [code_of(value, scope.mode) for value in (first, last, step)]
    types = [code.type for code in codes if isinstance(code.type, Scalar) and code.type.dtype.kind in "iu"]
    if len(types) != len(codes):
        raise TypeError("range supports only for integer type.")
    up = step.value >= 0 if isinstance(step, Constant) else True if types[2].dtype.kind == "u" else None
    start, stop, distance = codes
    return Range(start, stop, distance, INT64 if scope.mode == "numpy" else types[1], up, times)


def _length(scope: Scope, *args: Value) -> Value:
    """Return the length of the first axis."""
    require_arguments("len", args, 1, 1)
    if isinstance(args[0], Constant):
        return Constant(len(args[0].value))
    array = code_of(args[0], scope.mode)
    if not isinstance(array.type, Array):
        raise TypeError("len() supports only array type")
    if not array.type.ndim:
        raise TypeError("len() of unsized array")
    return Code(f"static_cast<long long>({array.text}.shape()[0])", INT64)


def _extreme(name: str, ufunc: str) -> Intrinsic:
    def translate(scope: Scope, *args: Value) -> Value:
        """Return the least or the greatest of the arguments."""
        if len(args) < 2:
            raise TypeError(f"{name}() expects at least 2 arguments, got {len(args)}")
        return functools.reduce(lambda x, y: operations.call(ufunc, (x, y), scope.mode), args)

    return Intrinsic(name, translate)


BUILTINS: dict[Any, Intrinsic] = {
    len: Intrinsic("len", _length),
    max: _extreme("max", "maximum"),
    min: _extreme("min", "minimum"),
    abs: Intrinsic("abs", lambda scope, x: operations.call("absolute", (x,), scope.mode), "Return the absolute value."),
}
"""Functions of Python that kernels can call."""


def _range(scope: Scope, *args: Value, unroll: Value | None = None) -> Value:
    """Return the numbers of a loop. The compiler unrolls the loop ``unroll`` times: True for all, False for not."""
    raise TypeError("A range can only be the iterator of a for loop.")


range_ = Intrinsic("range", _range)
RANGES: tuple[Any, ...] = (range, range_)
"""The functions over whose results a loop can run."""

threadIdx = Code("threadIdx", Structure("uint3", DIM3.members))
blockIdx = Code("blockIdx", Structure("uint3", DIM3.members))
blockDim = Code("blockDim", DIM3)
gridDim = Code("gridDim", DIM3)
warpsize = Code("warpSize", INT32)


def _place(name: str, form: str) -> Intrinsic:
    def translate(scope: Scope, ndim: Value) -> Value:
        number = ndim.value if isinstance(ndim, Constant) else None
        if not isinstance(number, int):
            raise TypeError("ndim must be an integer")
        if number not in (1, 2, 3):
            raise ValueError("Only ndim=1,2,3 are supported")
        items = tuple(Code(f"({form.format(axis)})", UINT32) for axis in "xyz"[:number])
        return items[0] if number == 1 else Items(items)

    doc = f"Return {form.format('x')}, and for 2 or 3 axes a tuple."
    return Intrinsic(name, translate, doc)


grid = _place("grid", "threadIdx.{0} + blockIdx.{0} * blockDim.{0}")
gridsize = _place("gridsize", "blockDim.{0} * gridDim.{0}")


def _syncthreads(scope: Scope) -> Value:
    """Wait for all threads of the block."""
    return Code("__syncthreads()", VOID)


def _syncwarp(scope: Scope, *, mask: Value | None = None) -> Value:
    """Wait for the threads of the warp that ``mask`` names."""
    if mask is None:
        return Code("__syncwarp()", VOID)
    if isinstance(mask, Constant) and not 0 <= mask.value <= _FULL_MASK:
        raise ValueError("mask is out of range")
    return Code(f"__syncwarp({cast(mask, INT32, 'same_kind', scope.mode).text})", VOID)


def _laneid(scope: Scope) -> Value:
    """Return the number of the thread in its warp."""
    return Code("tcuda::lane()", UINT32)


def _shared_memory(scope: Scope, dtype: Value, size: Value, alignment: Value | None = None) -> Value:
    """Return an array in shared memory with one axis; ``size`` is None for the dynamic shared memory of the launch."""
    element, count, multiple = (_constant(value) for value in (dtype, size, alignment or Constant(None)))
    for name, value in (("size", count), ("alignment", multiple)):
        if value is not None and not isinstance(value, int):
            raise TypeError(f"{name} of shared_memory() must be an integer or None, not {value!r}.")
    kind = type_from(element)
    return Code(scope.declare_shared(kind, count, multiple), Pointer(kind))


def _constant(value: Value) -> Any:
    if not isinstance(value, Constant):
        raise TypeError("The arguments of shared_memory() are constants.")
    return value.value


def _atomic(name: str) -> Intrinsic:
    function, dtypes = _ATOMIC[name]

    def translate(scope: Scope, array: Value, index: Value, value: Value, alt_value: Value | None = None) -> Value:
        target = code_of(indexing.element_of(array, index, scope.mode), scope.mode)
        kind = target.type
        if not isinstance(kind, Scalar) or kind.dtype.name not in dtypes.split():
            raise TypeError(f"`{function}` does not support {kind} input.")
        if (alt_value is not None) != (name == "cas"):
            raise TypeError(f"atomic_{name}() takes {'four' if name == 'cas' else 'three'} arguments.")
        values = [value] if alt_value is None else [value, alt_value]
        passed = [cast(each, kind, "same_kind", scope.mode).text for each in values]
        return Code(f"{function}(&{target.text}, {', '.join(passed)})", kind)

    return Intrinsic(f"atomic_{name}", translate, f"Call ``{function}`` with an element of an array: {dtypes}.")


atomic_add, atomic_sub, atomic_exch, atomic_min = map(_atomic, ("add", "sub", "exch", "min"))
atomic_max, atomic_inc, atomic_dec, atomic_cas = map(_atomic, ("max", "inc", "dec", "cas"))
atomic_and, atomic_or, atomic_xor = map(_atomic, ("and", "or", "xor"))


def _shuffle(name: str) -> Intrinsic:
    function = f"__{name}"

    def translate(scope: Scope, mask: Value, var: Value, val_id: Value, *, width: Value | None = None) -> Value:
        value = code_of(var, scope.mode)
        if not isinstance(value.type, Scalar) or value.type.dtype.name not in _SHUFFLED:
            raise TypeError(f"`{function}` does not support {value.type} input.")
        lanes = mask.value if isinstance(mask, Constant) else None
        if not isinstance(lanes, int):
            raise TypeError("mask must be an integer")
        if not 0 <= lanes <= _FULL_MASK:
            raise ValueError("mask is out of range")
        if isinstance(width, Constant) and width.value not in _WIDTHS:
            raise ValueError("width needs to be power of 2")
        other = cast(val_id, UINT32 if name in ("shfl_up_sync", "shfl_down_sync") else INT32, "same_kind", scope.mode)
        members = cast(width or Constant(32), INT32, "same_kind", scope.mode)
        return Code(f"{function}({lanes:#x}u, {value.text}, {other.text}, {members.text})", value.type)

    return Intrinsic(name, translate, f"Call ``{function}``: {', '.join(_SHUFFLED)}.")


shfl_sync, shfl_up_sync, shfl_down_sync, shfl_xor_sync = map(
    _shuffle, ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
)
syncthreads = Intrinsic("syncthreads", _syncthreads)
syncwarp = Intrinsic("syncwarp", _syncwarp)
laneid = Intrinsic("laneid", _laneid)
shared_memory = Intrinsic("shared_memory", _shared_memory)
