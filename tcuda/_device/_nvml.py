"""Telemetry of the devices: utilisation, temperature, power, energy, clock rate, memory and processes (NVML).

tcuda finds a device in NVML by the UUID that CUDA gives the device. So the device is right under any
``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER``. torch parses the first variable and ignores the second, and can ask
about another GPU under CUDA's default order.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tcuda._process.devices import _get_device_index
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument

_TEMPERATURE_GPU = 0  # NVML_TEMPERATURE_GPU: the sensor on the die
_CLOCK_SM = 1  # NVML_CLOCK_SM
_WITHOUT_COUNTER = (3, 13)  # NVML_ERROR_NOT_SUPPORTED, and NVML_ERROR_FUNCTION_NOT_FOUND of an old driver


_HAS_PYNVML = True
"""Whether the functions below can ask NVML (``torch.cuda._HAS_PYNVML``); True, because tcuda depends on nvidia-ml-py.

Example:
    >>> tcuda._HAS_PYNVML
    True
"""


def _get_pynvml_handler(device: DeviceArgument = None) -> Any:
    """Return NVML's handle of a device, for the functions of ``pynvml`` (``torch.cuda._get_pynvml_handler``).

    ``pynvml`` does not know emulated devices, and takes no handle of them.

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: The device is not visible, or NVML has no answer for it.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> handle = tcuda._get_pynvml_handler()
    """
    return _session().handle(_get_device_index(device, optional=True))


def utilization(device: DeviceArgument = None) -> int:
    """Return the percentage of the last sample period in which a kernel ran (``torch.cuda.utilization``).

    The source is ``nvmlDeviceGetUtilizationRates``. The sample period is between 1/6 s and 1 s, by the kind of GPU.

    Args:
        device: The device; None for the current one.

    Returns:
        A percentage from 0 to 100.

    Raises:
        RuntimeError: The device is not visible, or NVML has no answer for it.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> 0 <= tcuda.utilization() <= 100  # percent
        True
    """
    return int(_ask("nvmlDeviceGetUtilizationRates", device).gpu)


def memory_usage(device: DeviceArgument = None) -> int:
    """Return the percentage of the last sample period in which device memory was read or written.

    The function is ``torch.cuda.memory_usage``. The percentage is a share of time; :func:`device_memory_used` returns
    the bytes in use. The source is ``nvmlDeviceGetUtilizationRates``. The sample period is between 1/6 s and 1 s, by
    the kind of GPU.

    Args:
        device: The device; None for the current one.

    Returns:
        A percentage from 0 to 100.

    Raises:
        RuntimeError: The device is not visible, or NVML has no answer for it.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> 0 <= tcuda.memory_usage() <= 100  # percent
        True
    """
    return int(_ask("nvmlDeviceGetUtilizationRates", device).memory)


def temperature(device: DeviceArgument = None) -> int:
    """Return the temperature of the die in degrees Celsius (``torch.cuda.temperature``).

    The source is ``nvmlDeviceGetTemperature``.

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: The device is not visible, or NVML has no answer for it.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.temperature() > 0  # degrees Celsius
        True
    """
    return int(_ask("nvmlDeviceGetTemperature", device, _TEMPERATURE_GPU))


def power_draw(device: DeviceArgument = None) -> int:
    """Return the power draw of the whole board in milliwatts (``torch.cuda.power_draw``).

    The source is ``nvmlDeviceGetPowerUsage``. On most GPUs since Ampere the value is the average over one second.

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: The device is not visible, or NVML has no answer for it.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> watts = tcuda.power_draw() / 1000
        >>> watts > 0
        True
    """
    return int(_ask("nvmlDeviceGetPowerUsage", device))


def total_energy(device: DeviceArgument = None) -> int:
    """Return the energy that the whole board has used since the driver was loaded, in millijoules.

    Raises:
        RuntimeError: The device is not visible, or NVML has no answer for it.
        ValueError: ``device`` is not a CUDA device, or has no counter of energy.
    """
    try:
        return int(_ask("nvmlDeviceGetTotalEnergyConsumption", device))
    except RuntimeError as error:
        if getattr(error.__cause__, "value", None) not in _WITHOUT_COUNTER:
            raise
        raise ValueError(
            f"The device has no counter of energy, which NVML has for GPUs since Volta: {error} Read "
            "tcuda.power_draw() at intervals in place of the counter."
        ) from error


def clock_rate(device: DeviceArgument = None) -> int:
    """Return the present clock rate of the multiprocessors in megahertz (``torch.cuda.clock_rate``).

    The source is ``nvmlDeviceGetClockInfo``.

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: The device is not visible, or NVML has no answer for it.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.clock_rate() > 0  # megahertz
        True
    """
    return int(_ask("nvmlDeviceGetClockInfo", device, _CLOCK_SM))


def process_memory(device: DeviceArgument = None) -> int | None:
    """Return the bytes of device memory that all libraries of this process use; None if NVML has no answer."""
    try:
        processes = _ask("nvmlDeviceGetComputeRunningProcesses", device)
    except RuntimeError:
        return None
    own = [process.usedGpuMemory for process in processes if process.pid == os.getpid()]
    return int(own[0]) if own and own[0] is not None else None


def device_memory_used(device: DeviceArgument = None) -> int:
    """Return the bytes of device memory that all processes and the driver use (``torch.cuda.device_memory_used``).

    The source is ``nvmlDeviceGetMemoryInfo``.

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: The device is not visible, or NVML has no answer for it.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> x = xp.zeros(1000)
        >>> tcuda.device_memory_used() >= tcuda.memory_reserved()  # bytes
        True
    """
    return int(_ask("nvmlDeviceGetMemoryInfo", device).used)


def list_gpu_processes(device: DeviceArgument = None) -> str:
    """Return a text that lists the processes on a device with their memory (``torch.cuda.list_gpu_processes``).

    The source is ``nvmlDeviceGetComputeRunningProcesses``. The first line has NVML's index of the device, as in
    ``nvidia-smi`` and torch. Every other line has a process and its memory, in MB of 1024**2 bytes.

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: The device is not visible, or NVML has no answer for it. If the driver is not loaded, the function
            returns a text that says so, and raises no error.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> print(tcuda.list_gpu_processes())
        GPU:...
    """
    try:
        processes = _ask("nvmlDeviceGetComputeRunningProcesses", device)
    except _DriverNotLoadedError as error:
        return str(error)
    lines = [f"GPU:{_ask('nvmlDeviceGetIndex', device)}"]
    if not processes:
        lines.append("no processes are running")
    for process in processes:
        amount = "an unknown amount of"
        if process.usedGpuMemory is not None:  # the value is None if Windows manages the memory
            amount = f"{process.usedGpuMemory / 1024**2:>12.3f} MB"
        lines.append(f"process {process.pid:>10d} uses {amount} GPU memory")
    return "\n".join(lines)


class _DriverNotLoadedError(RuntimeError):
    """NVML is installed, and the driver is not loaded."""


class _Session:
    """The initialised NVML and the handles of its devices, both of which last until the process ends."""

    def __init__(self) -> None:
        self._nvml = cuda.nvml()
        self._handles: dict[int, Any] = {}
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError_DriverNotLoaded as error:
            raise _DriverNotLoadedError("cuda driver can't be loaded, is cuda enabled?") from error
        except self._nvml.NVMLError as error:
            raise RuntimeError(f"nvmlInit failed: NVML says {str(error)!r}.") from error

    def close(self) -> None:
        """End this use of NVML, which counts its uses."""
        self._nvml.nvmlShutdown()

    def ask(self, query: str, device: int, *arguments: int) -> Any:
        """Return the answer of NVML's function ``query`` for ``device``."""
        try:
            return getattr(self._nvml, query)(self._handle(device), *arguments)
        except self._nvml.NVMLError as error:
            raise self._failure(query, device, error) from error

    def handle(self, device: int) -> Any:
        """Return NVML's handle of ``device``."""
        try:
            return self._handle(device)
        except self._nvml.NVMLError as error:
            raise self._failure("nvmlDeviceGetHandleByUUID", device, error) from error

    def _failure(self, query: str, device: int, error: Exception) -> RuntimeError:
        return RuntimeError(f"{query} failed for device {device}: NVML says {str(error)!r}.")

    def _handle(self, device: int) -> Any:
        handle = self._handles.get(device)
        if handle is None:
            handle = self._handles[device] = self._find(device)
        return handle

    def _find(self, device: int) -> Any:
        visible = cuda.getDeviceCount()
        if not 0 <= device < visible:
            raise RuntimeError(
                f"device {device} is not visible (CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES')!r}); "
                f"visible devices: {visible}"
            )
        import uuid  # here, because the import takes long

        name = uuid.UUID(bytes=cuda.getDeviceProperties(device)["uuid"])
        try:
            return self._nvml.nvmlDeviceGetHandleByUUID(f"GPU-{name}")
        except self._nvml.NVMLError_NotFound:
            return self._nvml.nvmlDeviceGetHandleByUUID(f"MIG-{name}")


_sessions: dict[str, _Session] = {}
"""The session of this process under the key ``"open"``, in a dictionary because its ``setdefault`` is atomic."""


def _ask(query: str, device: DeviceArgument, *arguments: int) -> Any:
    """Return the answer of NVML's function ``query`` for ``device``; initialise tcuda and NVML first if necessary."""
    return _session().ask(query, _get_device_index(device, optional=True), *arguments)


def _session() -> _Session:
    return _sessions.get("open") or _open()


def _open() -> _Session:
    """Initialise NVML and keep the session, unless another caller was faster.

    No lock is held, because finalizers and signal handlers that run meanwhile may ask NVML too.
    """
    made = _Session()
    kept = _sessions.setdefault("open", made)
    if kept is not made:
        made.close()
    return kept


# A child has to initialise NVML again.
call_in_child(_sessions.clear)
