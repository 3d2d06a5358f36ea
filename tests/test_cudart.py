"""The CUDA runtime as torch hands it out, and how statuses become errors."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime

cudart: Any = tcuda.cudart()


def test_it_has_the_functions_that_torchs_has() -> None:
    names = (
        "cudaError cudaGetErrorString cudaHostRegister cudaHostUnregister cudaMemGetInfo cudaProfilerStart "
        "cudaProfilerStop cudaStreamCreate cudaStreamDestroy"
    )
    assert all(hasattr(cudart, name) for name in names.split())


def test_profiling_can_be_asked_for() -> None:
    tcuda.check_error(cudart.cudaProfilerStart())
    tcuda.check_error(cudart.cudaProfilerStop())


def test_host_memory_is_registered_once() -> None:
    memory = np.zeros(1 << 16)
    address = memory.ctypes.data
    tcuda.check_error(cudart.cudaHostRegister(address, memory.nbytes, 0))
    assert cudart.cudaHostRegister(address, memory.nbytes, 0) == 712
    tcuda.check_error(cudart.cudaHostUnregister(address))
    assert cudart.cudaHostUnregister(address) == 713


def test_a_stream_is_created_at_an_address_and_destroyed(runtime: Runtime) -> None:
    handle = ctypes.c_void_p()
    tcuda.check_error(cudart.cudaStreamCreate(ctypes.addressof(handle)))
    assert handle.value
    stream = tcuda.ExternalStream(handle.value)
    assert stream.query()
    assert runtime.streamGetFlags(handle.value) == 0
    assert cudart.cudaStreamDestroy(handle.value) == cudart.cudaError.success
    assert cudart.cudaStreamDestroy(0) == 400


def test_memory_is_told_and_a_bad_device_raised() -> None:
    assert cudart.cudaMemGetInfo(0) == tcuda.mem_get_info(0)
    with pytest.raises(tcuda.AcceleratorError):
        cudart.cudaMemGetInfo(99)


def test_statuses_have_names_and_texts() -> None:
    assert cudart.cudaError.success == 0
    status = cudart.cudaHostUnregister(4096)
    assert isinstance(status, cudart.cudaError)
    assert (int(status), status.name) == (713, "cudaErrorHostMemoryNotRegistered")
    assert cudart.cudaGetErrorString(status) == "pointer does not correspond to a registered memory region"
    assert list(cudart.cudaError) == [cudart.cudaError.success]
    with pytest.raises(ValueError, match="'a' is not a valid"):
        cudart.cudaError("a")


def test_check_error_raises_what_is_not_success() -> None:
    tcuda.check_error(0)
    with pytest.raises(tcuda.CudaError) as caught:
        tcuda.check_error(2)
    assert str(caught.value) == "out of memory (2)"
    assert str(tcuda.CudaError(98765)) == "unrecognized error code (98765)"
    with pytest.raises(TypeError, match="not 'a'"):
        tcuda.check_error("a")  # type: ignore[arg-type]


def test_torchs_two_constants() -> None:
    assert (tcuda.cudaStatus.SUCCESS, tcuda.cudaStatus.ERROR_NOT_READY) == (0, 34)


def test_the_types_of_errors_are_torchs() -> None:
    assert tcuda.AcceleratorError.__bases__ == tcuda.CudaError.__bases__ == (RuntimeError,)
    assert issubclass(tcuda.OutOfMemoryError, RuntimeError)
    assert tcuda.DeferredCudaCallError.__bases__ == (Exception,)


@pytest.mark.gpu
@pytest.mark.parametrize("status", [0, 1, 2, 35, 100, 101, 201, 400, 600, 712, 900, 901, 907, 908, 999])
def test_names_and_texts_are_those_of_the_library(status: int) -> None:
    from cupy.cuda.runtime import CUDARuntimeError

    from tcuda import _status

    assert str(CUDARuntimeError(status)) == f"{_status.name(status)}: {_status.text(status)}"
