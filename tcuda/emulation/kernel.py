"""Kernels: NumPy's functions run on the memory of emulated devices, as work on the current stream."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tcuda._lazy import cuda
from tcuda.emulation.operands import Aliases, Operands, Results, StandIns, parts
from tcuda.emulation.strided import Strided, too_large

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from tcuda._runtime.emulated import EmulatedRuntime
    from tcuda.emulation.ndarray import ndarray


_runtime = cast("EmulatedRuntime", cuda)
"""The runtime in use: there are arrays here on emulated devices only."""


_TOO_LARGE = ("Maximum allowed", "array is too big", "iterator is too large")
"""How NumPy begins to say that an array would need more bytes than there are addresses."""


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


def capturing() -> bool:
    """Return whether the current stream captures: work is then recorded, and done when the graph is launched."""
    return _runtime.capturing()


def memory_of(array: Strided) -> npt.NDArray[Any]:
    """Return ``array`` for the work of a kernel that is launched now: an array of NumPy's over the same memory.

    If the work is recorded, it is one that does not keep the memory alive.
    """
    host: npt.NDArray[Any] = _operands().host(array)
    return host


def launch(
    work: Callable[..., object],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    reads: Iterable[Strided] = (),
    writes: Iterable[Strided] = (),
    fresh: Sequence[Strided] = (),
    flops: int = 0,
    name: str | None = None,
) -> None:
    """Run ``work`` as a kernel on the current stream.

    Args:
        work: What it does to the memory. No array of a device may be part of it.
        args: Its arguments, with arrays of the device in place of NumPy's.
        kwargs: Its keyword arguments, likewise.
        reads: The arrays that it reads.
        writes: The arrays that it writes.
        fresh: The arrays that it writes and that are of no use to anybody if it fails.
        flops: The floating-point operations that it does, for the model of its time.
        name: What it is called; as ``work`` is if None.

    Raises:
        ValueError: An array is not on the current device.
        AcceleratorError: The current stream takes no work now.
    """
    arrays = [*reads, *writes, *fresh]
    with unfinished(*fresh):
        require_current_device(arrays)
        arguments, options = _operands().take(args, kwargs)
        _runtime.launch(
            functools.partial(_quietly, work, arguments, options),
            sum(array._host.nbytes for array in arrays),
            flops,
            name=name or _name_of(work),
            addresses=[array._block.ptr for array in arrays if array._host.size],
        )


def rehearse(
    function: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any] | None, *fresh: Strided
) -> None:
    """Find out whether ``function`` refuses its arguments, if they will otherwise be seen by a graph only.

    Args:
        function: The function.
        args: Its arguments, with arrays of the device in place of NumPy's.
        kwargs: Its keyword arguments, likewise.
        fresh: The arrays that are of no use to anybody if it fails.
    """
    if capturing():
        with unfinished(*fresh):
            _quietly(function, *StandIns().take(args, kwargs))


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
    shapes being known only then, NumPy has computed them before, in memory of the host. In a capture it has computed
    with zeros, and computes with the arguments themselves whenever the graph is launched.

    Args:
        function: The function.
        args: Its positional arguments, with arrays of the device in place of NumPy's.
        kwargs: Its keyword arguments, of which ``out`` is the array, or the tuple of arrays, that it writes to.
        flops: Called with the positional arguments and the result, both NumPy's, it returns the floating-point
            operations.

    Returns:
        What ``function`` returned, arrays and scalars alike as arrays of the device.
    """
    operands = StandIns() if capturing() else Operands()
    arguments, options = operands.take(args, kwargs)
    require_current_device(operands.arrays)
    out = (kwargs or {}).get("out")
    if out is not None:
        _require_outputs(out)
        rehearse(function, args, kwargs)
        work = 0 if flops is None else flops(arguments, options["out"])
        launch(function, args, kwargs, reads=operands.arrays, flops=work)
        return out[0] if isinstance(out, tuple) and len(out) == 1 else out
    result = _quietly(function, arguments, options)
    results = Results(result, operands, views=False)
    return _store(results, operands, function, args, kwargs, 0 if flops is None else flops(arguments, result))


def view(function: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
    """Call ``function`` of NumPy's, whose results are views where possible.

    A view costs no kernel, and the current device does not matter for it.
    """
    operands = Operands()
    arguments, options = operands.take(args, kwargs)
    results = Results(_called(function, arguments, options), operands, views=True)
    if not results.fresh:
        return results.remade(())
    require_current_device(operands.arrays)
    return _store(results, operands, function, args, kwargs)


def modify(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> None:
    """Call ``function`` of NumPy's, which writes to its first argument and returns nothing."""
    if not isinstance(args[0], Strided):
        raise TypeError(f"Unsupported type {type(args[0])}")
    operands = Operands()
    operands.take(args, kwargs)
    require_current_device(operands.arrays)
    rehearse(function, args, kwargs)
    launch(function, args, kwargs, reads=operands.arrays[1:], writes=operands.arrays[:1])


def _operands() -> Operands:
    """Return what puts NumPy's arrays in place of those that a kernel launched now works on."""
    return Aliases() if capturing() else Operands()


def _quietly(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    # As on a device, a division by zero gives inf and warns nobody.
    with np.errstate(all="ignore"):
        return _called(function, args, kwargs)


def _called(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call ``function`` of NumPy's.

    Raises:
        OutOfMemoryError: The host has no memory for the result, or there are not that many addresses.
    """
    try:
        return function(*args, **kwargs)
    except MemoryError as error:
        raise too_large(f"what {_name_of(function)}() returns") from error
    except ValueError as error:
        if str(error).startswith(_TOO_LARGE):
            raise too_large(f"what {_name_of(function)}() returns") from error
        raise


def _name_of(function: Callable[..., object]) -> str:
    name: str = getattr(function, "__name__", "kernel")
    return name.strip("_")


def _require_outputs(out: Any) -> None:
    if any(not isinstance(array, Strided) for array in (out if isinstance(out, tuple) else (out,))):
        raise TypeError("Output arguments type must be an array of the device")


def _store(
    results: Results,
    operands: Operands,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    flops: int = 0,
) -> Any:
    """Return ``results``, which ``function`` gave for its arguments, with those that need memory in new arrays."""
    arrays = new_each((host.shape, host.dtype, "F" if host.flags.fnc else "C") for host in results.fresh)
    name = _name_of(function)
    if capturing():
        aliases = [memory_of(array) for array in arrays]
        work = functools.partial(_compute_into, aliases, results.places, function)
        launch(work, args, kwargs, reads=operands.arrays, fresh=arrays, flops=flops, name=name)
    else:
        hosts = [array._host for array in arrays]
        work = functools.partial(_copy_into, hosts, results.fresh)
        launch(work, reads=operands.arrays, fresh=arrays, flops=flops, name=name)
    return results.remade(arrays)


def _compute_into(
    targets: Sequence[npt.NDArray[Any]],
    places: Sequence[int],
    function: Callable[..., Any],
    /,
    *args: Any,
    **kwargs: Any,
) -> None:
    made = parts(function(*args, **kwargs))
    _copy_into(targets, [made[place] for place in places])


def _copy_into(targets: Sequence[npt.NDArray[Any]], sources: Sequence[Any]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target[...] = source
