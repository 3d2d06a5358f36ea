"""Kernels compiled from CUDA C++."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import a_kind
from tcuda._process.lazy import _lazy_init, backend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._core import KernelFunction

_CAPABILITY = re.compile(r"[1-9][0-9]{1,2}[af]?")


def _compile_kernel(
    kernel_source: str,
    kernel_name: str,
    compute_capability: str | None = None,
    cuda_include_dirs: Sequence[str | os.PathLike[str]] | None = None,
    nvcc_options: Sequence[str] | None = None,
) -> KernelFunction:
    """Compile a kernel from CUDA C++ and return the kernel (``torch.cuda._compile_kernel``).

    The kernel is called ``kernel(grid, block, args, shared_mem, stream)``. ``grid`` and ``block`` are an int or 1 to 3
    ints, and ``stream`` is the current stream by default. A call only queues the work, and a graph captures the call.

    The compiler tells the type of each parameter, and each argument is converted to that type:

    * a pointer takes an array on a device, an address, or None for a null pointer. As in torch, a view passes the
      address of the first element, and the kernel has to know the strides;
    * an integer takes an int that fits;
    * ``float``, ``double``, ``__half`` and ``__nv_bfloat16`` take a float or an int;
    * ``bool`` takes a bool;
    * a struct takes ``numpy.void``, ``ctypes.Structure`` or other bytes of the right size; a struct of two reals also
      takes a complex;
    * a scalar of NumPy or ctypes fits only a parameter of the same type, so that no number loses digits.

    The other kernels of the source that are neither templates nor in a namespace are compiled at the same time, so a
    second call with such a name does not compile. A kernel belongs to no device. The first launch on another device
    loads the kernel there.

    Args:
        kernel_source: The source. ``extern "C"`` is not needed.
        kernel_name: The name of a kernel in the source, such as ``"scale"`` or, for a template, ``"scale<float>"``.
        compute_capability: The architecture, such as ``"90"``; by default the architecture of the current device.
        cuda_include_dirs: Folders with headers.
        nvcc_options: Options of the run-time compiler NVRTC, such as ``["--use_fast_math"]``.

    Raises:
        TypeError: ``kernel_source``, ``kernel_name`` or ``compute_capability`` is not a string, or
            ``cuda_include_dirs`` or ``nvcc_options`` is not a list of strings.
        ValueError: A name is empty, or ``compute_capability`` is no architecture.
        RuntimeError: The source cannot be compiled, or has no kernel of that name. The message has the compiler's text.

    Example:
        >>> source = "__global__ void scale(float *x, float by) { x[threadIdx.x] *= by; }"
        >>> scale = tcuda._compile_kernel(source, "scale")
        >>> x = xp.arange(4, dtype="float32")
        >>> scale((1,), (4,), (x, 0.5))
        >>> x
        array([0. , 0.5, 1. , 1.5], dtype=float32)
    """
    _require_text(kernel_source, "kernel_source")
    _require_text(kernel_name, "kernel_name")
    if compute_capability is not None:
        _require_text(compute_capability, "compute_capability")
        if _CAPABILITY.fullmatch(compute_capability) is None:
            raise ValueError(f'compute_capability must be digits such as "90" or "90a"; got {compute_capability!r}.')
    folders = [os.fspath(folder) for folder in _listed(cuda_include_dirs, "cuda_include_dirs", (str, os.PathLike))]
    options = _listed(nvcc_options, "nvcc_options", (str,))
    _lazy_init()
    return backend.compile_kernel(
        kernel_source, kernel_name, compute_capability, (*(f"-I{folder}" for folder in folders), *options)
    )


def _require_text(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str; got {a_kind(value)}.")
    if not value.strip():
        raise ValueError(f"{name} must not be empty.")


def _listed(value: Any, name: str, kinds: tuple[type, ...]) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        wrong = [item for item in value if not isinstance(item, kinds)]
        if not wrong:
            return list(value)
        raise TypeError(f"{name} must be a list of str; got {a_kind(wrong[0])} in the list.")
    raise TypeError(f"{name} must be a list of str; got {a_kind(value)}.")
