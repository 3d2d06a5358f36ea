"""Functions whose work on a device is captured once and replayed at each call."""

from __future__ import annotations

import functools
import importlib
import operator
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from tcuda._base.arguments import a_kind, kind_of
from tcuda._device import device, synchronize
from tcuda._process.lazy import backend, cuda
from tcuda.graphs._context import graph
from tcuda.graphs._cuda_graph import CUDAGraph
from tcuda.graphs._tree import Structure, describe, flatten, flatten_as, paths, unflatten
from tcuda.memory._pools import graph_pool_handle
from tcuda.streams import Stream, current_stream, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcuda.memory._pools import MemPool, PoolId

_R = TypeVar("_R")


@overload
def make_graphed_callables(
    callables: tuple[Callable[..., Any], ...],
    sample_args: tuple[tuple[Any, ...], ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolId | MemPool | None = None,
    capture_error_mode: Literal["global", "thread_local", "relaxed"] = "global",
    enable_annotations: bool = False,
) -> tuple[Callable[..., Any], ...]: ...


@overload
def make_graphed_callables(
    callables: Callable[..., _R],
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolId | MemPool | None = None,
    capture_error_mode: Literal["global", "thread_local", "relaxed"] = "global",
    enable_annotations: bool = False,
) -> Callable[..., _R]: ...


def make_graphed_callables(
    callables: Callable[..., Any] | tuple[Callable[..., Any], ...],
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolId | MemPool | None = None,
    capture_error_mode: Literal["global", "thread_local", "relaxed"] = "global",
    enable_annotations: bool = False,
) -> Callable[..., Any] | tuple[Callable[..., Any], ...]:
    """Return a function that replays the device work of a callable (``torch.cuda.make_graphed_callables``).

    Each callable runs a few times on a side stream, and then once more while a :class:`CUDAGraph` captures its work.
    The returned function takes arguments like those in ``sample_args``. A call does three things, all on the current
    stream: the call copies each argument into the sample array in the same place, replays the graph, and returns the
    arrays of the capture. So each call overwrites the results of the call before. The graph also reads and writes
    arrays that are not arguments, such as the weights of a model, at their addresses during the capture.

    In contrast to torch, no gradients are captured, because CuPy has no gradients.

    Args:
        callables: A callable, or a tuple of callables in the order in which they will run. The graphs of several
            callables share one pool of memory. The result of a callable then stays valid until the same callable, or a
            callable before it in the tuple, is called again.
        sample_args: A tuple with the arguments of the callable; for several callables, a tuple of such tuples. The
            arguments are arrays of the current device, of any shapes and dtypes, and tuples, lists, dicts and named
            tuples of such arrays. From now on, the graphs read these arrays: sample arrays that share memory share the
            memory at each call too. The callables run on these arrays, and values that a callable writes into them
            stay.
        num_warmup_iters: The number of times that each callable runs before its work is captured.
        allow_unused_input: Accepted for compatibility with torch, and ignored.
        pool: The pool of memory for the graphs: a :class:`MemPool`, or a handle from :func:`graph_pool_handle` or
            :meth:`CUDAGraph.pool`; a new pool if None.
        capture_error_mode: See :meth:`CUDAGraph.capture_begin`.
        enable_annotations: Must be False, as for :class:`graph`.

    Returns:
        A function for one callable; a tuple of functions for a tuple of callables. A call of such a function raises

        * ``TypeError`` if the arguments are not nested as the samples are, or an argument is not an array,
        * ``RuntimeError`` if an array has another shape than its sample (another dtype is allowed and converted), or
          two arrays are given for one that is in two places of the sample,
        * ``ValueError`` if an array is on another device.

        A call that raises changes nothing. If a callable returned other objects than arrays, each call returns the
        objects of the capture.

    Raises:
        NotImplementedError: ``enable_annotations`` is true.
        AssertionError: ``sample_args`` has an element that is not an array.
        TypeError: A callable cannot be called, ``sample_args`` is not a tuple, or ``sample_args`` for several callables
            is not a tuple of tuples.
        ValueError: ``callables`` and ``sample_args`` have different lengths, an array is not on the current device, or
            ``num_warmup_iters`` is negative.

    Example:
        >>> weights = xp.full((2, 2), 0.5)
        >>> def step(x):
        ...     return x @ weights
        >>> replayed = tcuda.make_graphed_callables(step, (xp.zeros((1, 2)),))
        >>> replayed(xp.array([[1.0, 3.0]]))  # copies the argument, replays the graph
        array([[2., 2.]])
    """
    functions, samples, names = _as_tuples(callables, sample_args)
    inputs = [_Inputs(*each) for each in zip(functions, samples, names, strict=True)]
    _warm_up(functions, samples, _count(num_warmup_iters))
    options = {
        "pool": graph_pool_handle() if pool is None else pool,
        "capture_error_mode": capture_error_mode,
        "enable_annotations": enable_annotations,
    }
    graphed = _capture(functions, samples, inputs, options)
    return tuple(graphed) if isinstance(callables, tuple) else graphed[0]


def _as_tuples(
    callables: Callable[..., Any] | tuple[Callable[..., Any], ...], sample_args: tuple[Any, ...]
) -> tuple[tuple[Callable[..., Any], ...], tuple[tuple[Any, ...], ...], list[str]]:
    """Return the callables, the arguments of each callable, and the name of these arguments in messages.

    Raises:
        TypeError: A callable cannot be called, or the arguments of a callable are not a tuple.
        ValueError: ``callables`` and ``sample_args`` have different lengths.
    """
    if not isinstance(sample_args, tuple):
        raise TypeError(f"sample_args must be a tuple, such as (x,) for one argument; got {a_kind(sample_args)}.")
    functions = callables if isinstance(callables, tuple) else (callables,)
    samples, names = (sample_args,), ["sample_args"]
    if isinstance(callables, tuple):
        samples, names = sample_args, [f"sample_args[{index}]" for index in range(len(sample_args))]
        if len(functions) != len(samples):
            raise ValueError(
                f"sample_args must have a tuple of arguments for each callable; got {len(samples)} for "
                f"{len(functions)} callables."
            )
    for function in functions:
        if not callable(function):
            raise TypeError(f"callables must be a callable or a tuple of callables; got {a_kind(function)}.")
    for sample, name in zip(samples, names, strict=True):
        if not isinstance(sample, tuple):
            raise TypeError(f"{name} must be a tuple, such as (x,) for one argument; got {a_kind(sample)}.")
    return functions, samples, names


def _count(num_warmup_iters: int) -> int:
    try:
        count = operator.index(num_warmup_iters)
    except TypeError:
        raise TypeError(f"num_warmup_iters must be an integer; got {a_kind(num_warmup_iters)}.") from None
    if count < 0:
        raise ValueError(f"num_warmup_iters must be 0 or more; got {count}.")
    return count


def _warm_up(functions: Sequence[Callable[..., Any]], samples: Sequence[tuple[Any, ...]], count: int) -> None:
    """Run each function ``count`` times, because libraries do extra work at their first use."""
    synchronize()
    side = Stream()
    side.wait_stream(current_stream())
    with stream(side):
        for function, args in zip(functions, samples, strict=True):
            for _ in range(count):
                function(*args)
    synchronize()


def _capture(
    functions: Sequence[Callable[..., Any]],
    samples: Sequence[tuple[Any, ...]],
    inputs: Sequence[_Inputs],
    options: Mapping[str, Any],
) -> list[Callable[..., Any]]:
    """Return a function that replays each function. If a capture fails, reset all graphs that were captured."""
    graphs: list[CUDAGraph] = []
    graphed: list[Callable[..., Any]] = []
    try:
        for function, args, its_inputs in zip(functions, samples, inputs, strict=True):
            captured = CUDAGraph()
            graphs.append(captured)
            with graph(captured, **options):
                outputs = function(*args)
            graphed.append(_graphed(function, captured, its_inputs, outputs))
            del outputs
    except BaseException:
        graphed.clear()  # the traceback would keep the arrays of these functions alive
        for captured in graphs:
            captured.reset()
        raise
    return graphed


def _graphed(function: Callable[..., Any], captured: CUDAGraph, inputs: _Inputs, outputs: Any) -> Callable[..., Any]:
    leaves, structure = flatten(outputs)

    # `updated=()` copies no attributes of the callable: the attributes may change later, and copies would not.
    @functools.wraps(function, updated=())
    def graphed(*args: Any) -> Any:
        with device(inputs.device):
            inputs.fill(args)
            captured.replay()
        return unflatten(structure, leaves)

    return graphed


def _view(array: Any) -> tuple[Any, ...]:
    """Return what two arrays of one shape have in common if they have the same elements of the same memory."""
    return array.data.ptr, array.strides, array.dtype


class _Inputs:
    """The arrays from which a graph reads the arguments of a callable.

    Args:
        function: The callable.
        sample: The arguments, with the arrays from which the graph will read.
        name: The name of the arguments in messages.

    Attributes:
        device: The index of the device of the arrays.

    Raises:
        AssertionError: ``sample`` has an element that is not an array.
        ValueError: An array is not on the current device.
    """

    def __init__(self, function: Callable[..., Any], sample: tuple[Any, ...], name: str) -> None:
        self.device = cuda.getDevice()
        self._xp: Any = importlib.import_module(backend.array_module)
        self._array_type = self._xp.ndarray
        self._arrays, self._structure = flatten(sample)
        self._paths = paths(self._structure)
        self._caller = f"{getattr(function, '__name__', type(function).__name__)}()"
        for array, path in zip(self._arrays, self._paths, strict=True):
            if not isinstance(array, self._array_type):
                # The first two sentences are torch's.
                raise AssertionError(
                    "In the beta API, sample_args for each callable must contain only Tensors. Other types are not "
                    f"allowed. {name}{path} is {a_kind(array)}; an array of tcuda.xp can be there."
                )
            if array.data.device_id != self.device:
                raise ValueError(
                    f"{name}{path} is on device {array.data.device_id} and the current device, on which the work is "
                    f"captured, is {self.device}; make the device of the arrays current."
                )
        self._blocks = {array.data.mem.ptr for array in self._arrays}
        places: dict[tuple[Any, ...], int] = {}
        firsts = [places.setdefault((*_view(array), array.shape), place) for place, array in enumerate(self._arrays)]
        self._same = [(first, place) for place, first in enumerate(firsts) if first != place]
        """The places of arrays that are in two places of the sample."""

    def fill(self, args: tuple[Any, ...]) -> None:
        """Copy ``args`` on the current stream into the arrays that the graph reads. A failed call changes nothing.

        Raises:
            RuntimeError: An array has another shape than its sample, or two places of one sample array get two arrays.
            TypeError: ``args`` are not nested as the samples are, or an argument is not an array.
            ValueError: An array is on another device.
        """
        given = flatten_as(self._structure, args)
        if given is None or not all(isinstance(array, self._array_type) for array in given):
            raise TypeError(
                f"{self._caller} was captured with the arguments {self._described(self._arrays)}; got "
                f"{self._described(*flatten(args))}."
            )
        copies = []
        for index, (static, array) in enumerate(zip(self._arrays, given, strict=True)):
            target, source = static.data, array.data
            if array.shape != static.shape:
                raise RuntimeError(
                    f"args{self._paths[index]} of {self._caller} has the shape {array.shape}; it was captured with the "
                    f"shape {static.shape}, which cannot change."
                )
            if source.device_id != self.device:
                raise ValueError(
                    f"args{self._paths[index]} of {self._caller} is on device {source.device_id}; it was captured on "
                    f"device {self.device}. Copy the array there first."
                )
            if source.ptr != target.ptr or array.strides != static.strides or array.dtype != static.dtype:
                copies.append((static, array))
        for first, second in self._same:
            if _view(given[first]) != _view(given[second]):
                raise RuntimeError(
                    f"args{self._paths[first]} and args{self._paths[second]} of {self._caller} are two arrays; it was "
                    "captured with one array in both places, which cannot hold both. Capture with a sample array for "
                    "each, such as a copy, or pass one array in both places."
                )
        # An argument may be a part of a static array, in another place or order. The copy into one static array could
        # then overwrite the source of the next copy.
        copies = [(static, array.copy() if array.data.mem.ptr in self._blocks else array) for static, array in copies]
        for static, array in copies:
            self._xp.copyto(static, array, casting="unsafe")

    def _described(self, leaves: Sequence[Any], structure: Structure | None = None) -> str:
        names = ["array" if isinstance(leaf, self._array_type) else kind_of(leaf) for leaf in leaves]
        return describe(structure or self._structure, names)
