"""The options of the allocator, read from the text of an environment variable: ``TCUDA_ALLOC_CONF``.

The names and the spelling are those of ``PYTORCH_CUDA_ALLOC_CONF``. torch's variables are read if ``TCUDA_ALLOC_CONF``
is not set.
"""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from typing import TYPE_CHECKING, NamedTuple

from tcuda._base.errors import AllocatorSettingsError
from tcuda._base.warnings import stacklevel
from tcuda._core import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MIB = 1 << 20
_MOST = (1 << 64) - 1  # torch's limit of all whole numbers
_MOST_MIB = (1 << 63) // _MIB - 1  # the core counts bytes in 63 bits, and no device has more memory
_MOST_DIVISIONS = 1 << 32  # the largest sizes then have steps of a few bytes, and more would change nothing
_MOST_THREADS = 128  # torch's limit
_SHOWN = 200  # the most characters of a text that a message shows
_LARGE_SEGMENT = 20  # MiB; a limit for splitting cannot be smaller than a segment
_OWN_SEGMENT = 10  # MiB; torch gives an array of this size a segment of its own
_STEPS = 16  # sizes below 2 MiB, below 4 MiB, ... below 32 GiB, and from 32 GiB
BACKENDS = ("native", "cupy", "cudaMallocAsync")
_VARIABLES = ("TCUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_NATIVE = (
    "expandable_segments",
    "garbage_collection_threshold",
    "max_non_split_rounding_mb",
    "max_split_size_mb",
    "roundup_power2_divisions",
    "throw_on_cudamalloc_oom",
    "trim",
)
"""The options that only the backend ``native`` follows."""


class AllocConf(NamedTuple):
    """The options of the allocator.

    Attributes:
        text: The text from which the options were read.
        backend: ``"native"``, ``"cupy"`` or ``"cudaMallocAsync"``; None if the text does not name it.
        max_split_size: The size in bytes from which blocks are not split; -1 if blocks of any size are split.
        max_non_split_rounding: By how many bytes a block that is not split may exceed the request.
        garbage_collection_threshold: The share of the memory limit above which unused blocks are freed; 0 for never.
        expandable_segments: Whether segments grow by mapping memory.
        trim_always: Whether free memory goes back to the driver whenever an allocation needs new memory.
        rejects_beyond_limit: Whether an allocation beyond the memory limit fails at once.
        roundup_power2_divisions: The number of steps into which each power of two is divided: of sizes below 2 MiB,
            from 2 MiB, from 4 MiB, ... and from 32 GiB.
        pinned_use_register: Whether page-locked memory is memory of the process that the driver locks.
        pinned_threads: The number of threads that touch such memory before.
        pinned_reserve: The bytes of the first segment of page-locked memory for small blocks; 0 for the usual size.
        pinned_background: Whether a thread asks the devices about freed page-locked memory.
        memory_fraction: The share of a device's memory that may be reserved; None if the text does not name it.
    """

    text: str = ""
    backend: str | None = None
    max_split_size: int = -1
    max_non_split_rounding: int = _LARGE_SEGMENT * _MIB
    garbage_collection_threshold: float = 0.0
    expandable_segments: bool = True
    trim_always: bool = False
    rejects_beyond_limit: bool = False
    roundup_power2_divisions: list[int] = [0] * _STEPS
    memory_fraction: float | None = None
    pinned_use_register: bool = False
    pinned_threads: int = 1
    pinned_reserve: int = 0
    pinned_background: bool = False

    def settings(self) -> Settings:
        """Return the options of the caching allocator."""
        settings = Settings()
        if self.max_split_size >= 0:
            settings.max_split_size = self.max_split_size
        settings.max_non_split_rounding = self.max_non_split_rounding
        settings.garbage_collection_threshold = self.garbage_collection_threshold
        settings.expandable_segments = self.expandable_segments
        settings.trim_always = self.trim_always
        settings.rejects_beyond_limit = self.rejects_beyond_limit
        settings.roundup_power2_divisions = self.roundup_power2_divisions
        return settings


def from_environment(environ: Mapping[str, str]) -> AllocConf:
    """Return the options of the first variable that is set.

    Raises:
        AllocatorSettingsError: An option in the variable is unknown, or has a value that the option cannot have.
    """
    for name in _VARIABLES:
        if name in environ:
            return parse(environ[name], name)
    return AllocConf()


def parse(text: str, where: str = "The allocator's settings") -> AllocConf:
    """Return the options in ``text``, such as ``"max_split_size_mb:128,expandable_segments:False"``.

    White space counts nowhere. The last value of an option counts.

    Args:
        text: Options and values, ``name:value``, with commas between them.
        where: The name of the text in messages.

    Raises:
        AllocatorSettingsError: An option is unknown, or has a value that the option cannot have.
    """
    values: dict[str, object] = {}
    named = []
    for option in re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", re.sub(r"\s+", "", text, flags=re.ASCII)):
        name, colon, value = option.partition(":")
        if not name and not colon:
            continue
        if name not in _READERS:
            raise AllocatorSettingsError(
                f"{where}: there is no option {_shown(name)} (in {_shown(text)}). The options are: "
                f"{', '.join(sorted(_READERS))}."
            )
        field, read = _READERS[name]
        try:
            found = read(value)
        except _NotAllowedError as allowed:
            raise AllocatorSettingsError(f"{where}: {name} is {_shown(value)}; it can be {allowed}.") from None
        if field is not None:
            values[field] = found
        if name in _NATIVE and name not in named:
            named.append(name)
    if named and values.get("backend", "native") != "native":
        warnings.warn(
            f"{where}: backend:{values['backend']} ignores {', '.join(named)}. Only backend:native has free memory of "
            "its own.",
            stacklevel=stacklevel(),
        )
    return AllocConf(text=text, **values)  # type: ignore[arg-type]


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


class _NotAllowedError(Exception):
    """The value of an option is not allowed; the message names the values that are allowed."""


def _read_backend(value: str) -> str:
    if value not in BACKENDS:
        raise _NotAllowedError(" or ".join(map(repr, BACKENDS)))
    return value


def _mebibytes(least: int) -> Callable[[str], int]:
    """Return a reader of a size of at least so many MiB, which returns bytes."""
    return lambda value: min(_whole(value, least), _MOST_MIB) * _MIB


def _read_threads(value: str) -> int:
    number = _power_of_two(value, _MOST_THREADS)
    if number is None:
        raise _NotAllowedError(f"a power of two from 1 to {_MOST_THREADS}")
    return number


def _read_threshold(value: str) -> float:
    share = _number(value)
    if not 0 < share < 1:
        raise _NotAllowedError("a number above 0 and below 1")
    return share


def _read_fraction(value: str) -> float:
    share = _number(value)
    if not 0 <= share <= 1:
        raise _NotAllowedError("a number from 0 to 1")
    return share


def _number(value: str) -> float:
    """Return ``value`` as a number; NaN if ``value`` is none."""
    if value.isascii() and "_" not in value:  # float() takes digits of all scripts, and underscores between them
        with contextlib.suppress(ValueError):
            return float(value)
    return math.nan


def _read_bool(value: str) -> bool:
    if value not in ("True", "False"):
        raise _NotAllowedError("True or False")
    return value == "True"


def _read_trim(value: str) -> bool:
    if value not in ("always", "needed"):
        raise _NotAllowedError("'always' or 'needed'")
    return value == "always"


def _read_divisions(value: str) -> list[int]:
    steps = _steps(value)
    if steps is None:
        raise _NotAllowedError(
            "a power of two such as 4, or a list of them, or 0 for none, by size in MiB such as [256:0,512:2,>:4]"
        )
    return [min(step, _MOST_DIVISIONS) for step in steps]


def _steps(value: str) -> list[int] | None:
    """Return the divisions for each power of two, or None if ``value`` cannot be read.

    As in torch, an entry is for the sizes from its bound up to twice its bound. The first entry with a bound is for all
    smaller sizes too, and the entry ``>`` is for all sizes above the entry before it. Sizes without an entry have none.
    """
    if not value.startswith("["):
        every = _power_of_two(value)
        return None if every is None else [every] * _STEPS
    if not value.endswith("]"):
        return None
    steps = [0] * _STEPS
    latest, is_first = 0, True
    entries = value[1:-1].split(",")
    for entry in entries[:-1] if not entries[-1] else entries:
        bound, _, divisions = entry.partition(":")
        number = 0 if divisions == "0" else _power_of_two(divisions)
        size = 1 if bound == ">" else _power_of_two(bound)
        if size is None or number is None:
            return None
        if bound == ">":
            steps[latest + 1 :] = [number] * (_STEPS - latest - 1)
            continue
        latest = min(size.bit_length(), _STEPS) - 1
        if is_first:
            steps[:latest] = [number] * latest
        steps[latest] = number
        is_first = False
    return steps


def _power_of_two(value: str, most: int = _MOST) -> int | None:
    number = _digits(value)
    return number if number is not None and 0 < number <= most and number & (number - 1) == 0 else None


def _whole(value: str, least: int) -> int:
    number = _digits(value)
    if number is None or number < least:
        raise _NotAllowedError(f"a whole number of MiB from {least} on, below 2**64")
    return number


def _digits(value: str) -> int | None:
    """Return ``value`` as a whole number; None if ``value`` is not made of decimal digits, or is above ``_MOST``."""
    # int() alone would take the digits of all scripts, and fail on thousands of them.
    if not (value.isascii() and value.isdecimal()):
        return None
    value = value.lstrip("0") or "0"
    number = int(value) if len(value) <= len(str(_MOST)) else _MOST + 1
    return number if number <= _MOST else None


_READERS: dict[str, tuple[str | None, Callable[[str], object]]] = {
    "backend": ("backend", _read_backend),
    "expandable_segments": ("expandable_segments", _read_bool),
    "garbage_collection_threshold": ("garbage_collection_threshold", _read_threshold),
    "max_non_split_rounding_mb": ("max_non_split_rounding", _mebibytes(_LARGE_SEGMENT)),
    "max_split_size_mb": ("max_split_size", _mebibytes(_LARGE_SEGMENT)),
    "per_process_memory_fraction": ("memory_fraction", _read_fraction),
    "pinned_num_register_threads": ("pinned_threads", _read_threads),
    "pinned_reserve_segment_size_mb": ("pinned_reserve", _mebibytes(1)),
    "pinned_use_background_threads": ("pinned_background", _read_bool),
    "pinned_use_cuda_host_register": ("pinned_use_register", _read_bool),
    "roundup_power2_divisions": ("roundup_power2_divisions", _read_divisions),
    "throw_on_cudamalloc_oom": ("rejects_beyond_limit", _read_bool),
    "trim": ("trim_always", _read_trim),
    # These options of torch have no effect in tcuda. They are allowed, so that a text for torch can stay as it is.
    "graph_capture_record_stream_reuse": (None, _read_bool),
    "large_segment_size_mb": (None, _mebibytes(_OWN_SEGMENT + 1)),
    "pinned_free_catch_all": (None, _read_bool),
    "pinned_max_cached_size_mb": (None, _mebibytes(0)),
    "pinned_max_round_threshold_mb": (None, _mebibytes(0)),
    "release_lock_on_cudamalloc": (None, _read_bool),
}
"""For each option, the attribute of :class:`AllocConf`, or None without an effect, and the reader of the value."""
