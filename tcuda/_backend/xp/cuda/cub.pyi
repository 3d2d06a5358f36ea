# ruff: noqa
# fmt: off
# mypy: disable-error-code="misc, overload-overlap"
# CuPy 14.2.0, NumPy 2.4. tests/support/cupy_tables.py writes this file.

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Literal, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Self, TypeVar

from tcuda._backend.xp._arrays import Convertible, DType, Operand, Shape, ndarray as ndarray
CUB_sum_support_dtype: Any
CUB_sum_support_dtype_with_half: Any
CUB_sum_support_dtype_without_half: Any
CUB_support_dtype: Any
CUB_support_dtype_with_half: Any
CUB_support_dtype_without_half: Any
CUPY_CUB_ARGMAX: Any
CUPY_CUB_ARGMIN: Any
CUPY_CUB_CUMPROD: Any
CUPY_CUB_CUMSUM: Any
CUPY_CUB_MAX: Any
CUPY_CUB_MIN: Any
CUPY_CUB_PROD: Any
CUPY_CUB_SUM: Any
available: Any
def cub_histogram(*args: Any, **kwargs: Any) -> Any: ...
def cub_reduction(*args: Any, **kwargs: Any) -> Any: ...
def cub_scan(*args: Any, **kwargs: Any) -> Any: ...
class cupy_cub_op:
    def __init__(self, *values: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
def device_histogram(*args: Any, **kwargs: Any) -> Any: ...
def device_reduce(*args: Any, **kwargs: Any) -> Any: ...
def device_scan(*args: Any, **kwargs: Any) -> Any: ...
def device_segmented_reduce(*args: Any, **kwargs: Any) -> Any: ...
def get_build_version(*args: Any, **kwargs: Any) -> Any: ...
