"""NumPy functions, run on the memory of emulated devices as work of the current stream."""

from __future__ import annotations

import contextlib
import functools
import warnings
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from tcuda import _core
from tcuda._process.asleep import asleep, refuse_asleep
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import backend, call_when_ready, cuda, is_initialized
from tcuda._process.ledger import ledger
from tcuda.emulation.devices import memory
from tcuda.emulation.devices.operands import Operands, Results, StandIns, alias_of, parts
from tcuda.emulation.devices.strided import ARRAYS, KINDS, Strided, of_class, too_large
from tcuda.emulation.numbers import bfloat16
from tcuda.emulation.numbers.floating_point import quietly
from tcuda.emulation.work import accesses, active_trace, passed_marks, selected_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy.typing as npt

    from tcuda.emulation.runtime import EmulatedRuntime
    from tcuda.emulation.runtime.accesses import Accesses
    from tcuda.emulation.runtime.late_runtime import LateRuntime


_runtime = cast("EmulatedRuntime", cuda)
"""The runtime in use, which is the emulated runtime: these arrays exist on emulated devices only."""


_TOO_LARGE = ("Maximum allowed", "array is too big", "iterator is too large")
"""The beginnings of NumPy's messages about an array that would need more bytes than there are addresses."""
MOST_INPUTS = 3
"""The most inputs of a function for :func:`at_once`."""


WORK = _core.EmulatedWork()
"""Begins and ends work that is done in the call that launches the work."""


def _prepare_work() -> None:
    """Let :data:`WORK` use the runtime in use. On CUDA, the module may be imported, and nothing uses :data:`WORK`."""
    prepare = getattr(_runtime, "prepareWork", None)
    if prepare is not None:
        prepare(WORK, (active_trace.in_progress, memory.allocators, asleep))


call_when_ready(_prepare_work)
call_in_child(WORK.forget)
if is_initialized():
    _prepare_work()


def new(shape: int | Sequence[int], dtype: npt.DTypeLike = float, order: str = "C") -> Strided:
    """Return a new array on the current device, with uninitialised elements."""
    made: Strided | None = ARRAYS.create(shape, dtype, ledger, WORK) if order == "C" else None
    return Strided.array_type(shape, dtype, None, None, order) if made is None else made


def new_each(
    layouts: Sequence[tuple[Sequence[int], npt.DTypeLike, str]], template: Strided | None = None
) -> list[Strided]:
    """Return a new array for each shape, dtype and order, of the class of ``template``.

    Raises:
        OutOfMemoryError: The device has no room for all arrays. No array is left then.
    """
    arrays: list[Strided] = []
    try:
        for shape, dtype, order in layouts:
            arrays.append(Strided.array_type(shape, dtype, None, None, order))
            if template is not None:
                arrays[-1] = of_class(template, arrays[-1])
    except BaseException:
        discard(arrays)
        raise
    return arrays


def capturing() -> bool:
    """Return whether the current stream captures. Such a stream records work, which a launch of the graph executes."""
    return _runtime.capturing(backend.current_stream)


def defers() -> bool:
    """Return whether the work of the current stream is done later than in the call that launches the work."""
    return _runtime.defers(backend.current_stream)


def with_contents() -> AbstractContextManager[None]:
    """Wait for the current stream, and return a scope in which work is done at once.

    The scope is for work that needs what arrays contain: CuPy waits for the stream there, too. Call this function only
    if :func:`defers` and not :func:`capturing`.
    """
    return cast("LateRuntime", _runtime).prompt(backend.current_stream().ptr)


def memory_of(array: Strided) -> npt.NDArray[Any]:
    """Return a NumPy array over the memory of ``array``, for work that is launched now.

    If the work is deferred, the NumPy array does not keep the memory alive.
    """
    return alias_of(array) if _runtime.defers(backend.current_stream) else array._host


def launch(
    work: Callable[..., object],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    reads: Sequence[Strided] = (),
    writes: Sequence[Strided] = (),
    fresh: Sequence[Strided] = (),
    flops: int = 0,
    name: str | None = None,
    rehearsed: bool = False,
    told: tuple[Callable[..., object], Sequence[Any], Mapping[str, Any] | None] | None = None,
) -> None:
    """Run ``work`` as work of the current stream.

    Args:
        work: The function that computes. The function must hold no array of a device.
        args: The arguments of ``work``, with arrays of the device in the places of NumPy arrays.
        kwargs: The keyword arguments of ``work``, with arrays of the device in the places of NumPy arrays.
        reads: The arrays that the work reads.
        writes: The arrays that the work writes.
        fresh: The new arrays that the work writes. The arrays are discarded if the launch fails.
        flops: The number of floating-point operations, for the model of the time.
        name: The name of the work; the name of ``work`` if None.
        rehearsed: Whether to call ``work`` with zeros if the work is deferred, so that errors are raised now and not
            when the work is done.
        told: The function and its arguments that a race detector learns of; those of the work if None.

    Raises:
        ValueError: An array is not on the current device.
        AcceleratorError: The current stream refuses work now.
    """
    try:
        begun = WORK.begin()
        if begun is not None:
            timeline, device = begun
            nbytes = 0
            for array in (*reads, *writes, *fresh):
                if array._block.device != device:
                    _refuse_device(array._block.device, device)
                nbytes += array._host.nbytes
            _quietly(work, *Operands().take(args, kwargs))
            WORK.end(timeline, nbytes, flops)
            return
        deferred = _runtime.defers(backend.current_stream)
        if rehearsed and deferred:
            _quietly(work, *StandIns().take(args, kwargs))
        current = cuda.getDevice()
        nbytes, addresses = 0, []
        for array in (*reads, *writes, *fresh):
            block, size = array._block, array._host.nbytes
            if block.device != current:
                _refuse_device(block.device, current)
            if asleep:
                refuse_asleep((block.ptr,))
            if size:
                nbytes += size
                addresses.append(block.ptr)
        arguments, options = (Operands(alias_of) if deferred else Operands()).take(args, kwargs)
        quietly = _silently if rehearsed and _runtime.is_late else _quietly
        todo: Callable[[], object] = functools.partial(quietly, work, arguments, options)
        regions: Accesses = ()
        if deferred or _runtime.races.detector is not None:
            function, given, named = told or (work, args, kwargs)
            if selected_elements.depends_on_contents(function, given, named or {}):
                todo = accesses.Measured(todo, _has_detector, (function, given, named or {}), reads, (*writes, *fresh))
                regions = todo.accesses
            else:
                regions = accesses.of_call(function, given, named, reads, (*writes, *fresh))
        if _runtime.contents.unwritten is not None:
            function, given, named = told or (work, args, kwargs)
            call = function, given, named or {}
            todo = passed_marks.Passing(
                _runtime.contents.unwritten, todo, call, reads, (*writes, *fresh), deferred=deferred
            )
        _runtime.launch(
            backend.current_stream(current).ptr,
            todo,
            nbytes,
            flops,
            name=name or _name_of(work),
            addresses=addresses,
            accesses=regions,
        )
    except BaseException:
        discard(fresh)
        raise


def at_once(
    function: Callable[..., Any],
    fallback: Callable[..., Any],
    inputs: int = 1,
    kinds: dict[tuple[Any, ...], np.dtype[Any]] | None = None,
) -> Callable[..., Any]:
    """Return a callable that does the work of ``function`` for usual operands, and hands others to ``fallback``.

    The callable is in the core, because a small operation takes less time than a few functions in Python.

    Args:
        function: A function that gives one number for one array, or a function of each element with one result.
        fallback: Called with the inputs and then the outputs.
        inputs: The number of inputs.
        kinds: For a function of each element, the dtype of the result by the dtypes of the inputs, to which
            ``fallback`` adds entries. A Python scalar has its type in place of a dtype.
    """
    return _core.emulated_operation(
        function,
        inputs,
        kinds is None,
        fallback,
        KINDS if kinds is None else kinds,
        _raise_too_large,
        quietly,
        WORK,
        ARRAYS,
    )


def is_watched() -> bool:
    """Return whether somebody asks what work reads and writes."""
    return _runtime.races.detector is not None or _runtime.contents.unwritten is not None


def _has_detector() -> bool:
    return _runtime.races.detector is not None


@contextlib.contextmanager
def described(array: Strided) -> Iterator[None]:
    """Tell the check of unwritten memory that the copies of the scope copy the elements of ``array``."""
    unwritten = _runtime.contents.unwritten
    if unwritten is None:
        yield
        return
    unwritten.describe(array._host)
    try:
        yield
    finally:
        unwritten.describe(None)


def discard(arrays: Iterable[Strided]) -> None:
    """Free the memory of ``arrays``, which an error has left unfinished and whose traceback may keep them alive."""
    for array in arrays:
        array._block.free()


@contextlib.contextmanager
def unfinished(array: Strided) -> Iterator[None]:
    """Discard ``array``, which the scope fills, if the scope raises an error."""
    try:
        yield
    except BaseException:
        discard([array])
        raise


def require_current_device(arrays: Iterable[Strided]) -> None:
    """Refuse arrays that work on the current device cannot reach.

    Raises:
        RuntimeError: The memory of an array is asleep.
        ValueError: An array is not on the current device.
    """
    current = cuda.getDevice()
    for array in arrays:
        if array._block.device != current:
            _refuse_device(array._block.device, current)
        if asleep:
            refuse_asleep((array._block.ptr,))


def _refuse_device(device: int, current: int) -> NoReturn:
    raise ValueError(
        f"Array device must be same as the current device: array device = {device} while current = {current}"
    )


def call(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    flops: Callable[[Sequence[Any], Any], int] | None = None,
) -> Any:
    """Call the NumPy function ``function`` and return its results as arrays of the current device.

    Results that are views of the memory of an argument stay views. Work of the stream stores all other results in new
    arrays. The shapes of the results are known only after the computation, so NumPy computes the results in memory of
    the host before the launch. If the work is deferred, NumPy computes with zeros now, and with the arguments when the
    work is done.

    Args:
        function: The function.
        args: The positional arguments, with arrays of the device in the places of NumPy arrays.
        kwargs: The keyword arguments; ``out`` is the array, or the tuple of arrays, to write to.
        flops: Called with the positional arguments and the result, as NumPy arrays; returns the number of
            floating-point operations.

    Returns:
        The results of ``function`` as arrays of the device; a scalar becomes an array without axes.
    """
    operands = StandIns() if _runtime.defers(backend.current_stream) else Operands()
    arguments, options = operands.take(args, kwargs)
    require_current_device(operands.arrays)
    told = function, args, kwargs
    for array in operands.arrays:
        if bfloat16.is_small(array._host.dtype):
            function = bfloat16.of_device(function, array._host.dtype)
            break
    out = (kwargs or {}).get("out")
    if out is not None:
        outs = out if isinstance(out, tuple) else (out,)
        _require_outputs(outs)
        work = 0 if flops is None else flops(arguments, options["out"])
        if not is_watched() and type(operands) is Operands:
            launch(function, args, kwargs, reads=operands.arrays, flops=work)
        else:
            reads = _without(operands.arrays, outs)
            launch(function, args, kwargs, reads=reads, writes=outs, flops=work, rehearsed=True, told=told)
        return out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if _runtime.contents.unwritten is not None and type(operands) is Operands:  # the contents are used now
        passed_marks.require_decided(_runtime.contents.unwritten, told[0], arguments, options)
    result = _quietly(function, arguments, options)
    work = 0 if flops is None else flops(arguments, result)
    results = Results(result, operands, views=False)
    return _store(results, operands, function, told, work)


def view(function: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
    """Call the NumPy function ``function``, whose results are views where possible.

    A view needs no work of the stream, and its array need not be on the current device.
    """
    operands = Operands()
    arguments, options = operands.take(args, kwargs)
    result = _called(function, arguments, options)
    if type(result) is np.ndarray and len(operands.arrays) == 1 and result is not operands.hosts[0]:
        array = operands.arrays[0]
        if array._block.holds(result):  # the most frequent result
            return type(array)._view_of(array, result)
    results = Results(result, operands, views=True)
    if not results.fresh:
        return results.remade(())
    require_current_device(operands.arrays)
    return _store(results, operands, function, (function, args, kwargs))


def modify(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    reads_target: bool = False,
) -> None:
    """Call the NumPy function ``function``, which writes to its first argument and returns nothing.

    Args:
        function: The function.
        args: The positional arguments, with arrays of the device in the places of NumPy arrays.
        kwargs: The keyword arguments, likewise.
        reads_target: Whether the function also reads the elements that it writes.
    """
    if not isinstance(args[0], Strided):
        raise TypeError(f"Unsupported type {type(args[0])}")
    operands = Operands()
    operands.take(args, kwargs)
    require_current_device(operands.arrays)
    reads = operands.arrays[0 if reads_target else 1 :]
    launch(function, args, kwargs, reads=reads, writes=operands.arrays[:1], rehearsed=True)


def _called(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call the NumPy function ``function``.

    Raises:
        OutOfMemoryError: The host has no memory for the result, or the result has more bytes than there are addresses.
    """
    try:
        return function(*args, **kwargs)
    except (MemoryError, ValueError) as error:
        _raise_too_large(function, error)
        raise


def _quietly(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call the NumPy function ``function`` as :func:`_called` does, without warnings of floating-point errors."""
    try:
        return quietly(function, *args, **kwargs)
    except (MemoryError, ValueError) as error:
        _raise_too_large(function, error)
        raise


def _raise_too_large(function: Callable[..., Any], error: Exception) -> None:
    """Raise ``OutOfMemoryError`` if ``error`` of ``function`` says that the host has no memory for the result."""
    if isinstance(error, MemoryError) or (isinstance(error, ValueError) and str(error).startswith(_TOO_LARGE)):
        raise too_large(f"what {_name_of(function)}() returns") from error


def _silently(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call the NumPy function ``function`` without the warnings that a rehearsal has given before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _quietly(function, args, kwargs)


def _name_of(function: Callable[..., object]) -> str:
    name: str = getattr(function, "__name__", "kernel")
    owner = getattr(function, "__self__", None)
    return f"{owner.__name__}.{name}" if isinstance(owner, np.ufunc) else name.strip("_")


def _require_outputs(outs: Sequence[Any]) -> None:
    if any(not isinstance(array, Strided) for array in outs):
        raise TypeError("Output arguments type must be an array of the device")


def _without(arrays: Sequence[Strided], outs: Sequence[Strided]) -> list[Strided]:
    """Return ``arrays`` without one item for each of ``outs``, which are among them."""
    rest = list(arrays)
    for out in outs:
        for place, array in enumerate(rest):
            if array is out:
                del rest[place]
                break
    return rest


def _store(
    results: Results,
    operands: Operands,
    function: Callable[..., Any],
    told: tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any] | None],
    flops: int = 0,
) -> Any:
    """Return ``results``, with new arrays for the results without memory.

    Args:
        results: The results that ``function`` gave for its arguments.
        operands: The operands of ``function``.
        function: The function.
        told: The function and its arguments that a race detector learns of.
        flops: The number of floating-point operations.
    """
    arrays = new_each([(host.shape, host.dtype, "F" if host.flags.fnc else "C") for host in results.fresh])
    name = _name_of(function)
    if _runtime.defers(backend.current_stream):
        aliases = [alias_of(array) for array in arrays]
        work = functools.partial(_compute_into, aliases, results.places, function)
        launch(work, *told[1:], reads=operands.arrays, fresh=arrays, flops=flops, name=name, told=told)
    else:
        hosts = [array._host for array in arrays]
        work = functools.partial(_copy_into, hosts, results.fresh)
        launch(work, reads=operands.arrays, fresh=arrays, flops=flops, name=name, told=told)
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
