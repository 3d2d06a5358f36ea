"""The options of the allocator, as a text that an environment variable holds: ``TCUDA_ALLOC_CONF``.

The names and the spelling are those of ``PYTORCH_CUDA_ALLOC_CONF``, which is read where tcuda's own is not set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tcuda._core import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MIB = 1 << 20
_LARGE_SEGMENT = 20  # MiB: what is smaller than a segment cannot be a limit for splitting it
_STEPS = 16  # sizes up to 1 MiB, 2 MiB, ... 32 GiB and more
BACKENDS = ("native", "cupy", "cudaMallocAsync")
_VARIABLES = ("TCUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")

# Options of torch for what tcuda does in another way, or not yet: taken, so that torch's text can stay as it is.
_WITHOUT_EFFECT = (
    "graph_capture_record_stream_reuse",
    "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb",
    "pinned_use_background_threads",
    "pinned_use_cuda_host_register",
    "release_lock_on_cudamalloc",
    "throw_on_cudamalloc_oom",
)


class AllocConf(NamedTuple):
    """What a text of options says.

    Attributes:
        text: The text.
        backend: ``"native"``, ``"cupy"`` or ``"cudaMallocAsync"``.
        max_split_size: In bytes; -1 if blocks of any size are split.
        max_non_split_rounding: In bytes.
        garbage_collection_threshold: A share of the memory limit, 0 for never.
        expandable_segments: Whether segments grow by mapping memory.
        roundup_power2_divisions: For each power of two from 1 MiB to 32 GiB, into how many steps it is divided.
        memory_fraction: The share of a device's memory that may be reserved.
    """

    text: str = ""
    backend: str = "native"
    max_split_size: int = -1
    max_non_split_rounding: int = _LARGE_SEGMENT * _MIB
    garbage_collection_threshold: float = 0.0
    expandable_segments: bool = True
    roundup_power2_divisions: list[int] = [0] * _STEPS
    memory_fraction: float = 1.0

    def settings(self) -> Settings:
        """Return what of it concerns the caching allocator."""
        settings = Settings()
        if self.max_split_size >= 0:
            settings.max_split_size = self.max_split_size
        settings.max_non_split_rounding = self.max_non_split_rounding
        settings.garbage_collection_threshold = self.garbage_collection_threshold
        settings.expandable_segments = self.expandable_segments
        settings.roundup_power2_divisions = self.roundup_power2_divisions
        return settings


def from_environment(environ: Mapping[str, str]) -> AllocConf:
    """Return the options of the first variable that is set.

    Raises:
        ValueError: It holds what it must not.
    """
    for name in _VARIABLES:
        if name in environ:
            return parse(environ[name], name)
    return AllocConf()


def parse(text: str, where: str = "The allocator's settings") -> AllocConf:
    """Return what ``text`` says, such as ``"max_split_size_mb:128,expandable_segments:False"``.

    Args:
        text: Options and values, ``name:value``, with commas between them.
        where: What the text is, for messages.

    Raises:
        ValueError: An option is unknown, or has a value that it cannot have.
    """
    values: dict[str, object] = {}
    for option in re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", text):
        name, colon, value = (part.strip() for part in option.partition(":"))
        if not name and not colon:
            continue
        if name in _WITHOUT_EFFECT:
            continue
        if name not in _READERS:
            known = ", ".join(sorted([*_READERS, *_WITHOUT_EFFECT]))
            raise ValueError(f"{where}: there is no option {name!r} (in {text!r}). The options are: {known}.")
        key, read = _READERS[name]
        try:
            values[key] = read(value)
        except ValueError as error:
            raise ValueError(f"{where}: {name} is {value!r}; it can be {error}.") from None
    return AllocConf(text=text, **values)  # type: ignore[arg-type]


def _read_backend(value: str) -> str:
    if value not in BACKENDS:
        raise ValueError(" or ".join(map(repr, BACKENDS)))
    return value


def _read_split_size(value: str) -> int:
    return _whole(value, least=_LARGE_SEGMENT + 1, unit="MiB") * _MIB


def _read_rounding(value: str) -> int:
    return _whole(value, least=_LARGE_SEGMENT, unit="MiB") * _MIB


def _read_share(value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ValueError("a number above 0 and up to 1")
    return share


def _read_bool(value: str) -> bool:
    if value not in ("True", "False"):
        raise ValueError("True or False")
    return value == "True"


def _read_divisions(value: str) -> list[int]:
    allowed = "a power of two such as 4, or a list of them, or 0 for none, by size in MiB such as [256:0,512:2,>:4]"
    try:
        if not value.startswith("["):
            return [_power_of_two(value)] * _STEPS
        if not value.endswith("]"):
            raise ValueError
        steps = [0] * _STEPS
        done = 0
        for entry in value[1:-1].split(","):
            bound, _, divisions = (part.strip() for part in entry.partition(":"))
            end = _STEPS if bound == ">" else min(_power_of_two(bound).bit_length() - 1, _STEPS)
            steps[done:end] = [0 if divisions == "0" else _power_of_two(divisions)] * (end - done)
            done = max(done, end)
        return steps
    except ValueError:
        raise ValueError(allowed) from None


def _power_of_two(value: str) -> int:
    number = int(value)
    if number < 1 or number & (number - 1):
        raise ValueError
    return number


def _whole(value: str, least: int, unit: str) -> int:
    if not value.isdecimal() or int(value) < least:
        raise ValueError(f"a whole number of {unit}, at least {least}")
    return int(value)


_READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "backend": ("backend", _read_backend),
    "expandable_segments": ("expandable_segments", _read_bool),
    "garbage_collection_threshold": ("garbage_collection_threshold", _read_share),
    "max_non_split_rounding_mb": ("max_non_split_rounding", _read_rounding),
    "max_split_size_mb": ("max_split_size", _read_split_size),
    "per_process_memory_fraction": ("memory_fraction", _read_share),
    "roundup_power2_divisions": ("roundup_power2_divisions", _read_divisions),
}
"""For each option, what it is called in :class:`AllocConf`, and what reads its value."""
