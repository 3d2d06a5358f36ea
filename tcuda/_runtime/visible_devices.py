"""The devices that ``CUDA_VISIBLE_DEVICES`` shows to a process."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLE = "CUDA_VISIBLE_DEVICES"
_INDEX = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]{1,20})")  # the text that strtoul reads; 64 bits have 20 digits
_UUID_DIGITS = 32


def visible(text: str | None, uuids: Sequence[str]) -> list[int]:
    """Return the devices that a process sees if ``CUDA_VISIBLE_DEVICES`` is ``text``, in their order for the process.

    The list ends at the first entry that names no device. A list that names a device twice shows no device. If the
    first entry begins with ``GPU-``, all entries are UUIDs or beginnings of UUIDs. Otherwise all entries are indices.
    CUDA counts in this way on an H200. ``tests/runtime/test_visible_devices.py`` records how CUDA reads text around an
    index or a UUID.

    Args:
        text: The value of the variable; None if the variable is not set, which shows every device.
        uuids: The UUIDs of all devices, with ``GPU-`` in front.
    """
    if text is None:
        return list(range(len(uuids)))
    find = _with_uuid if text.startswith("GPU-") else _at_index
    found: list[int] = []
    for entry in text.split(","):
        device = find(entry, uuids)
        if device is None:
            break
        if device in found:
            return []
        found.append(device)
    return found


def _at_index(entry: str, uuids: Sequence[str]) -> int | None:
    number = _INDEX.match(entry)
    if number is None or not 0 <= int(number[1]) < len(uuids):
        return None
    return int(number[1])


def _with_uuid(entry: str, uuids: Sequence[str]) -> int | None:
    digits = _digits(entry)
    if not digits or not entry.startswith("GPU-"):
        return None
    matches = [device for device, uuid in enumerate(uuids) if _digits(uuid).startswith(digits)]
    return matches[0] if len(matches) == 1 else None


def _digits(uuid: str) -> str:
    """Return the digits of a UUID; CUDA ignores hyphens, case, and any text after the 32nd digit."""
    return uuid.removeprefix("GPU-").replace("-", "").lower()[:_UUID_DIGITS]
