"""Functions of images that take kernels or functions of a program, and functions with other arguments than SciPy's."""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy import catalogue, held
from tcuda.emulation.cupyx.scipy.host_modules import scipy_module
from tcuda.emulation.devices.strided import Strided, too_large
from tcuda.emulation.kernels.raw_kernel import RawKernel
from tcuda.emulation.kernels.reduction import ReductionKernel
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

ndimage = scipy_module("ndimage")

OF_ARRAYS = (
    "affine_transform",
    "distance_transform_edt",
    "generic_filter",
    "generic_filter1d",
    "generic_gradient_magnitude",
    "generic_laplace",
    "label",
    "labeled_comprehension",
    "value_indices",
)

_MOST = 1 << 40
"""The largest size of a filter, and the largest shift: SciPy writes to wrong memory for some larger ones."""
_INTERPOLATING = ("affine_transform", "map_coordinates", "rotate", "shift", "zoom")
_MODES = ("constant", "grid-constant", "nearest", "mirror", "reflect", "grid-mirror", "wrap", "grid-wrap", "opencv")
_BY_RANK = (
    "grey_closing",
    "grey_dilation",
    "grey_erosion",
    "grey_opening",
    "maximum_filter",
    "median_filter",
    "minimum_filter",
    "percentile_filter",
    "rank_filter",
)
_REPEATED = ("binary_closing", "binary_dilation", "binary_erosion", "binary_opening")


def taken(name: str, parameter: str, value: Any) -> Any:
    """Return the value of a parameter as SciPy takes it.

    Args:
        name: The name of the function.
        parameter: The name of the parameter.
        value: The value that the program gives.
    """
    if isinstance(value, np.ndarray) and (parameter, name[:4]) == ("structure", "grey"):
        value = value.tolist()
    if parameter == "shift":
        return [_near(part) for part in value] if isinstance(value, (tuple, list)) else _near(value)
    if parameter == "structure" and type(value) is tuple and name.startswith("binary_"):  # in CuPy, a shape
        return np.ones(value, bool).tolist()
    return value


def _near(shift: Any) -> Any:
    return max(-_MOST, min(shift, _MOST)) if isinstance(shift, (int, float, np.integer, np.floating)) else shift


def check(name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse what CuPy refuses, and SciPy does not or with another error.

    Args:
        name: The name of the function.
        arguments: The arguments of a call, by the names of the parameters.

    Raises:
        TypeError: The input is no array of a device.
        OutOfMemoryError: A filter is larger than any device.
        NotImplementedError: The value outside the image is not finite where CuPy needs a finite one, or an operation is
            to be repeated with less work than by brute force.
        ValueError: The order of the spline, the mode or the type of the output does not fit.
    """
    given = arguments.get("input")
    if "input" in arguments and not isinstance(given, Strided):
        raise TypeError(f"Unsupported type {type(given)}: input must be an array of the device.")
    size = arguments.get("size")
    for length in size if isinstance(size, (tuple, list)) else [size]:
        if isinstance(length, (int, np.integer)) and length > _MOST:
            raise too_large(f"what {name}() needs")
    if "cval" in arguments:
        _check_outside(name, arguments)
    if name in _REPEATED:
        _check_repeated(arguments)
    if name in _INTERPOLATING and isinstance(given, Strided):
        order, mode, output = (arguments.get(key) for key in ("order", "mode", "output"))
        if order is not None and not 0 <= order <= 5:
            raise ValueError("spline order is not supported")
        if mode is not None and mode not in _MODES:
            raise ValueError(f"boundary mode ({mode}) is not supported")
        if isinstance(output, Strided) and given.dtype.kind == "c" and output.dtype.kind != "c":
            raise ValueError("output must have complex dtype for complex inputs")


def _check_outside(name: str, arguments: Mapping[str, Any]) -> None:
    cval, output = arguments["cval"], arguments.get("output")
    if name in _BY_RANK and isinstance(cval, float) and math.isnan(cval):
        raise NotImplementedError("NaN cval is unsupported")
    dtype = arguments["input"].dtype if output is None else output.dtype if isinstance(output, Strided) else output
    integers = isinstance(dtype, (str, type, np.dtype)) and np.dtype(dtype).kind in "iu"
    if (
        arguments.get("mode", "constant" if name in _INTERPOLATING else "") == "constant"
        and integers
        and not np.isfinite(cval)
    ):
        raise NotImplementedError("Non-finite cval is not supported for outputs with integer dtype.")


def _check_repeated(arguments: Mapping[str, Any]) -> None:
    if arguments.get("brute_force") or operator.index(arguments.get("iterations", 1)) == 1:
        return
    structure: Any = arguments.get("structure")
    if not (structure is None or isinstance(structure, (int, list, tuple)) or structure.all()):
        origin = arguments.get("origin", 0)
        origins = origin if isinstance(origin, (tuple, list)) else [origin] * structure.ndim
        if not structure[tuple(size // 2 + offset for size, offset in zip(structure.shape, origins, strict=True))]:
            return
    raise NotImplementedError(
        "only brute_force iteration has been implemented. CuPy repeats an operation only with brute_force=True if the "
        "structure contains its centre."
    )


def _scipys(name: str) -> Callable[..., Any]:
    """Return a function of SciPy for arrays of the device."""
    from tcuda.emulation.cupyx.scipy import namespaces

    rules = functools.partial(check, name), functools.partial(taken, name)
    return namespaces.of_scipy(getattr(ndimage, name), *rules, catalogue.SETTINGS["ndimage"])


def _into(output: Any, made: Any) -> Any:
    """Return ``made`` in the array ``output``, or in the type ``output``."""
    if isinstance(output, Strided):
        if output.shape != made.shape:
            raise RuntimeError("output shape not correct")
        output[...] = made.astype(output.dtype)  # type: ignore[index]
        return output
    return made if output is None else made.astype(output)


def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
    *,
    texture_memory: bool = False,
) -> Any:
    """Return the image at places that are an affine function of the places in the result.

    SciPy computes. ``texture_memory`` says which memory CuPy reads the image from, and changes nothing here.
    """
    shape = input.shape if output_shape is None else output_shape
    if texture_memory and output is not None and not isinstance(output, Strided):
        output = creation.zeros(tuple(shape), output)
    function = _scipys("affine_transform")
    if isinstance(matrix, Strided) and matrix.shape[0] < 1:
        raise RuntimeError("no proper affine matrix provided")
    return function(input, matrix, offset, output_shape, output, order, mode, cval, prefilter)


def distance_transform_edt(
    image: Any,
    sampling: Any = None,
    return_distances: bool = True,
    return_indices: bool = False,
    distances: Any = None,
    indices: Any = None,
    *,
    block_params: Any = None,
    float64_distances: bool = True,
) -> Any:
    """Return the distance of each element from the nearest zero, and the place of that zero.

    Args:
        image: The image, with two or three axes.
        sampling: The distance between neighbours along each axis.
        return_distances: Whether to return the distances.
        return_indices: Whether to return the places.
        distances: The array to write the distances to.
        indices: The array to write the places to.
        block_params: How CuPy divides the image; changes nothing here.
        float64_distances: Whether the distances are of ``float64``, and not of ``float32``.

    Raises:
        NotImplementedError: The image has another number of axes.
        RuntimeError: Nothing is asked for, or an array is given for a result that is not asked for.
    """
    if image.ndim not in (2, 3):
        raise NotImplementedError("Only 2D and 3D distance transforms are supported.")
    if not (return_distances or return_indices):
        raise RuntimeError("at least one of return_distances/return_indices must be True")
    for name, wanted, given in (("distances", return_distances, distances), ("indices", return_indices, indices)):
        if given is not None and not wanted:
            raise RuntimeError(f"{name} must be None if return_{name} is False")
    far, places = held.computed(_distances, (image, sampling), {})
    results = []
    if return_distances:
        far = far.astype(np.float64 if float64_distances else np.float32)
        results.append((distances, far))
    if return_indices:
        results.append((indices, places))
    returned = [made for given, made in results if given is None]
    for given, made in results:
        if given is not None:
            _into(given, made)
    return (tuple(returned) if len(returned) > 1 else returned[0]) if returned else None


def _distances(image: Any, sampling: Any) -> Any:
    return ndimage.distance_transform_edt(image, sampling, return_indices=True)


def label(input: Any, structure: Any = None, output: Any = None) -> Any:
    """Return an array with the number of the feature of each element, and the number of features.

    Args:
        input: The image.
        structure: Which neighbours belong together, also a NumPy array.
        output: The array to write to, or its type. With an array, only the number of features is returned.

    Raises:
        TypeError: The image is no array of the device, or is complex.
        ValueError: ``structure`` has another length than 3 along an axis, or the type is too small for the numbers.
    """
    if not isinstance(input, Strided):
        raise TypeError(f"input must be an array of the device, not {type(input)}")
    if input.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    neighbours = structure.tolist() if isinstance(structure, (np.ndarray, Strided)) else structure  # type: ignore[union-attr]
    dtype = output.dtype if isinstance(output, Strided) else np.dtype(np.int32 if output is None else output)
    if isinstance(output, Strided) and output.shape != input.shape:
        raise ValueError("output shape not correct")
    made, count = held.computed(_labels, (input, neighbours, dtype), {})
    if isinstance(output, Strided):
        _into(output, made)
        return count
    return made, count


def _labels(image: Any, structure: Any, dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], int]:
    neighbours = None if structure is None else np.array(structure, bool)
    if neighbours is not None and neighbours.ndim != image.ndim:
        raise RuntimeError("structure and input must have equal rank")
    if neighbours is not None and set(neighbours.shape) - {3}:
        raise ValueError("structure dimensions must be equal to 3")
    made, count = ndimage.label(image, neighbours)
    if dtype.kind in "iu" and count > np.iinfo(dtype).max:
        raise ValueError("insufficient bit-depth in output type")
    return made.astype(dtype), int(count)


def value_indices(arr: Any, *, ignore_value: Any = None, adaptive_index_dtype: bool = False) -> dict[Any, Any]:
    """Return the places of each value of an array of integers, by the value.

    Args:
        arr: The array.
        ignore_value: The value to leave out.
        adaptive_index_dtype: Whether the places are of the smallest type that holds all places.
    """
    if arr.dtype.kind not in "iu":
        raise ValueError("Parameter 'arr' must be an integer array")
    made: dict[Any, Any] = held.computed(_value_indices, (arr,), {"ignore_value": ignore_value})
    if not adaptive_index_dtype:
        return made
    dtype = np.min_scalar_type(max(arr.size - 1, 0))
    return {key: tuple([place.astype(dtype) for place in places]) for key, places in made.items()}


def _value_indices(values: npt.NDArray[Any], ignore_value: Any) -> Any:
    exact = values.astype(f"{values.dtype.kind}{values.dtype.itemsize}")  # the keys are no longlong
    ignored = None if ignore_value is None else exact.dtype.type(ignore_value)
    # SciPy makes an array from the least to the largest value, and writes beyond the array if this number overflows.
    kinds, codes = np.unique(exact, return_inverse=True)
    found = ndimage.value_indices(codes.reshape(exact.shape))
    return {kinds[code]: places for code, places in found.items() if ignored is None or kinds[code] != ignored}


def generic_filter(
    input: Any,
    function: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """Return the result of a kernel for the neighbourhood of each element.

    Args:
        input: The image.
        function: A ``ReductionKernel``, or a ``RawKernel`` with the parameters ``const double*`` (the neighbourhood),
            ``int`` (its size) and ``double*`` (the result).
        size: The lengths of the neighbourhood.
        footprint: The elements of the neighbourhood.
        output: The array to write to, or its type.
        mode: How the image goes on outside.
        cval: The value outside, for ``"constant"``.
        origin: The place of the neighbourhood.
        axes: The axes along which the neighbourhood extends.

    Raises:
        TypeError: ``function`` is no such kernel, or the image is complex.
    """
    if input.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    if not isinstance(function, (RawKernel, ReductionKernel)):
        raise TypeError("bad function type")
    options = {"size": size, "footprint": footprint, "mode": mode, "cval": cval, "origin": origin, "axes": axes}
    windows = held.computed(_windows, (input,), options)
    raw = isinstance(function, RawKernel)
    dtype = input.dtype if output is None else output.dtype if isinstance(output, Strided) else output
    windows = windows if raw else windows.astype(input.dtype)
    made: Any = creation.zeros(len(windows), np.float64 if raw else dtype)
    count = np.int32(windows.shape[1])
    for place in range(len(windows)):  # a kernel may also read the whole neighbourhood by its name
        if isinstance(function, RawKernel):
            function((1,), (1,), (windows[place], count, made[place : place + 1]))
        else:
            function(windows[place], made[place])
    return _into(input.dtype if output is None else output, made.reshape(input.shape))


def _windows(image: Any, **options: Any) -> npt.NDArray[Any]:
    found: list[npt.NDArray[Any]] = []

    def keep(values: npt.NDArray[Any]) -> float:
        found.append(values.copy())
        return 0.0

    ndimage.generic_filter(image, keep, **{name: value for name, value in options.items() if value is not None})
    return np.array(found)


def generic_filter1d(
    input: Any,
    function: Any,
    filter_size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Any:
    """Return the result of a kernel for each line of an image.

    Args:
        input: The image.
        function: A ``RawKernel`` with the parameters ``const double*`` and ``ptrdiff_t`` (the line with the neighbours
            outside, and its length), ``double*`` and ``ptrdiff_t`` (the line of the result, and its length).
        filter_size: The number of neighbours that an element of the result depends on.
        axis: The axis of the lines.
        output: The array to write to, or its type.
        mode: How the image goes on outside.
        cval: The value outside, for ``"constant"``.
        origin: The place of the neighbours.

    Raises:
        TypeError: ``function`` is no such kernel, or the image is complex.
        RuntimeError: ``filter_size`` is less than 1.
    """
    if input.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    if not isinstance(function, RawKernel):
        raise TypeError("bad function type")
    if filter_size < 1:
        raise RuntimeError("invalid filter size")
    options = {"axis": axis, "mode": mode, "cval": cval, "origin": origin}
    lines = held.computed(_lines, (input, filter_size), options)
    length = input.shape[axis]
    made: Any = creation.zeros((len(lines), length), np.float64)
    for place in range(len(lines)):
        function((1,), (1,), (lines[place], np.int64(lines.shape[1]), made[place], np.int64(length)))
    outer = np.moveaxis(np.empty(input.shape, bool), axis, -1).shape
    result = FUNCTIONS["moveaxis"](made.reshape(outer), -1, axis)
    return _into(input.dtype if output is None else output, creation.ascontiguousarray(result))


def _lines(image: Any, filter_size: int, axis: int, **options: Any) -> npt.NDArray[Any]:
    found: list[npt.NDArray[Any]] = []

    def keep(line: npt.NDArray[Any], _: npt.NDArray[Any]) -> None:
        found.append(line.copy())

    moved = np.moveaxis(image, axis, -1)
    ndimage.generic_filter1d(np.ascontiguousarray(moved), keep, filter_size, axis=-1, **options)
    return np.array(found)


def generic_laplace(
    input: Any,
    derivative2: Callable[..., Any],
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    extra_arguments: Sequence[Any] = (),
    extra_keywords: Mapping[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Any:
    """Return the sum of the second derivatives along the axes.

    Args:
        input: The image.
        derivative2: Called with the image, an axis, an output, a mode and a value outside. It writes the derivative to
            the output, which is an array.
        output: The array to write to, or its type.
        mode: How the image goes on outside; for all axes, or for each.
        cval: The value outside, for ``"constant"``.
        extra_arguments: More arguments of ``derivative2``.
        extra_keywords: More arguments of ``derivative2`` by name.
        axes: The axes; all if None.
    """
    parts = _derivatives(input, derivative2, output, mode, cval, extra_arguments, extra_keywords, axes)
    target = next(parts)
    for part in parts:
        target += part
    return target


def generic_gradient_magnitude(
    input: Any,
    derivative: Callable[..., Any],
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    extra_arguments: Sequence[Any] = (),
    extra_keywords: Mapping[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Any:
    """Return the length of the vector of the derivatives along the axes; see :func:`generic_laplace`."""
    parts = _derivatives(input, derivative, output, mode, cval, extra_arguments, extra_keywords, axes)
    target = next(parts)
    if input.ndim == 0:
        return target
    target *= target
    for part in parts:
        part *= part  # in place, as CuPy computes in the type of the output
        target += part
    return FUNCTIONS["sqrt"](target, target, casting="unsafe")


def _derivatives(
    image: Any,
    derivative: Callable[..., Any],
    output: Any,
    mode: Any,
    cval: float,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any] | None,
    axes: Any,
) -> Iterator[Any]:
    """Yield the derivative along each axis; a copy of the image if there is no axis.

    ``derivative`` writes to the array that it is given. The first is the output, and all others are one array.
    """
    if isinstance(output, Strided) and output.shape != image.shape:
        raise RuntimeError("output shape not correct")
    along = list(range(image.ndim)) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    modes = [mode] * len(along) if isinstance(mode, str) else list(mode)
    if len(modes) != len(along):
        raise RuntimeError("mode must have length equal to input rank")
    target: Any = output
    if not isinstance(output, Strided):
        target = creation.empty(image.shape, image.dtype if output is None else output)
    if not along:
        target[...] = image
        yield target
    for axis, each in zip(along, modes, strict=True):
        derivative(image, axis, target, each, cval, *arguments, **(keywords or {}))
        yield target
        if axis == along[0]:
            target = creation.empty(image.shape, target.dtype)


def labeled_comprehension(
    input: Any,
    labels: Any,
    index: Any,
    func: Callable[..., Any],
    out_dtype: Any,
    default: Any,
    pass_positions: bool = False,
) -> Any:
    """Return the results of a function for the elements with each label.

    Args:
        input: The values, an array of the device.
        labels: The labels of the elements; None for one call with all elements.
        index: The labels to call the function for; None for one call with all elements that have a label.
        func: Called with an array of values, and with their places if asked for.
        out_dtype: The type of the results.
        default: The result for a label without elements.
        pass_positions: Whether ``func`` also takes the places.

    Raises:
        ValueError: ``index`` is given without ``labels``.
    """
    places = creation.asarray(np.arange(input.size)).reshape(input.shape)  # type: ignore[attr-defined]
    given = (input, places) if pass_positions else (input,)
    if labels is None:
        if index is not None:
            raise ValueError("index without defined labels")
        return func(*[each.ravel() for each in given])
    values, labels = FUNCTIONS["broadcast_arrays"](input, labels)
    if index is None:
        return func(*[each[labels > 0] for each in given])
    wanted: Any = creation.asarray(index)
    flat = [wanted] if wanted.ndim == 0 else list(wanted.ravel())
    masks = [labels == each for each in flat]
    results = [func(*[each[mask] for each in (values, *given[1:])]) if bool(mask.any()) else default for mask in masks]
    if wanted.ndim == 0 and np.dtype(out_dtype) == object:
        return results[0]
    if np.dtype(out_dtype) == object:
        return results
    fallback = np.nan if default is None else default
    made: Any = creation.zeros(len(flat), out_dtype)
    for place, result in enumerate(results):
        made[place] = fallback if result is None else result
    return made[0] if wanted.ndim == 0 else made.reshape(wanted.shape)
