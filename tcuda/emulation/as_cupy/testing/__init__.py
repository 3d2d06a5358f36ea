"""Helpers for tests of programs for CuPy, on emulated devices (``cupy.testing``).

The decorators ``numpy_cupy_...`` run a test twice, with NumPy and with arrays of a device.
"""

from __future__ import annotations

from tcuda.emulation.as_cupy.testing.aliases import NumpyAliasBasicTestBase, NumpyAliasValuesTestBase
from tcuda.emulation.as_cupy.testing.assertions import (
    assert_allclose,
    assert_array_almost_equal,
    assert_array_almost_equal_nulp,
    assert_array_equal,
    assert_array_less,
    assert_array_list_equal,
    assert_array_max_ulp,
)
from tcuda.emulation.as_cupy.testing.comparisons import (
    numpy_cupy_allclose,
    numpy_cupy_array_almost_equal,
    numpy_cupy_array_almost_equal_nulp,
    numpy_cupy_array_equal,
    numpy_cupy_array_less,
    numpy_cupy_array_list_equal,
    numpy_cupy_array_max_ulp,
    numpy_cupy_equal,
    numpy_cupy_raises,
)
from tcuda.emulation.as_cupy.testing.conditions import (
    AssertFunctionIsCalled,
    assert_warns,
    fix_random,
    generate_seed,
    installed,
    multi_gpu,
    numpy_satisfies,
    slow,
    with_requires,
)
from tcuda.emulation.as_cupy.testing.parameters import parameterize, product, product_dict
from tcuda.emulation.as_cupy.testing.repetitions import (
    for_all_dtypes,
    for_all_dtypes_combination,
    for_CF_orders,
    for_complex_dtypes,
    for_contiguous_axes,
    for_dtypes,
    for_dtypes_combination,
    for_float_dtypes,
    for_int_dtypes,
    for_int_dtypes_combination,
    for_orders,
    for_signed_dtypes,
    for_signed_dtypes_combination,
    for_unsigned_dtypes,
    for_unsigned_dtypes_combination,
)
from tcuda.emulation.as_cupy.testing.samples import (
    generate_matrix,
    shaped_arange,
    shaped_linspace,
    shaped_random,
    shaped_reverse_arange,
)

__all__ = [
    "AssertFunctionIsCalled",
    "NumpyAliasBasicTestBase",
    "NumpyAliasValuesTestBase",
    "assert_allclose",
    "assert_array_almost_equal",
    "assert_array_almost_equal_nulp",
    "assert_array_equal",
    "assert_array_less",
    "assert_array_list_equal",
    "assert_array_max_ulp",
    "assert_warns",
    "fix_random",
    "for_CF_orders",
    "for_all_dtypes",
    "for_all_dtypes_combination",
    "for_complex_dtypes",
    "for_contiguous_axes",
    "for_dtypes",
    "for_dtypes_combination",
    "for_float_dtypes",
    "for_int_dtypes",
    "for_int_dtypes_combination",
    "for_orders",
    "for_signed_dtypes",
    "for_signed_dtypes_combination",
    "for_unsigned_dtypes",
    "for_unsigned_dtypes_combination",
    "generate_matrix",
    "generate_seed",
    "installed",
    "multi_gpu",
    "numpy_cupy_allclose",
    "numpy_cupy_array_almost_equal",
    "numpy_cupy_array_almost_equal_nulp",
    "numpy_cupy_array_equal",
    "numpy_cupy_array_less",
    "numpy_cupy_array_list_equal",
    "numpy_cupy_array_max_ulp",
    "numpy_cupy_equal",
    "numpy_cupy_raises",
    "numpy_satisfies",
    "parameterize",
    "product",
    "product_dict",
    "shaped_arange",
    "shaped_linspace",
    "shaped_random",
    "shaped_reverse_arange",
    "slow",
    "with_requires",
]


def __dir__() -> list[str]:
    return sorted(__all__)
