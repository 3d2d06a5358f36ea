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
class CUDADriverError(Exception): ...
CUDA_ERROR_INVALID_VALUE: Any
CU_AD_FORMAT_FLOAT: Any
CU_AD_FORMAT_HALF: Any
CU_AD_FORMAT_SIGNED_INT16: Any
CU_AD_FORMAT_SIGNED_INT32: Any
CU_AD_FORMAT_SIGNED_INT8: Any
CU_AD_FORMAT_UNSIGNED_INT16: Any
CU_AD_FORMAT_UNSIGNED_INT32: Any
CU_AD_FORMAT_UNSIGNED_INT8: Any
CU_FUNC_ATTRIBUTE_BINARY_VERSION: Any
CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: Any
CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: Any
CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: Any
CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: Any
CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: Any
CU_FUNC_ATTRIBUTE_NUM_REGS: Any
CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: Any
CU_FUNC_ATTRIBUTE_PTX_VERSION: Any
CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: Any
CU_JIT_CACHE_MODE: Any
CU_JIT_ERROR_LOG_BUFFER: Any
CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: Any
CU_JIT_FALLBACK_STRATEGY: Any
CU_JIT_FAST_COMPILE: Any
CU_JIT_FMA: Any
CU_JIT_FTZ: Any
CU_JIT_GENERATE_DEBUG_INFO: Any
CU_JIT_GENERATE_LINE_INFO: Any
CU_JIT_GLOBAL_SYMBOL_ADDRESSES: Any
CU_JIT_GLOBAL_SYMBOL_COUNT: Any
CU_JIT_GLOBAL_SYMBOL_NAMES: Any
CU_JIT_INFO_LOG_BUFFER: Any
CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: Any
CU_JIT_INPUT_CUBIN: Any
CU_JIT_INPUT_FATBINARY: Any
CU_JIT_INPUT_LIBRARY: Any
CU_JIT_INPUT_NVVM: Any
CU_JIT_INPUT_OBJECT: Any
CU_JIT_INPUT_PTX: Any
CU_JIT_LOG_VERBOSE: Any
CU_JIT_LTO: Any
CU_JIT_MAX_REGISTERS: Any
CU_JIT_NEW_SM3X_OPT: Any
CU_JIT_NUM_OPTIONS: Any
CU_JIT_OPTIMIZATION_LEVEL: Any
CU_JIT_PREC_DIV: Any
CU_JIT_PREC_SQRT: Any
CU_JIT_TARGET: Any
CU_JIT_TARGET_FROM_CUCONTEXT: Any
CU_JIT_THREADS_PER_BLOCK: Any
CU_JIT_WALL_TIME: Any
CU_TRSA_OVERRIDE_FORMAT: Any
CU_TRSF_NORMALIZED_COORDINATES: Any
CU_TRSF_READ_AS_INTEGER: Any
CU_TRSF_SRGB: Any
CU_TR_ADDRESS_MODE_BORDER: Any
CU_TR_ADDRESS_MODE_CLAMP: Any
CU_TR_ADDRESS_MODE_MIRROR: Any
CU_TR_ADDRESS_MODE_WRAP: Any
CU_TR_FILTER_MODE_LINEAR: Any
CU_TR_FILTER_MODE_POINT: Any
def check_status(*args: Any, **kwargs: Any) -> Any: ...
def ctxCreate(*args: Any, **kwargs: Any) -> Any: ...
def ctxDestroy(*args: Any, **kwargs: Any) -> Any: ...
def ctxGetCurrent(*args: Any, **kwargs: Any) -> Any: ...
def ctxGetDevice(*args: Any, **kwargs: Any) -> Any: ...
def ctxSetCurrent(*args: Any, **kwargs: Any) -> Any: ...
def devicePrimaryCtxRelease(*args: Any, **kwargs: Any) -> Any: ...
def funcGetAttribute(*args: Any, **kwargs: Any) -> Any: ...
def funcSetAttribute(*args: Any, **kwargs: Any) -> Any: ...
def get_build_version(*args: Any, **kwargs: Any) -> Any: ...
def launchCooperativeKernel(*args: Any, **kwargs: Any) -> Any: ...
def launchKernel(*args: Any, **kwargs: Any) -> Any: ...
def linkAddData(*args: Any, **kwargs: Any) -> Any: ...
def linkAddFile(*args: Any, **kwargs: Any) -> Any: ...
def linkComplete(*args: Any, **kwargs: Any) -> Any: ...
def linkCreate(*args: Any, **kwargs: Any) -> Any: ...
def linkDestroy(*args: Any, **kwargs: Any) -> Any: ...
def moduleGetFunction(*args: Any, **kwargs: Any) -> Any: ...
def moduleGetGlobal(*args: Any, **kwargs: Any) -> Any: ...
def moduleLoad(*args: Any, **kwargs: Any) -> Any: ...
def moduleLoadData(*args: Any, **kwargs: Any) -> Any: ...
def moduleUnload(*args: Any, **kwargs: Any) -> Any: ...
def occupancyMaxActiveBlocksPerMultiprocessor(*args: Any, **kwargs: Any) -> Any: ...
def occupancyMaxPotentialBlockSize(*args: Any, **kwargs: Any) -> Any: ...
def streamGetCtx(*args: Any, **kwargs: Any) -> Any: ...
