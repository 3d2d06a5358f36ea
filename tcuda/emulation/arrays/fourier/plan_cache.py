"""The cache of plans that each thread has for each device."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZE = 16
"""The number of plans that a cache of CuPy's holds at first."""


class _Node(NamedTuple):
    key: tuple[Any, ...]
    plan: Any
    memsize: int = 0


class PlanCache:
    """The plans that were used last, as ``cupy.fft._cache.PlanCache``.

    Args:
        size: The largest number of plans; -1 for any number.
        memsize: The largest number of bytes of the work areas, which emulated plans do not have; -1 for any number.
        dev: The device.
    """

    def __init__(self, size: int = _SIZE, memsize: int = -1, dev: int = -1) -> None:
        self._nodes: OrderedDict[tuple[Any, ...], _Node] = OrderedDict()  # the plan that was used last is last
        self._size = size
        self._memsize = memsize
        self._device = dev

    def get_size(self) -> int:
        """Return the largest number of plans."""
        return self._size

    def set_size(self, size: int) -> None:
        """Set the largest number of plans, and drop plans if there are more."""
        self._size = size
        self._shrink()

    def get_curr_size(self) -> int:
        """Return the number of plans in the cache."""
        return len(self._nodes)

    def get_memsize(self) -> int:
        """Return the largest number of bytes of work areas."""
        return self._memsize

    def set_memsize(self, memsize: int) -> None:
        """Set the largest number of bytes of work areas."""
        self._memsize = memsize
        self._shrink()

    def get_curr_memsize(self) -> int:
        """Return the bytes of the work areas of all plans, which is 0: emulated plans have no work area."""
        return 0

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        """Return the plan for ``key``, which becomes the plan that was used last; ``default`` if there is none."""
        node = self._nodes.get(key)
        if node is None:
            return default
        self._nodes.move_to_end(key)
        return node.plan

    def clear(self) -> None:
        """Drop all plans."""
        self._nodes.clear()

    def show_info(self) -> None:
        """Print what the cache holds."""
        print(self)

    def __getitem__(self, key: tuple[Any, ...]) -> Any:
        node = self._nodes[key]
        self._nodes.move_to_end(key)
        return node.plan

    def __setitem__(self, key: tuple[Any, ...], plan: Any) -> None:
        if self._size == 0 or self._memsize == 0:
            return
        self._nodes[key] = _Node(key, plan)
        self._nodes.move_to_end(key)
        self._shrink()

    def __delitem__(self, key: tuple[Any, ...]) -> None:
        del self._nodes[key]

    def __iter__(self) -> Iterator[tuple[tuple[Any, ...], _Node]]:
        """Yield the keys and the plans, from the plan that was used last on."""
        return iter([(key, self._nodes[key]) for key in reversed(self._nodes)])

    def __repr__(self) -> str:
        return (
            f"cuFFT plan cache (device {self._device}): {len(self._nodes)} plans of at most "
            f"{'any number' if self._size < 0 else self._size}"
        )

    def _shrink(self) -> None:
        if self._memsize == 0:
            self._nodes.clear()
        while 0 <= self._size < len(self._nodes):
            self._nodes.popitem(last=False)


class _Caches(threading.local):
    def __init__(self) -> None:
        self.by_device: dict[int, PlanCache] = {}


_caches = _Caches()


def get_plan_cache() -> PlanCache:
    """Return the cache of this thread for the current device."""
    device = cuda.getDevice()
    if device not in _caches.by_device:
        _caches.by_device[device] = PlanCache(dev=device)
    return _caches.by_device[device]
