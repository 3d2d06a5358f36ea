"""The number of devices, and torch's errors for a device that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tcuda._process.devices import _get_device_index, exchange_device
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda, is_initialized
from tcuda._runtime import visible_device_count

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument

_count: int | None = None
"""The number of devices of the process and of its forked children; None before initialisation."""

_in_use = 0
"""The number of devices; 0 before initialisation, and in a forked child, which must not use the devices."""


def device_count() -> int:
    """Return the number of devices, 0 without any (``torch.cuda.device_count``).

    The call creates no context, so that a process may still fork afterwards. The number is kept only once tcuda is
    initialised, because ``CUDA_VISIBLE_DEVICES`` may change until then.

    Example:
        >>> tcuda.device_count() >= 1
        True
    """
    return _count if _count is not None else _count_devices()


def _count_devices() -> int:
    global _count
    if is_initialized():
        _count = cuda.getDeviceCount()
        return _count
    try:
        return visible_device_count()
    except RuntimeError:  # CuPy is missing, and so there is no device
        return 0


def existing_device(device: DeviceArgument) -> int:
    """Return the index of ``device``; None and negative integers mean the current device.

    Raises:
        AcceleratorError: ``device`` does not exist.
    """
    index = _get_device_index(device, optional=True)
    if index < 0:
        return cuda.getDevice()
    exchange_device(exchange_device(index))
    return index


class DeviceRule(NamedTuple):
    """The errors of a function of torch for an index that no device has.

    Attributes:
        below: The error for a negative index; None where a negative index means the current device.
        above: The error for an index that is too large.
        text: The message, a format string with ``index``, ``count`` and ``last``.
        text_below: The message for a negative index; None if ``text`` serves for it too.
    """

    below: type[Exception] | None
    above: type[Exception]
    text: str
    text_below: str | None = None


OF_MEMORY = DeviceRule(
    RuntimeError,
    RuntimeError,
    "Invalid device argument {index}: did you call init? There are devices 0 to {last}.",
)
OF_STREAMS = DeviceRule(None, RuntimeError, "Device index value {index} is out of index range [0, {count})")
OF_GENERATORS = DeviceRule(
    RuntimeError,
    RuntimeError,
    "invalid device ordinal: cannot make a generator for device {index}; there are devices 0 to {last}.",
)
OF_RANDOM_STATES = DeviceRule(
    RuntimeError,
    IndexError,
    "index out of range: there is no generator for device {index}; the devices are 0 to {last}.",
    "Device index must not be negative; got {index}. The devices are 0 to {last}.",
)
OF_PROPERTIES = DeviceRule(
    AssertionError, AssertionError, "Invalid device id: {index}; there are {count} devices, counted from 0."
)
OF_PEERS = DeviceRule(
    AssertionError, AssertionError, "Invalid peer device id: {index}; there are {count} devices, counted from 0."
)


def resolve(device: DeviceArgument, rule: DeviceRule) -> int:
    """Return the index of ``device``; None means the current device.

    Args:
        device: See :data:`DeviceArgument`.
        rule: The errors for a device that does not exist.

    Raises:
        Exception: ``device`` does not exist; ``rule`` names the type of the error.
        RuntimeError: ``device`` is a text that names no device.
        ValueError: ``device`` is not a CUDA device.
    """
    if device is None:
        return cuda.getDevice()
    index = device if type(device) is int else _get_device_index(device, optional=True)
    count = _in_use or _count_in_use()
    if 0 <= index < count:
        return index
    error, text = rule.above, rule.text
    if index < 0:
        if rule.below is None:
            return cuda.getDevice()
        error, text = rule.below, rule.text_below or text
    raise error(text.format(index=index, count=count, last=count - 1))


def _count_in_use() -> int:
    """Initialise tcuda, and return the number of devices."""
    global _in_use
    _in_use = cuda.getDeviceCount()
    return _in_use


def _forget_in_child() -> None:
    global _in_use
    _in_use = 0


call_in_child(_forget_in_child)
