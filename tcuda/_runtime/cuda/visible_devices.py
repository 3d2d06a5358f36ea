"""The number of devices that CUDA will show, found without a CUDA context, so that a later ``fork`` stays possible.

This module reads ``CUDA_VISIBLE_DEVICES`` only to count the devices. The device that an index means depends
also on ``CUDA_DEVICE_ORDER``, and only CUDA knows that device.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import TYPE_CHECKING, Any

from tcuda._runtime.visible_devices import VARIABLE, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


def count(cuda_major: int = 0, environ: Mapping[str, str] | None = None) -> int | None:
    """Return the number of devices that CUDA will show, by NVML and ``CUDA_VISIBLE_DEVICES``.

    Args:
        cuda_major: The major version of the CUDA runtime, to which an older driver shows no device.
        environ: The environment with ``CUDA_VISIBLE_DEVICES``; ``os.environ`` if None.

    Returns:
        The number, or None if NVML has no answer: NVML is missing, a call of NVML failed, a GPU is in MIG mode and the
        variable does not name a MIG device, or the variable names a MIG device that NVML does not know. The function
        never raises.
    """
    text = (os.environ if environ is None else environ).get(VARIABLE)
    if text == "":
        return 0
    try:
        import pynvml
    except ImportError:
        return None
    try:
        with _initialized(pynvml):
            if pynvml.nvmlSystemGetCudaDriverVersion_v2() // 1000 < cuda_major:
                return 0
            uuids, partitioned = _gpus(pynvml)
            if partitioned and (text is None or not text.startswith("MIG-")):
                return None
            return count_visible(text, uuids, lambda uuid: _exists(pynvml, uuid))
    except pynvml.NVMLError:
        return None


def any_by_driver() -> bool:
    """Return whether the driver shows a device; the answer needs no CUDA runtime library and no CuPy."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    devices = ctypes.c_int()
    return not driver.cuInit(0) and not driver.cuDeviceGetCount(ctypes.byref(devices)) and devices.value > 0


def count_visible(text: str | None, uuids: Sequence[str], exists: Callable[[str], bool]) -> int | None:
    """Return the number of devices that CUDA shows if ``CUDA_VISIBLE_DEVICES`` is ``text``.

    Args:
        text: The value of the variable; None if the variable is not set, which shows every device.
        uuids: The UUIDs of all GPUs, with ``GPU-`` in front.
        exists: A function that returns whether a MIG device has the given name.

    Returns:
        The number, or None for a MIG device whose name ``exists`` does not know. CUDA may know such a device by a part
        of its UUID.
    """
    if text is not None and text.startswith("MIG-"):
        return 1 if exists(text.split(",")[0]) else None  # CUDA shows at most one MIG device to a process
    return len(visible(text, uuids))


@contextlib.contextmanager
def _initialized(pynvml: Any) -> Iterator[None]:
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _gpus(pynvml: Any) -> tuple[list[str], bool]:
    """Return the UUIDs of all GPUs, and whether one of them is in MIG mode."""
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    uuids = [pynvml.nvmlDeviceGetUUID(handle) for handle in handles]
    return uuids, any(_in_mig_mode(pynvml, handle) for handle in handles)


def _in_mig_mode(pynvml: Any, handle: Any) -> bool:
    try:
        current, _after_reset = pynvml.nvmlDeviceGetMigMode(handle)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):  # a GPU or a driver without MIG
        return False
    return bool(current == pynvml.NVML_DEVICE_MIG_ENABLE)


def _exists(pynvml: Any, uuid: str) -> bool:
    try:
        pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except (pynvml.NVMLError_NotFound, pynvml.NVMLError_InvalidArgument):
        return False
    return True
