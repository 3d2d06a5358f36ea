"""Kernels: NumPy's functions run on the memory of emulated devices, as work on the current stream."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from tcuda._lazy import cuda
from tcuda.emulation.operands import Operands, Results
from tcuda.emulation.strided import Strided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from tcuda._runtime.emulated import EmulatedRuntime
    from tcuda.emulation.ndarray import ndarray

T = TypeVar("T")


def new(shape: int | Sequence[int], dtype: npt.DTypeLike, order: str = "C") -> ndarray:
    """Return a new array on the current device, with whatever was in its memory before."""
    return cast("ndarray", Strided.array_type(shape, dtype, order=order))


def new_each(layouts: Iterable[tuple[Sequence[int], npt.DTypeLike, str]]) -> list[ndarray]:
    """Return a new array for each shape, dtype and order, or leave none where the memory does not suffice for all."""
    arrays: list[ndarray] = []
    for layout in layouts:
        with unfinished(*arrays):
            arrays.append(new(*layout))
    return arrays


def launch(
    work: Callable[[], T],
    *,
    reads: Iterable[Strided] = (),
    writes: Iterable[Strided] = (),
    fresh: Sequence[Strided] = (),
    flops: int = 0,
) -> T:
    """Run ``work`` as a kernel on the current stream.

    Args:
        work: What it does to the memory.
        reads: The arrays that it reads.
        writes: The arrays that it writes.
        fresh: The arrays that it writes and that are of no use to anybody if it fails.
        flops: The floating-point operations that it does, for the model of its time.

    Raises:
        ValueError: An array is not on the current device.
        AcceleratorError: The current stream takes no work now.
    """
    runtime = cast("EmulatedRuntime", cuda)
    arrays = [*reads, *writes, *fresh]
    # As on a device, a division by zero gives inf and warns nobody.
    with unfinished(*fresh), np.errstate(all="ignore"):
        require_current_device(arrays)
        return runtime.launch(work, sum(array.nbytes for array in arrays), flops)


@contextlib.contextmanager
def unfinished(*arrays: Strided) -> Iterator[None]:
    """Free the memory of ``arrays`` at once if the block fails: its traceback holds them, and may live for long."""
    try:
        yield
    except BaseException:
        for array in arrays:
            array._block.free()
        raise


def require_current_device(arrays: Iterable[Strided]) -> None:
    """Refuse arrays that a kernel on the current device cannot reach.

    Raises:
        ValueError: An array is not on the current device.
    """
    current = cuda.getDevice()
    for array in arrays:
        if array._block.device != current:
            raise ValueError(
                "Array device must be same as the current device: "
                f"array device = {array._block.device} while current = {current}"
            )


def call(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    flops: Callable[[Sequence[Any], Any], int] | None = None,
) -> Any:
    """Call ``function`` of NumPy's and return its results as arrays of the current device.

    Results that are views of an argument's memory stay views. All others are stored in new arrays by one kernel; their
    shapes being known only then, NumPy has computed them before, in memory of the host.

    Args:
        function: The function.
        args: Its positional arguments, with arrays of the device in place of NumPy's.
        kwargs: Its keyword arguments, of which ``out`` is the array, or the tuple of arrays, that it writes to.
        flops: Called with the positional arguments and the result, both NumPy's, it returns the floating-point
            operations.

    Returns:
        What ``function`` returned, arrays and scalars alike as arrays of the device.
    """
    operands = Operands()
    arguments, options = operands.take(args, kwargs)
    require_current_device(operands.arrays)
    out = (kwargs or {}).get("out")
    if out is not None:
        work = 0 if flops is None else flops(arguments, options["out"])
        return _call_into(out, lambda: function(*arguments, **options), operands, work)
    with np.errstate(all="ignore"):
        result = function(*arguments, **options)
    return _store(result, operands, 0 if flops is None else flops(arguments, result))


def view(function: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
    """Call ``function`` of NumPy's, whose results are views where possible.

    A view costs no kernel, and the current device does not matter for it.
    """
    operands = Operands()
    arguments, options = operands.take(args, kwargs)
    return _store(function(*arguments, **options), operands, views=True)


def modify(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> None:
    """Call ``function`` of NumPy's, which writes to its first argument and returns nothing."""
    operands = Operands()
    arguments, options = operands.take(args, kwargs)
    if not isinstance(args[0], Strided):
        raise TypeError(f"Unsupported type {type(args[0])}")
    launch(lambda: function(*arguments, **options), reads=operands.arrays[1:], writes=operands.arrays[:1])


def _call_into(out: Any, function: Callable[[], Any], operands: Operands, flops: int) -> Any:
    outs = out if isinstance(out, tuple) else (out,)
    if any(not isinstance(array, Strided) for array in outs):
        raise TypeError("Output arguments type must be an array of the device")
    launch(function, reads=operands.arrays, flops=flops)
    return out if len(outs) != 1 else outs[0]


def _store(result: Any, operands: Operands, flops: int = 0, *, views: bool = False) -> Any:
    results = Results(result, operands, views=views)
    if views and not results.fresh:
        return results.remade(())
    require_current_device(operands.arrays)
    arrays = new_each((host.shape, host.dtype, "F" if host.flags.fnc else "C") for host in results.fresh)

    def store() -> None:
        for array, host in zip(arrays, results.fresh, strict=True):
            array._host[...] = host

    launch(store, reads=operands.arrays, fresh=arrays, flops=flops)
    return results.remade(arrays)
