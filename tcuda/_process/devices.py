"""Arguments that name a device, and the index of the device that an argument means."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Protocol, TypeAlias

from tcuda._process.lazy import cuda


class DeviceLike(Protocol):
    """An object that names a device as ``torch.device`` does."""

    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...


class CupyDevice(Protocol):
    """An object that names a device as ``cupy.cuda.Device`` does."""

    @property
    def id(self) -> int: ...
    def __int__(self) -> int: ...


DeviceArgument: TypeAlias = "int | str | DeviceLike | CupyDevice | None"
"""The type of every argument that names a device, for annotations.

A device is

* None or ``"cuda"``: the current device,
* an integer such as ``1``, the index of the device,
* a text such as ``"cuda:1"``,
* a ``torch.device``, or another object with ``type`` and ``index``,
* a ``cupy.cuda.Device``, or another object with ``id`` and ``int()``.

Example:
    >>> def memory_of(device: tcuda.DeviceArgument = None) -> int:
    ...     return tcuda.get_device_properties(device).total_memory  # bytes
    >>> memory_of("cuda:0") == memory_of(0)
    True
"""


class Device(NamedTuple):
    """The device of a stream, an event or an array.

    A device compares, hashes and prints by ``type`` and ``index``, as ``torch.device`` does. CuPy takes a device too,
    because of ``id`` and ``int()``.

    Attributes:
        type: Always ``"cuda"``.
        index: The place of the device in the list of visible devices.
    """

    type: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which no program needs here

    @property
    def id(self) -> int:
        """The index, under CuPy's name."""
        return self.index

    def __int__(self) -> int:
        return self.index

    def __index__(self) -> int:
        return self.index

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type={self.type!r}, index={self.index})"


_DEVICE_TYPES = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "mps", "meta", "hpu", "mtia", "xla", "privateuseone")
_FORMS = "A device is None, an int, 'cuda', 'cuda:1', a cupy.cuda.Device, or an object with type and index."
_NUMBER = re.compile(r"(?:gpu|cuda)?[:\s]*(\d+)", re.IGNORECASE)
_DEVICE_STRING = re.compile(r"([a-z]+)(?::(0|[1-9]\d*))?")


def _get_device_index(device: Any, optional: bool = False) -> int:
    """Return the index that ``device`` means; a negative integer is returned unchanged.

    Args:
        device: See :data:`DeviceArgument`.
        optional: Whether a device without an index (None, ``"cuda"``) means the current device.

    Raises:
        ValueError: ``device`` is not a CUDA device, or has no index and ``optional`` is false.
        RuntimeError: ``device`` is a truth value, or a text that names no device.
    """
    if type(device) is int:
        return device
    if isinstance(device, int):
        if isinstance(device, bool):  # torch's core refuses truth values too
            raise RuntimeError(f"invalid argument: the device is {device}; an index is an int, such as {int(device)}.")
        return device
    index = _index_of(device)
    if index is None:
        if not optional:
            raise ValueError(
                f"Expected a torch.device with a specified index or an integer, but got:{device}. This call needs an "
                "index: an int such as 0, 'cuda:0', or a device with an index."
            )
        return cuda.getDevice()
    return index


def _index_of(device: Any) -> int | None:
    if device is None:
        return None
    if isinstance(device, str):
        return _parse(device)
    kind, index = getattr(device, "type", None), getattr(device, "index", None)
    if isinstance(kind, str) and (index is None or isinstance(index, int)):
        if kind != "cuda":
            raise _other_kind(kind, device)
        return index
    idx = getattr(device, "idx", None)  # tcuda.device, torch.cuda.device
    if isinstance(idx, int):
        return idx
    id_ = getattr(device, "id", None)  # cupy.cuda.Device
    if isinstance(id_, int) and hasattr(device, "__int__"):
        return id_
    raise ValueError(
        f"Expected a torch.device with a specified index or an integer, but got:{device} (a "
        f"{type(device).__name__}). {_FORMS}"
    )


def is_device(device: Any) -> bool:
    """Return whether ``device`` has a type that can name a device, of CUDA or of another kind."""
    if device is None or isinstance(device, (int, str)) or isinstance(getattr(device, "type", None), str):
        return True
    return any(isinstance(getattr(device, name, None), int) for name in ("idx", "id"))


def _parse(text: str) -> int | None:
    kind = text.partition(":")[0]
    if kind not in _DEVICE_TYPES:
        raise RuntimeError(
            f"Expected one of {', '.join(_DEVICE_TYPES)} device type at start of device string: {text}. "
            f"{_meant(text)}{_FORMS}"
        )
    match = _DEVICE_STRING.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: {text!r}. {_FORMS}")
    if kind != "cuda":
        raise _other_kind(kind, text)
    return None if match[2] is None else int(match[2])


def _other_kind(kind: str, device: object) -> ValueError:
    """Return the error for a device that is not CUDA's, in the words of ``torch.cuda`` and of ``torch.accelerator``."""
    return ValueError(
        f"Expected a cuda device, but got: {device}. {kind} doesn't match the current accelerator cuda. {_FORMS}"
    )


def _meant(text: str) -> str:
    """Return a question with the name that a text such as ``"gpu:0"`` stands for; nothing for other texts."""
    number = _NUMBER.fullmatch(text.strip())
    if number is not None:
        return f"Did you mean 'cuda:{int(number[1])}'? "
    return "Did you mean 'cuda'? " if text.strip().lower() in ("gpu", "cuda") else ""


def exchange_device(index: int) -> int:
    """Make the device ``index`` current, and return the previous device; a negative ``index`` changes nothing."""
    if index < 0:
        return -1
    previous = cuda.getDevice()
    if previous != index:
        cuda.setDevice(index)
    return previous
