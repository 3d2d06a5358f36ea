"""``tcuda.cudart()``, the functions of the CUDA runtime that torch has, and the errors for statuses."""

from __future__ import annotations

import ctypes
import pickle
import sys
import traceback
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime

cudart: Any = tcuda.cudart()


def test_cudart_has_the_functions_of_torch() -> None:
    names = (
        "cudaError cudaGetErrorString cudaHostRegister cudaHostUnregister cudaMemGetInfo cudaProfilerStart "
        "cudaProfilerStop cudaStreamCreate cudaStreamDestroy"
    )
    assert all(hasattr(cudart, name) for name in names.split())


def test_profiling_can_be_started_and_stopped() -> None:
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


NO_WHOLE_NUMBERS: tuple[Any, ...] = ("x", b"x", None, 1.0, float("nan"), [1], (1,), {}, 1j, object(), np.float32(1))
TOO_LARGE = (1 << 63, 10**5000, -1, -(10**5000))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cudaError", [0]),
        ("cudaGetErrorString", [0]),
        ("cudaHostRegister", [4096, 4096, 0]),
        ("cudaHostUnregister", [4096]),
        ("cudaMemGetInfo", [0]),
        ("cudaStreamCreate", [4096]),
        ("cudaStreamDestroy", [4096]),
    ],
)
def test_a_wrong_argument_is_a_type_error_that_says_what_to_pass(name: str, arguments: list[int]) -> None:
    function = getattr(cudart, name)
    for position in range(len(arguments)):
        bad = NO_WHOLE_NUMBERS if name in ("cudaError", "cudaMemGetInfo") else (*NO_WHOLE_NUMBERS, *TOO_LARGE)
        for value in bad:
            if name == "cudaGetErrorString" and value == -1:
                continue
            with pytest.raises(TypeError) as caught:
                function(*arguments[:position], value, *arguments[position + 1 :])
            assert str(caught.value).startswith(f"{name}() takes ")
            assert len(str(caught.value)) < 300
    for count in (len(arguments) - 1, len(arguments) + 1) if name != "cudaError" else (0,):
        with pytest.raises(TypeError):
            function(*[*arguments, 0][:count])


@pytest.mark.parametrize("name", ["cudaProfilerStart", "cudaProfilerStop"])
def test_functions_without_parameters_take_none(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(cudart, name)(1)


def test_an_address_that_cannot_be_written_is_refused(runtime: Runtime) -> None:
    constant = ctypes.cast(ctypes.pythonapi.Py_GetVersion, ctypes.c_void_p).value  # code is read-only
    for address in (1, 4096, constant, (1 << 63) - 1):
        with pytest.raises(TypeError, match=f"memory at {address:#x} cannot be written"):
            cudart.cudaStreamCreate(address)
    assert cudart.cudaStreamCreate(0) == 1
    unaligned = (ctypes.c_char * 16)()
    tcuda.check_error(cudart.cudaStreamCreate(ctypes.addressof(unaligned) + 3))
    handle = int.from_bytes(unaligned[3:11], sys.byteorder)
    assert runtime.streamGetFlags(handle) == 0
    assert unaligned[:3] + unaligned[11:] == bytes(8)
    tcuda.check_error(cudart.cudaStreamDestroy(handle))


def test_only_streams_of_cudart_are_destroyed_and_only_once() -> None:
    handle = ctypes.c_uint64()
    tcuda.check_error(cudart.cudaStreamCreate(ctypes.addressof(handle)))
    tcuda.check_error(cudart.cudaStreamDestroy(handle.value))
    kept = tcuda.Stream()
    for other in (handle.value, kept.cuda_stream, 4096, (1 << 63) - 1):
        with pytest.raises(TypeError, match=f"{other:#x} is not such a handle, or its stream is destroyed already"):
            cudart.cudaStreamDestroy(other)
    assert kept.query()


def test_integers_of_numpy_are_taken() -> None:
    memory = np.zeros(1 << 16)
    address = np.uint64(memory.ctypes.data)
    tcuda.check_error(cudart.cudaHostRegister(address, np.int64(memory.nbytes), np.int8(0)))
    tcuda.check_error(cudart.cudaHostUnregister(address))


def test_host_memory_that_cannot_be_registered_is_a_status() -> None:
    assert cudart.cudaHostRegister(0, 4096, 0) == 1
    assert cudart.cudaHostRegister(np.zeros(8).ctypes.data, 0, 0) == 1


@pytest.mark.alone
def test_memory_info_is_returned_and_a_bad_device_raises() -> None:
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
    with pytest.raises(TypeError, match=r"^cudaError\(\) takes the number of a status, an int, not 'a'$"):
        cudart.cudaError("a")


def test_check_error_raises_for_every_status_but_success() -> None:
    tcuda.check_error(0)
    with pytest.raises(tcuda.CudaError) as caught:
        tcuda.check_error(2)
    assert str(caught.value) == "out of memory (2)"
    assert str(tcuda.CudaError(98765)) == "unrecognized error code (98765)"
    with pytest.raises(TypeError, match="not 'a'"):
        tcuda.check_error("a")  # type: ignore[arg-type]


def test_cudastatus_has_the_constants_of_torch() -> None:
    assert (tcuda.cudaStatus.SUCCESS, tcuda.cudaStatus.ERROR_NOT_READY) == (0, 34)


def test_the_types_of_errors_are_torchs() -> None:
    assert tcuda.AcceleratorError.__bases__ == tcuda.CudaError.__bases__ == (RuntimeError,)
    assert issubclass(tcuda.OutOfMemoryError, RuntimeError)
    assert tcuda.DeferredCudaCallError.__bases__ == (Exception,)


@pytest.mark.gpu
@pytest.mark.parametrize("status", [0, 1, 2, 35, 100, 101, 201, 400, 600, 712, 900, 901, 907, 908, 999])
def test_names_and_texts_are_those_of_the_library(status: int) -> None:
    from cupy.cuda.runtime import CUDARuntimeError

    from tcuda._base import statuses

    assert str(CUDARuntimeError(status)) == f"{statuses.name(status)}: {statuses.text(status)}"


def test_errors_have_their_public_names_in_tracebacks_and_pickles() -> None:
    for name in ("AcceleratorError", "CudaError", "DeferredCudaCallError", "OutOfMemoryError"):
        kind = getattr(tcuda, name)
        assert (kind.__module__, kind.__qualname__) == ("tcuda", name)
        error = kind(2) if name in ("AcceleratorError", "CudaError") else kind("text")
        assert traceback.format_exception_only(error)[0].startswith(f"tcuda.{name}: ")
        assert type(pickle.loads(pickle.dumps(error))) is kind
