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
def start(*args: Any, **kwargs: Any) -> Any: ...
def stop(*args: Any, **kwargs: Any) -> Any: ...
