"""Pools that sleep in a ledger of their own: windows, and faults of the driver at each call."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

import tcuda
from support.core import for_tests
from support.folders import REPOSITORY
from support.peer import read, write
from tcuda import _core
from tcuda._base.statuses import Status

if TYPE_CHECKING:
    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

MIB = 1 << 20
PIECE = 2 * MIB  # memory comes in such pieces where the limit is low
BLOCK = 2 * PIECE
COMMON = (0, 0)
ENTRIES = (
    *("capture_of", "synchronize_device", "host_register", "host_unregister", "copy", "finish_copies"),
    *("unmap", "destroy", "create", "map"),
)


class Refused(Exception):
    pass


def fail(*_: object, **__: object) -> NoReturn:
    raise Refused


class Program:
    """Allocations whose first and last bytes are known.

    Args:
        runtime: The runtime.
        driver: The driver table of the ledger.
    """

    def __init__(self, runtime: Runtime, driver: _core.Driver) -> None:
        self.runtime = runtime
        self.ledger = _core.Ledger(driver, runtime.getDeviceCount(), _core.Settings(), fail, fail)
        self.expected: dict[int, tuple[int, bytes]] = {}
        self.numbers = itertools.count(1)

    def take(self, size: int, pool: tuple[int, int] = COMMON) -> int:
        if pool != COMMON:
            self.ledger.begin_pool(0, pool)
        try:
            address: int = self.ledger.allocate(0, size, 0)
        finally:
            if pool != COMMON:
                self.ledger.end_pool(0, pool)
        mark = next(self.numbers).to_bytes(8, "little")
        write(self.runtime, address, mark)
        write(self.runtime, address + size - 8, mark)
        self.expected[address] = size, mark
        return address

    def free(self, *addresses: int) -> None:
        for address in addresses:
            assert self.ledger.free(address)
            del self.expected[address]

    def mark_again(self) -> None:
        """Write the known bytes again, because the contents were dropped."""
        for address, (size, mark) in self.expected.items():
            write(self.runtime, address, mark)
            write(self.runtime, address + size - 8, mark)

    def check(self) -> None:
        for address, (size, mark) in self.expected.items():
            assert read(self.runtime, address, 8) == mark
            assert read(self.runtime, address + size - 8, 8) == mark

    def figure(self, name: str) -> int:
        return self.ledger.statistics(0)[f"{name}.all.current"]

    def limit(self, size: int | None) -> None:
        _, total = self.runtime.memGetInfo()
        self.ledger.set_memory_fraction(0, 1.0 if size is None else (size + 512) / total)

    def sleep(self, pool: tuple[int, int] = COMMON, *, keep: bool = True) -> None:
        assert self.ledger.sleep(0, pool, keep, []) == ""

    def wake(self, pool: tuple[int, int] = COMMON) -> None:
        assert self.ledger.wake(0, pool) == (False, 0, 0, False)

    def end(self, *pools: tuple[int, int]) -> None:
        self.free(*list(self.expected))
        for pool in pools:
            self.ledger.release_pool(0, pool)
        self.ledger.empty_cache(0)
        assert self.figure("reserved_bytes") == self.figure("sleeping_bytes") == 0


def with_window(program: Program) -> int:
    """Return the address of a block in a window, beside other blocks."""
    program.limit(4 * BLOCK)
    blocks = [program.take(BLOCK) for _ in range(4)]
    program.limit(5 * BLOCK)
    program.free(blocks[0], blocks[2])
    window = program.take(2 * BLOCK)
    assert window not in range(blocks[0], blocks[3] + BLOCK)
    return window


class TestAWindow:
    def test_sleeps_and_wakes_at_its_addresses(self, runtime: Runtime) -> None:
        program = Program(runtime, runtime.memoryDriver())
        window = with_window(program)
        reserved = program.figure("reserved_bytes")
        program.sleep()
        assert program.figure("reserved_bytes") == 0
        assert program.figure("sleeping_bytes") == reserved
        program.wake()
        program.check()
        program.free(window)
        again = [program.take(BLOCK) for _ in range(2)]
        program.check()
        assert len(set(again)) == 2
        assert program.figure("reserved_bytes") == reserved
        program.limit(None)
        program.end()

    def test_closes_while_asleep(self, runtime: Runtime) -> None:
        program = Program(runtime, runtime.memoryDriver())
        window = with_window(program)
        program.sleep()
        program.free(window)
        program.wake()
        program.check()
        program.take(BLOCK)
        program.check()
        program.limit(None)
        program.end()


class TestTheAddresses:
    def test_belong_to_a_pool_that_is_asleep(self, runtime: Runtime) -> None:
        program = Program(runtime, runtime.memoryDriver())
        address = program.take(3 * MIB)
        program.sleep()
        assert program.ledger.sleeping_pool(0, address + 5) == COMMON
        program.wake()
        assert program.ledger.sleeping_pool(0, address + 5) is None
        program.check()
        program.end()

    @pytest.mark.emulated
    def test_are_refused_by_copies_while_asleep(self, runtime: Runtime) -> None:
        program = Program(runtime, runtime.memoryDriver())
        address = program.take(3 * MIB)
        program.sleep()
        with pytest.raises(tcuda.AcceleratorError, match="invalid argument"):
            read(runtime, address, 8)
        program.wake()
        program.check()
        program.end()

    def test_belong_to_new_memory_for_other_processes(self, runtime: Runtime) -> None:
        program = Program(runtime, runtime.memoryDriver())
        address = program.take(3 * MIB)
        *_, before = program.ledger.sharing_of(0, address) or ()
        program.sleep()
        with pytest.raises(RuntimeError, match="asleep"):
            program.ledger.sharing_of(0, address)
        program.wake()
        *_, after = program.ledger.sharing_of(0, address) or ()
        assert after > before
        program.end()

    def test_of_shared_memory_are_refused(self, runtime: Runtime) -> None:
        program = Program(runtime, runtime.memoryDriver())
        address = program.take(3 * MIB)
        assert program.ledger.sleep(0, COMMON, True, [address]) == "shared"
        program.check()
        program.end()


def make_faulty(runtime: Runtime) -> tuple[Program, for_tests.FaultyDriver, tuple[int, int]]:
    """Return a program with memory of all kinds: small, large, in a window, in a pool, freed and cached."""
    driver = for_tests.FaultyDriver(runtime.memoryDriver())
    program = Program(runtime, driver)
    pool = (0, program.ledger.next_pool())
    program.ledger.create_pool(0, pool, None, True, False)
    with_window(program)
    program.limit(None)
    program.take(3 * MIB, pool)
    program.take(1000, pool)
    program.take(1000)
    program.free(program.take(1000), program.take(PIECE))
    return program, driver, pool


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_fault_at_any_call_leaves_a_pool_asleep_or_awake(runtime: Runtime, entry: str, keep: bool) -> None:
    """The second attempt of the failed call succeeds, and no byte is lost."""
    for calls in itertools.count():
        program, driver, own = make_faulty(runtime)
        driver.fail(entry, calls, Status.UNKNOWN)
        for pool in (own, COMMON):
            attempt(program, pool, keep=keep)
        failed = driver.failed
        driver.fail("none", 0, 0)
        program.take(5 * MIB)
        program.check()
        program.end(own)
        if not failed:
            break
    assert calls > 0 or (not keep and entry in ("copy", "finish_copies", "host_register", "host_unregister"))


def attempt(program: Program, pool: tuple[int, int], *, keep: bool) -> None:
    """Sleep and wake, each a second time after a fault, and compare the states before and after."""
    ledger = program.ledger
    for call, wanted in ((lambda: ledger.sleep(0, pool, keep, []), True), (lambda: ledger.wake(0, pool), False)):
        try:
            result: Any = call()
        except Refused:
            if wanted and not ledger.is_asleep(0, pool):
                program.check()
            result = call()
        assert ledger.is_asleep(0, pool) == wanted, result
    if not keep:
        program.mark_again()
    program.check()


@pytest.mark.parametrize("tells", [True, False])
def test_a_pool_stays_awake_if_the_host_has_no_memory_for_the_contents(runtime: Runtime, tells: bool) -> None:
    driver = for_tests.FaultyDriver(runtime.memoryDriver())
    program = Program(runtime, driver)
    program.take(BLOCK)
    program.take(BLOCK)
    driver.limit_host(BLOCK, tells)
    with pytest.raises(Refused):
        program.ledger.sleep(0, COMMON, True, [])
    assert not program.ledger.is_asleep(0, COMMON)
    program.check()
    assert program.figure("sleeping_bytes") == 0
    program.sleep(keep=False)
    program.wake()
    program.mark_again()
    program.end()


@pytest.mark.parametrize(
    ("ending", "unlocked"), [("", 2), ("program.ledger.close()", 0), ("program.ledger.abandon()", 0)]
)
def test_a_ledger_may_end_while_its_pools_sleep(output_of: OutputOf, ending: str, unlocked: int) -> None:
    """The driver may wait for a function that needs Python's lock. At the end of the process, nothing calls it."""
    program = f"""
import faulthandler
from tcuda._core import for_tests
from tcuda._process.lazy import cuda, init
from tcuda._runtime import runtime
from test_sleeping import Program
faulthandler.dump_traceback_later(60, exit=True)  # ends a deadlock
init()
driver = for_tests.FaultyDriver(cuda.memoryDriver())
program = Program(runtime(), driver)
pool = (0, program.ledger.next_pool())
program.ledger.create_pool(0, pool, None, True, False)
program.take(3 << 20, pool)
program.take(3 << 20)
program.sleep(pool)
program.sleep()
driver.meanwhile(lambda: sum(range(1000)))
{ending}
del program
print(driver.successes("host_register"), driver.successes("host_unregister"))
"""
    folders = os.pathsep.join(map(str, (Path(__file__).parent, REPOSITORY / "tests")))
    assert output_of(program, PYTHONPATH=folders) == f"2 {unlocked}"
