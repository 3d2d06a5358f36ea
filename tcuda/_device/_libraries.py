"""The libraries of CUDA that CuPy uses on a device: the run-time compiler, cuBLAS and cuSOLVER."""

from __future__ import annotations

from tcuda._backend import backend_of
from tcuda._device._current import is_available
from tcuda._process.lazy import backend
from tcuda._runtime import runtime


def get_arch_list() -> list[str]:
    """Return the architectures that run-time compiled kernels can target, such as ``["sm_80", "sm_90"]``.

    ``torch.cuda.get_arch_list`` returns the architectures for which torch's own kernels were built. CuPy compiles
    kernels at run time, so this function returns the architectures that the NVRTC in use can target
    (``nvrtcGetSupportedArchs``). The list is empty if no device exists.

    Example:
        >>> major, minor = tcuda.get_device_capability()
        >>> f"sm_{major}{minor}" in tcuda.get_arch_list()
        True
    """
    return [f"sm_{arch}" for arch in backend_of(runtime()).supported_archs()] if is_available() else []


def get_gencode_flags() -> str:
    """Return :func:`get_arch_list` as flags for ``nvcc`` (``torch.cuda.get_gencode_flags``).

    Example:
        >>> flags = tcuda.get_gencode_flags().split()
        >>> len(flags) == 2 * len(tcuda.get_arch_list())  # "-gencode" and its value
        True
    """
    archs = [arch.partition("_")[2] for arch in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{arch},code=sm_{arch}" for arch in archs)


def current_blas_handle() -> int:
    """Return the ``cublasHandle_t`` that CuPy uses in this thread on the current device.

    On an emulated device, the result is a number that identifies the thread and the device. No library accepts this
    number.

    Example:
        >>> handle = tcuda.current_blas_handle()
        >>> handle == tcuda.current_blas_handle()  # one handle for a thread and a device
        True
    """
    return backend.blas_handle()


def current_solver_handle() -> int:
    """Return the ``cusolverDnHandle_t`` that CuPy uses in this thread on the current device.

    On an emulated device, the result is a number that identifies the thread and the device. No library accepts this
    number.

    Example:
        >>> handle = tcuda.current_solver_handle()
        >>> handle == tcuda.current_solver_handle()  # one handle for a thread and a device
        True
    """
    return backend.solver_handle()
