"""Translation of the arguments of CuPy's functions into arguments of NumPy's functions."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.numbers import arithmetic, casts, linear_algebra
from tcuda.emulation.work import accesses, selected_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcuda.emulation.arrays.signatures import Signature


class Translation:
    """The translation of the arguments of a CuPy function into the arguments of the NumPy function that does the work.

    Most parameters have the same names and the same order in both functions. NumPy takes some parameters only by name,
    and has other defaults for some parameters whose default in CuPy is None.

    Args:
        signature: The parameters of CuPy's function.
        function: The NumPy function.

    Attributes:
        keeps_first: Whether :meth:`arguments` returns a positional argument alone as it is.
    """

    def __init__(self, signature: Signature, function: Callable[..., Any]) -> None:
        places, defaults = signature.places, signature.defaults
        self._places = places
        self._variadic = any(parameter.kind == parameter.VAR_POSITIONAL for parameter in _parameters(signature))
        theirs = _of_numpy(function)
        if theirs is None:  # A compiled function has no signature. The parameters of CuPy are used then.
            self._by_place = [True] * len(places)
            self._unset: frozenset[str] = frozenset()
            known = frozenset(defaults)
        else:
            in_order = [item for item in theirs if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
            pairs = list(zip(places, in_order, strict=False))
            same = [
                name == other.name or (defaults[name] is inspect.Parameter.empty and other.default is other.empty)
                for name, other in pairs
            ]
            self._by_place = same + [False] * (len(places) - len(same))
            known = frozenset(item.name for item in theirs if item.kind != item.POSITIONAL_ONLY)
            self._unset = frozenset(
                item.name for item in theirs if item.default is not None and defaults.get(item.name, 0) is None
            )
        if "out" in known:  # the functions that run NumPy functions find the output by its name
            self._by_place = [alike and name != "out" for name, alike in zip(places, self._by_place, strict=True)]
        same_meaning = [alike and name not in self._unset for name, alike in zip(places, self._by_place, strict=True)]
        self._same_places = len(places) if all(same_meaning) else same_meaning.index(False)
        self._same_names = known - self._unset
        self.keeps_first = self._variadic or self._same_places > 0

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Return the arguments of NumPy's function with the meaning of ``args`` and ``kwargs`` in CuPy's function."""
        if self._variadic or (len(args) <= self._same_places and kwargs.keys() <= self._same_names):
            return args, kwargs
        options = {**dict(zip(self._places, args, strict=False)), **kwargs}
        for name in self._unset:
            if name in options and options[name] is None:
                del options[name]
        positional = []
        for name, by_place in zip(self._places, self._by_place, strict=True):
            if name not in options or not by_place:
                break
            positional.append(options.pop(name))
        return positional, options


def _parameters(signature: Signature) -> list[inspect.Parameter]:
    return list(signature.described.parameters.values())


def _of_numpy(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        return None


# Functions that have other parameters or defaults in CuPy than in NumPy, or that take fewer arguments there. The
# functions below run on the host, on NumPy arrays. The stubs of NumPy are too narrow for their arguments.

_np: Any = np
_MOST = 2.0**63 - 2.0**33
"""The most bytes of an array, less the error of a sum of floating-point numbers."""
_NUMBER = 8
"""The bytes of an integer or a floating-point number of 64 bits."""
_PLACE_OF_DDOF = 4
"""The place of ``ddof`` among the arguments of ``var`` and ``std`` after the array."""


def _argmax(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return _place(_along(_np.argmax, a, axis, out, keepdims), dtype, out)


def _argmin(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return _place(_along(_np.argmin, a, axis, out, keepdims), dtype, out)


def _nanargmax(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return _place(_along(_np.nanargmax, a, axis, out, keepdims), dtype, out)


def _nanargmin(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return _place(_along(_np.nanargmin, a, axis, out, keepdims), dtype, out)


def _unwarned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the NumPy function ``function`` without its warning of a mean or a variance of too few elements."""
    of_some = function in (np.nanmean, np.nanvar, np.nanstd, np.nanmedian)

    @functools.wraps(function)
    def reduce(a: Any, *args: Any, **options: Any) -> Any:
        if a.size and not of_some and not options.get("ddof") and len(args) < _PLACE_OF_DDOF:
            return function(a, *args, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return function(a, *args, **options)

    return reduce


def _summing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the NumPy function ``function`` of an array, which casts the elements to ``dtype`` first."""

    @functools.wraps(function)
    def reduce(a: Any, axis: Any = None, dtype: Any = None, *args: Any, **options: Any) -> Any:
        return function(a if dtype is None else casts.fitting(a, np.dtype(dtype)), axis, dtype, *args, **options)

    return reduce


def _joining(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the NumPy function ``function``, which joins arrays, with casts if they are unsafe."""

    @functools.wraps(function)
    def join(arrays: Any, *args: Any, dtype: Any = None, casting: Any = "same_kind", **options: Any) -> Any:
        out = options.get("out")
        kind = dtype if out is None else out.dtype
        if casting == "unsafe" and kind is not None:
            arrays = [casts.fitting(each, np.dtype(kind)) for each in arrays]
        return function(arrays, *args, dtype=dtype, casting=casting, **options)

    return join


def _storing(function: Callable[..., Any], place: int, name: str) -> Callable[..., Any]:
    """Return the NumPy function ``function``, which casts the argument ``name`` and writes it to its first argument."""

    @functools.wraps(function)
    def store(target: Any, *args: Any, **options: Any) -> None:
        values = list(args)
        if len(values) >= place:
            values[place - 1] = casts.fitting(values[place - 1], target.dtype)
        elif name in options:
            options[name] = casts.fitting(options[name], target.dtype)
        function(target, *values, **options)

    for table in (selected_elements.SELECTIONS, accesses.PARTIAL):
        if function in table:
            table[store] = table[function]  # type: ignore[assignment]
    return store


def _along(function: Any, a: Any, axis: Any, out: Any, keepdims: bool) -> Any:
    """Return the places that ``function`` finds; those along several axes count the elements of these axes."""
    if not isinstance(axis, tuple) or len(axis) == 1:
        return function(a, axis[0] if isinstance(axis, tuple) else axis, out, keepdims=keepdims)
    axes = tuple(sorted(place % max(a.ndim, 1) for place in axis))
    last = np.moveaxis(a, axes, range(-len(axes), 0))
    kept = tuple([1 if place in axes else length for place, length in enumerate(a.shape)])
    places = function(last.reshape(*last.shape[: -len(axes)], -1), -1)
    made = places.reshape(kept) if keepdims else places
    if out is None:
        return made
    out[...] = made
    return out


def _place(places: Any, dtype: Any, out: Any) -> Any:
    return places if dtype is None or out is not None else places.astype(dtype)


def _corrcoef(
    a: Any, y: Any = None, rowvar: bool = True, bias: Any = None, ddof: Any = None, *, dtype: Any = None
) -> Any:
    return np.corrcoef(a, y, rowvar, dtype=dtype)  # ``bias`` and ``ddof`` have no effect in NumPy


def _matmul(x1: Any, x2: Any, /, out: Any = None, **options: Any) -> Any:
    return np.matmul(x1, x2, out, **options)


def _quantiles(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a NumPy quantile function with ``interpolation``, CuPy's older name for ``method``."""

    def find(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: Any = "linear",
        keepdims: bool = False,
        *,
        interpolation: Any = None,
    ) -> Any:
        return function(a, q, axis, out, overwrite_input, interpolation or method, keepdims)

    find.__name__ = function.__name__
    return find


def _diag(v: Any, k: int = 0) -> Any:
    return np.diag(v, k).copy()  # CuPy copies the diagonal


def _choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    return np.choose(arithmetic.wrapped(a, len(choices)) if mode == "wrap" else a, choices, out, mode)


selected_elements.enter_choose(_choose)


def _put(a: Any, ind: Any, v: Any, mode: Any = "wrap") -> None:
    if mode == "wrap":
        ind = arithmetic.wrapped(ind, a.size)
    np.put(a, ind, casts.fitting(v, a.dtype), mode)


selected_elements.enter_put(_put)


def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    if np.ndim(repeats) > 1:
        raise ValueError("object too deep for desired array: the numbers of repeats have one axis at most")
    known = axis is None or -np.ndim(a) <= axis < np.ndim(a)  # NumPy refuses another axis
    length = np.size(a) if axis is None or not known else np.shape(a)[axis]
    if known and np.size(repeats) not in (1, length):
        raise ValueError(
            f"repeats must have the same length as the axis, which has {length} elements; got {np.size(repeats)}."
        )
    # NumPy refuses negative numbers.
    if known and length and np.asarray(repeats).dtype.kind in "iu" and np.min(repeats) >= 0:
        counts = np.broadcast_to(repeats, length).sum(dtype=float)
        _require_addresses(counts * (np.size(a) // length) * np.asarray(a).itemsize)
    return np.repeat(a, repeats, axis)


def _bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    if np.size(x) and np.asarray(x).dtype.kind in "iu":
        size = (float(np.max(x)) + 1) * _NUMBER
        if size > _MOST and np.min(x) >= 0:  # NumPy refuses negative numbers
            _require_addresses(size)
    return np.bincount(x, weights, minlength)


def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if isinstance(bins, (int, np.integer)):
        _require_addresses((float(bins) + 1) * _NUMBER)
    return np.histogram(a, bins, range, weights=weights, density=density)


def _require_addresses(size: float) -> None:
    """Refuse a result of ``size`` bytes that is beyond all addresses: NumPy writes to too little memory then.

    Raises:
        MemoryError: There are not so many addresses.
    """
    if size > _MOST:
        raise MemoryError(size)


def _ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "wrap", order: Any = "C") -> Any:
    return np.ravel_multi_index(multi_index, dims, mode, order)


def _roots(p: Any) -> Any:
    if p.dtype.kind == "b":
        raise NotImplementedError("boolean inputs are not supported")
    if p.ndim == 0:
        raise TypeError("0-dimensional input is not allowed")
    coefficients = np.trim_zeros(p[::-1], "b")
    if len(coefficients) < 3:
        return np.roots(p)
    companion = np.polynomial.polynomial.polycompanion(coefficients)
    return _eigenvalues(companion).astype(companion.dtype)


def poly(seq_of_zeros: Any) -> Any:
    """Return the coefficients of the polynomial with the given roots, or of the matrix's characteristic one."""
    if seq_of_zeros.ndim != 2 or seq_of_zeros.shape[0] != seq_of_zeros.shape[1] or not seq_of_zeros.size:
        return np.poly(seq_of_zeros)
    values = _eigenvalues(seq_of_zeros)
    return np.poly(values).astype(values.dtype)  # NumPy makes no polynomial of half precision, and CuPy does here


def _eigenvalues(matrix: Any) -> Any:
    """Return the eigenvalues of a matrix for which CuPy's functions of polynomials find them."""
    if not np.array_equal(matrix, matrix.conj().T):
        raise NotImplementedError("Only complex Hermitian and real symmetric 2d arrays are supported currently")
    return linear_algebra.eigvalsh(matrix)


def _writing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, which NumPy computes with other functions, with the options of a universal function."""

    def compute(x: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind") -> Any:
        made = function(x if dtype is None else x.astype(dtype))
        return made if out is None else casts.copyto(out, made, casting)

    return functools.update_wrapper(compute, function, ("__module__", "__name__", "__doc__"))


def _of_two_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` of the diagonals between two axes, which CuPy looks for first."""

    def compute(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, **options: Any) -> Any:
        for axis in (axis1, axis2):
            np.lib.array_utils.normalize_axis_index(axis, a.ndim)
        return function(a, offset, axis1, axis2, **options)

    if function in accesses.PARTIAL:
        accesses.PARTIAL[compute] = accesses.PARTIAL[function]
    return functools.update_wrapper(compute, function, ("__module__", "__name__", "__doc__"))


def _polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    if x.dtype.char == "e" and y.dtype.kind == "b":
        raise NotImplementedError("float16 x and bool y are not currently supported")
    if y.dtype.char == "e":
        raise TypeError("float16 y are not supported")
    return np.polyfit(_double(x), _double(y), deg, rcond, full, None if w is None else _double(w), cov)


def _double(a: Any) -> Any:
    return a.astype(np.promote_types(a.dtype, float))


def _packbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Any:
    return np.packbits(a, axis, _bit_order(bitorder))


def _unpackbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Any:
    return np.unpackbits(a, axis, bitorder=_bit_order(bitorder))


def _bit_order(name: Any) -> Any:
    if name not in ("big", "little"):
        raise ValueError(f"bitorder must be either 'big' or 'little', not {name!r}")
    return name


def einsum(*operands: Any, optimize: Any = False, **options: Any) -> Any:
    """Contract arrays of the host. NumPy gives wrong results if it optimizes a product that stretches an axis."""
    if optimize and _stretches(operands):
        optimize = False
    if optimize and options.get("dtype") is None:  # NumPy would round the product of each pair to the type of the pair
        kind = np.result_type(*_terms_and_arrays(operands)[1])
        first = isinstance(operands[0], str)
        operands = (
            *(
                each.astype(kind) if isinstance(each, np.ndarray) and (first or not place % 2) else each
                for place, each in enumerate(operands)
            ),
        )
    return _np.einsum(*operands, optimize=optimize, **options)


def _stretches(operands: Sequence[Any]) -> bool:
    """Return whether an index of a contraction has the length 1 in an operand and another length in another one."""
    terms, arrays = _terms_and_arrays(operands)
    lengths: dict[Any, set[int]] = {}
    for term, array in zip(terms, arrays, strict=False):
        before, after = _around_ellipsis(term)
        shape = np.shape(array)
        for label, length in (*zip(before, shape, strict=False), *zip(reversed(after), reversed(shape), strict=False)):
            lengths.setdefault(label, set()).add(length)
    return any(1 in found and len(found) > 1 for found in lengths.values())


def _terms_and_arrays(operands: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the indices of each operand of a contraction, and the operands."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", "").partition("->")[0].split(","), operands[1:]
    return operands[1::2], operands[0 : len(operands) // 2 * 2 : 2]


def _around_ellipsis(term: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the indices of an operand before the ellipsis, and those after it."""
    if isinstance(term, str):
        before, _, after = term.partition("...")
        return before, after
    place = term.index(Ellipsis) if Ellipsis in term else len(term)
    return term[:place], term[place + 1 :]


IN_PLACE_OF: dict[Any, Callable[..., Any]] = {
    np.argmax: _argmax,
    np.argmin: _argmin,
    np.bincount: _bincount,
    np.choose: _choose,
    np.clip: arithmetic.clip,
    np.copyto: casts.copyto,
    np.corrcoef: _corrcoef,
    np.diag: _diag,
    np.diagonal: _of_two_axes(np.diagonal),
    np.einsum: einsum,
    np.histogram: _histogram,
    np.linalg.matmul: _matmul,
    np.nanargmax: _nanargmax,
    np.nanargmin: _nanargmin,
    np.packbits: _packbits,
    np.percentile: _quantiles(np.percentile),
    np.poly: poly,
    np.polyfit: _polyfit,
    np.put: _put,
    np.quantile: _quantiles(np.quantile),
    np.ravel_multi_index: _ravel_multi_index,
    np.repeat: _repeat,
    np.roots: _roots,
    np.trace: _of_two_axes(np.trace),
    np.unpackbits: _unpackbits,
    **{function: _writing(function) for function in (np.i0, np.sinc)},
    **{getattr(np.linalg, name): getattr(linear_algebra, name) for name in linear_algebra.NAMES},
    **{function: _joining(function) for function in (np.concatenate, np.hstack, np.stack, np.vstack)},
    **{
        function: _storing(function, place, name)
        for function, place, name in (
            (np.fill_diagonal, 1, "val"),
            (np.place, 2, "vals"),
            (np.put_along_axis, 2, "values"),
        )
    },
    **{
        function: _summing(function)
        for function in (np.cumprod, np.cumsum, np.nancumprod, np.nancumsum, np.nanprod, np.nansum, np.prod, np.sum)
    },
    **{
        function: _unwarned(function)
        for function in (np.mean, np.median, np.nanmean, np.nanmedian, np.nanstd, np.nanvar, np.std, np.var)
    },
}
"""Functions of the host that behave like CuPy's functions, by the NumPy functions that behave differently."""
