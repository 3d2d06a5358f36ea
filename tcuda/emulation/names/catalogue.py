"""The catalogue of the functions of CuPy that emulated devices have, sorted by their arguments and results.

A name belongs here only if CuPy has that name, because a program for emulated devices must run on a GPU. The namespace
leaves out names that the installed version of NumPy does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def _names(text: str) -> list[str]:
    return text.split()


VERSION = "14.2.0"
"""The version of CuPy whose names emulated devices have."""

UFUNCS = _names("""
absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_count bitwise_or bitwise_xor cbrt
ceil conjugate copysign cos cosh deg2rad degrees divide divmod equal exp exp2 expm1 fabs float_power floor floor_divide
fmax fmin fmod frexp gcd greater greater_equal heaviside hypot invert isfinite isinf isnan lcm ldexp left_shift less
less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor matmul maximum
minimum modf multiply negative nextafter not_equal positive power rad2deg radians reciprocal remainder right_shift rint
sign signbit sin sinh sqrt square subtract tan tanh trunc
""")
"""Universal functions."""

VIEWS = _names("""
array_split atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to diagonal dsplit expand_dims flip fliplr
flipud hsplit imag matrix_transpose moveaxis ravel real reshape rollaxis rot90 split squeeze swapaxes transpose vsplit
""")
"""Functions whose results share the memory of the first argument where that is possible."""

COMPUTING = _names("""
all allclose amax amin angle any append argmax argmin argpartition argwhere around array_equal array_equiv average
bincount choose clip column_stack concatenate convolve corrcoef correlate count_nonzero cov cross cumprod cumsum
cumulative_prod cumulative_sum diag diag_indices diag_indices_from diagflat diff digitize dot dstack ediff1d einsum
extract flatnonzero gradient histogram histogram2d histogramdd hstack i0 indices inner interp intersect1d isclose
iscomplex isin isneginf isposinf isreal ix_ kaiser kron lexsort max mean median meshgrid min nan_to_num nanargmax
nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar nonzero outer packbits pad
partition percentile poly polyadd polyfit polymul polysub polyval prod ptp quantile ravel_multi_index real_if_close
repeat resize roll roots round searchsorted select setdiff1d setxor1d sinc sort_complex stack std sum tensordot tile
trace trapezoid tril tril_indices tril_indices_from trim_zeros triu triu_indices triu_indices_from union1d unique
unique_all unique_counts unique_inverse unique_values unpackbits unwrap vander var vdot vstack where
""")
"""Functions whose results are new arrays."""


def _steps(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    return (start if stop is None else stop - start) / step


def _samples(start: Any, stop: Any, num: Any = 50, *others: Any, **options: Any) -> Any:
    return num


def _cells(N: Any, M: Any = None, *others: Any, **options: Any) -> Any:  # noqa: N803  # NumPy's names
    return N * (N if M is None else M)


def _points(M: Any) -> Any:  # noqa: N803
    return M


GENERATING: dict[str, Callable[..., Any]] = {
    "arange": _steps,
    "bartlett": _points,
    "blackman": _points,
    "eye": _cells,
    "hamming": _points,
    "hanning": _points,
    "identity": lambda n, dtype=None: n * n,
    "linspace": _samples,
    "logspace": _samples,
    "tri": _cells,
}
"""Functions that make arrays of numbers. Each value returns the number of elements for the function's arguments."""

OF_CLASS = _names("""
angle around clip diff ediff1d i0 iscomplex isclose isneginf isposinf isreal kron outer round sinc tril triu where
""")
"""Functions whose result is of the class of their first operand of a subclass: CuPy computes it element by element."""

SORTING = _names("argsort sort")
"""Functions that sort; CuPy always sorts stably."""

INDEXED = {"compress": 0, "delete": 1, "take": 1, "take_along_axis": 1, "unravel_index": 0}
"""Functions of an array and of indices, which may be on the host. The number is the position of the indices."""

COPYING = _names("copyto")
"""Functions that write a copy to their first argument, which may be on another device."""

WRITING = _names("fill_diagonal place putmask")
"""Functions that write to their first argument and return nothing."""

WRITING_INDEXED = {"put": 1, "put_along_axis": 1}
"""Functions that write to their first argument at indices, which may be on the host."""

ASKING = _names("""
common_type iscomplexobj isfortran isrealobj may_share_memory ndim result_type shape shares_memory size
""")
"""Functions that return types, shapes and facts about addresses. No kernel runs, and the result is not an array."""

ALIASES = {
    "abs": "absolute",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_not": "invert",
    "bitwise_right_shift": "right_shift",
    "concat": "concatenate",
    "conj": "conjugate",
    "fix": "trunc",
    "mod": "remainder",
    "permute_dims": "transpose",
    "pow": "power",
    "true_divide": "divide",
}
"""Other names of functions."""

READING = frozenset(
    _names("""
argwhere bincount compress delete extract flatnonzero histogram histogram2d histogramdd intersect1d nanmax nanmin
nonzero place polymul roots setdiff1d setxor1d tril_indices tril_indices_from trim_zeros triu_indices triu_indices_from
union1d unique unique_all unique_counts unique_inverse unique_values unravel_index
""")
)
"""Functions in which CuPy waits for the contents of an array, mostly to find the shape of the result."""

SOLVING = frozenset(
    _names("""
cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_rank pinv polyfit qr slogdet solve svd tensorinv
tensorsolve
""")
)
"""Functions for which CuPy calls cuSOLVER."""

LINALG = _names("""
cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matmul matrix_power matrix_rank matrix_transpose norm pinv
qr slogdet solve svd tensorinv tensorsolve
""")
"""Functions of ``numpy.linalg``."""

FFT = _names("""
fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftn
""")
"""Functions of ``numpy.fft`` of one array."""

FFT_FREQUENCIES = _names("fftfreq rfftfreq")
"""Functions of ``numpy.fft`` that make arrays of numbers."""

CREATION = _names("array asanyarray asarray empty from_dlpack ones zeros")
"""Functions of :mod:`tcuda.emulation.work.creation` that take shapes, or also arrays and sequences of the host."""

OF_ARRAYS = _names("""
ascontiguousarray asfortranarray astype copy empty_like full full_like ones_like zeros_like
""")
"""Functions of :mod:`tcuda.emulation.work.creation` that take arrays of a device only."""

HOST = _names("""
array2string array_repr array_str asnumpy format_float_positional format_float_scientific frombuffer fromfile
fromfunction fromiter fromstring genfromtxt load loadtxt save savetxt savez savez_compressed
can_cast min_scalar_type
""")
"""Functions of :mod:`tcuda.emulation.arrays.host`."""

GRIDS = _names("mgrid ogrid")
"""Objects that make arrays of the slices in their brackets."""

JOINING = _names("c_ r_")
"""Objects that join the arrays in their brackets."""

REDUCING = _names("add multiply")
"""Universal functions that CuPy can reduce and accumulate with."""

REDUCING_SLICES = _names("add")
"""Universal functions that CuPy can reduce slices with."""

CHANGING = _names("add bitwise_and bitwise_or bitwise_xor maximum minimum subtract")
"""Universal functions that CuPy can change elements with in place, by ``at``."""

SAME_AS_NUMPY = _names("""
bool bool_ byte cdouble complex128 complex64 complexfloating csingle double float16 float32 float64 floating generic
half inexact int16 int32 int64 int8 int_ intc integer intp long longlong number short signedinteger single ubyte uint
uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong unsignedinteger ushort

e euler_gamma inf nan newaxis pi

base_repr binary_repr broadcast_shapes dtype exceptions finfo get_printoptions iinfo index_exp isdtype isscalar
issubdtype iterable mintypecode ndindex printoptions promote_types s_ set_printoptions typename
""")
"""Types, constants and functions of these, which CuPy takes from NumPy, too."""
