"""Which free block an allocation gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from tcuda import _core

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime

KIB, MIB = 1 << 10, 1 << 20


def fail(*_: object, **__: object) -> NoReturn:
    raise AssertionError


@pytest.mark.parametrize("size", [3 * KIB, MIB + 512, 3 * MIB], ids=["small", "below a piece", "large"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
def test_of_free_blocks_of_one_size_the_one_with_the_lowest_address_is_taken(
    runtime: Runtime, size: int, order: tuple[int, ...]
) -> None:
    ledger = _core.Ledger(runtime.memoryDriver(), runtime.getDeviceCount(), _core.Settings(), fail, fail)
    alive = [ledger.allocate(0, size, 0) for _ in range(7)]  # each second block keeps the free blocks apart
    apart = [alive[place] for place in (1, 3, 5)]
    for place in order:
        ledger.free(apart[place])
    taken = [ledger.allocate(0, size, 0) for _ in range(3)]
    # The block that was freed last may be taken first, before its memory is merged with that of its neighbours.
    last = [apart[order[-1]]] if size <= MIB else []
    assert taken == [*last, *sorted(set(apart) - set(last))]
    for address in alive:
        ledger.free(address)
    runtime.deviceSynchronize()
    ledger.empty_cache(0)
