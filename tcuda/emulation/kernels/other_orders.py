"""Further runs of a launch in other orders of its blocks and threads, on the memory as it was before the launch.

One order of the threads cannot show every race: the first thread that takes a lock needs no fence, and another order
shows that the thread lacks the fence. The numbers of the first run stay.
"""

from __future__ import annotations

import ctypes
import re
import time
from typing import TYPE_CHECKING

from tcuda.emulation.kernels.volatile_races import races_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcuda import _core
    from tcuda.emulation.devices.driver_error import CUDADriverError
    from tcuda.emulation.kernels.launched_kernel import LaunchedKernel

_COMMUNICATES = re.compile(r'atomic|barrier|pipeline|volatile|\basm\b|#\s*include\s*"')
"""What the source of a kernel has, or may have in its headers, if its threads tell each other how far they are."""

_HEAP = re.compile(r"\b(?:malloc|calloc|free|new|delete)\b")
"""What the source has if the kernel uses the heap of the device, which has no copy."""

_LONGEST = 4.0
"""How many times as long as the first run another order may take, beside the least time."""

_LEAST = 1.0

_compare = ctypes.CDLL(None).memcmp
_compare.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)


class OtherOrders:
    """The other orders of a launch.

    Args:
        kernel: The kernel.
        ranges: The memory that the launch may use from its beginning on.
        orders: The number of orders with the usual one.
        run: Runs the launch to its end, in an order and with a patience in seconds, and returns the launch and its
            failure.
    """

    def __init__(
        self,
        kernel: LaunchedKernel,
        ranges: Iterable[tuple[int, int]],
        orders: int,
        run: Callable[[int, float], tuple[_core.EmulatedLaunch, CUDADriverError | None]],
    ) -> None:
        self._kernel = kernel
        self._orders = orders
        self._run = run
        self._before: dict[tuple[int, int], bytes] = {}
        for begin, end in ranges:
            self.keep(begin, end)
        self._begin = time.perf_counter()

    @staticmethod
    def are_possible(kernel: LaunchedKernel) -> bool:
        """Return whether another order of the kernel may show more, and the memory of the kernel can be copied."""
        source = kernel.module.source
        return _COMMUNICATES.search(source) is not None and _HEAP.search(source) is None

    def keep(self, begin: int, end: int) -> None:
        """Keep the contents of memory that the launch is going to use for the first time."""
        self._before.setdefault((begin, end), ctypes.string_at(begin, end - begin))

    def races(self) -> tuple[list[_core.KernelRace], int, int]:
        """Return the races of the first other order that shows any, the number of the races left out, and the order.

        Raises:
            CUDADriverError: The kernel fails in another order. A block that may wait for a later block is no failure.
        """
        patience = _LEAST + _LONGEST * (time.perf_counter() - self._begin)
        changed = _changed(self._before)
        after = self._before | {(begin, end): ctypes.string_at(begin, end - begin) for begin, end in changed}
        try:
            for order in range(1, self._orders):
                _write(self._before, changed if order == 1 else _changed(self._before))
                launch, failure = self._run(order, patience)
                races, left_out = races_of(launch, self._kernel.module), launch.races_left_out
                del launch  # No other launch may overtake the launch.
                if races:
                    return races, left_out, order
                if failure is not None:
                    raise failure
        finally:
            _write(after, _changed(after))
        return [], 0, 0


def words(order: int) -> str:
    """Return the words for an order of the blocks and threads; an empty text for the usual order."""
    if order == 0:
        return ""
    if order == 1:
        return "in reverse order"
    return f"in the order of the seed {order}"


def _changed(contents: dict[tuple[int, int], bytes]) -> list[tuple[int, int]]:
    """Return the memory that has other contents now. To compare takes less time than to write."""
    return [place for place, kept in contents.items() if _compare(place[0], kept, len(kept)) != 0]


def _write(contents: dict[tuple[int, int], bytes], places: Iterable[tuple[int, int]]) -> None:
    """Write the contents of some places to the memory."""
    for place in places:
        ctypes.memmove(place[0], contents[place], len(contents[place]))


__all__ = ["OtherOrders", "words"]
