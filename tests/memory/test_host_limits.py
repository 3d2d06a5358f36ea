"""Page-locked memory when the host runs short: what goes back to the driver, and what is cut."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

import tcuda
from support.busy_streams import keep_busy
from support.core import for_tests
from support.sizes import KIB, MIB
from tcuda import _core
from tcuda._runtime.protocol import MEMCPY_HOST_TO_DEVICE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcuda._runtime.protocol import Runtime

GIB = 1 << 30
SEGMENT = 2 * MIB
UNLIMITED = (1 << 64) - 1


def no_error(*arguments: Any, **facts: Any) -> NoReturn:
    raise MemoryError(arguments, facts)


class Host:
    """An allocator of page-locked memory of its own, on a host that has little memory.

    Args:
        runtime: The runtime.
        tells: Whether the host tells how much memory is left, before the driver refuses a call.
    """

    def __init__(self, runtime: Runtime, *, tells: bool) -> None:
        self.tells = tells
        self.driver = for_tests.FaultyDriver(runtime.memoryDriver())
        self.ledger = _core.Ledger(self.driver, runtime.getDeviceCount(), _core.Settings(), no_error, no_error)

    def limit(self, most: int) -> None:
        self.driver.limit_host(most, self.tells)

    def block(self, size: int) -> _core.PageLockedMemory:
        return _core.allocate_page_locked(self.ledger, size)

    def stat(self, key: str) -> int:
        return self.ledger.host_statistics()[key]

    def held(self) -> int:
        return self.stat("allocated_bytes.current")

    def calls(self) -> int:
        return self.stat("num_host_alloc") + self.stat("num_host_free")

    def churn(self, live: int, steps: int = 300) -> int:
        """Allocate blocks of many sizes, free random ones, and return the most bytes that were live."""
        numbers = random.Random(0)
        blocks: list[tuple[int, _core.PageLockedMemory]] = []
        total = most = 0
        for _ in range(steps):
            while total > live:
                size, gone = blocks.pop(numbers.randrange(len(blocks)))
                total -= size
                del gone
            size = int(2 ** numbers.uniform(16, 24))
            blocks.append((size, self.block(size)))
            total += size
            most = max(most, total)
        return most


@pytest.fixture
def host(late_host: Host) -> Host:
    """A host whose freed memory is free at once, unless work uses the memory."""
    late_host.driver.wait_for_events()
    return late_host


@pytest.fixture(params=[True, False], ids=["tells", "refuses"])
def late_host(runtime: Runtime, request: pytest.FixtureRequest) -> Iterator[Host]:
    tcuda.synchronize()
    made = Host(runtime, tells=request.param)
    yield made
    tcuda.synchronize()
    made.ledger.empty_host_cache()
    assert made.held() == made.stat("active_bytes.current") == 0


def test_nothing_goes_back_while_memory_is_plentiful(host: Host) -> None:
    """The driver locks less than pools of powers of two, which lock 2.7 times what is live."""
    most = host.churn(64 * MIB)
    assert host.stat("num_host_free") == 0
    assert host.held() == host.stat("allocated_bytes.allocated") <= 2.2 * most


def test_a_churn_ends_with_little_more_memory_than_is_live(host: Host) -> None:
    """Without a word of the host, the allocator cuts segments until the first refusal."""
    most = host.churn(64 * MIB)
    host.ledger.empty_host_cache()
    host.limit(most * (110 if host.tells else 125) // 100)
    assert host.churn(64 * MIB) == most
    assert host.stat("num_host_free") > 0


def test_only_as_much_goes_back_as_is_needed(host: Host) -> None:
    blocks = [host.block(4 * MIB) for _ in range(4)]
    blocks.clear()
    host.limit(21 * MIB)
    block = host.block(8 * MIB)
    assert block.size == 8 * MIB
    assert host.held() == 20 * MIB if host.tells else 8 * MIB


def test_a_segment_is_not_cut_when_the_limit_is_near(host: Host) -> None:
    """The small block would keep all of the segment."""
    large = host.block(32 * MIB)
    host.limit(42 * MIB)
    with pytest.raises(Exception, match="page-locked"):
        host.block(11 * MIB)  # now the limit is known
    del large
    small = host.block(4 * MIB)
    again = host.block(32 * MIB)
    assert (small.size, again.size) == (4 * MIB, 32 * MIB)
    assert host.held() <= 38 * MIB


def test_parts_of_segments_are_cut_when_the_limit_is_near(host: Host) -> None:
    large = host.block(32 * MIB)
    begin = large.ptr
    del large
    parts = [host.block(4 * MIB)]
    host.limit(33 * MIB)
    parts += [host.block(7 * MIB) for _ in range(4)]
    assert [part.ptr - begin for part in parts] == [0, 4 * MIB, 11 * MIB, 18 * MIB, 25 * MIB]
    assert host.held() == 32 * MIB


def test_blocks_that_grow_take_only_what_they_need_when_the_limit_is_near(host: Host) -> None:
    sizes = [2 * MIB + 100 * KIB * number for number in range(100)]
    host.limit(sizes[-1])
    for size in sizes:
        host.block(size)
    assert host.held() <= sizes[-1]


def test_memory_that_a_copy_uses_is_waited_for(late_host: Host, runtime: Runtime, xp: Any) -> None:
    host = late_host
    x, stream = xp.zeros(32 * MIB, "uint8"), tcuda.Stream()
    tcuda.synchronize()
    block = host.block(32 * MIB)
    host.limit(40 * MIB)
    keep_busy(stream)
    runtime.memcpyAsync(x.data.ptr, block.ptr, 32 * MIB, MEMCPY_HOST_TO_DEVICE, stream.cuda_stream)
    del block
    block = host.block(33 * MIB)
    assert stream.query()
    assert host.held() == block.size == 33 * MIB


def test_memory_that_the_program_has_stays_when_nothing_is_left(host: Host) -> None:
    host.limit(10 * MIB)
    kept = [host.block(4 * MIB) for _ in range(2)]
    for _ in range(2):
        with pytest.raises(Exception, match="page-locked"):
            host.block(4 * MIB)
    assert host.held() == 8 * MIB
    assert host.block(2 * MIB).size == 2 * MIB
    kept.clear()


def test_a_refusal_that_passes_is_forgotten(host: Host) -> None:
    host.limit(8 * MIB)
    blocks = [host.block(4 * MIB)]
    with pytest.raises(Exception, match="page-locked"):
        host.block(8 * MIB)
    host.limit(UNLIMITED)
    blocks += [host.block(4 * MIB) for _ in range(8)]
    blocks.clear()
    host.ledger.empty_host_cache()
    before = host.stat("num_host_free")
    host.churn(16 * MIB, 100)
    assert host.stat("num_host_free") == before


def test_the_reserve_goes_back_when_the_limit_is_near(runtime: Runtime) -> None:
    host = Host(runtime, tells=True)
    host.driver.forget_host_uses()
    for _ in range(50):
        for _ in range(8002):
            host.block(MIB)
        if host.held() >= SEGMENT + 30 * MIB:
            break
    host.limit(host.held() + 3 * MIB)
    freed = host.stat("num_host_free")
    block = host.block(20 * MIB)
    assert block.size == 20 * MIB
    assert host.stat("num_host_free") > freed
    assert host.driver.successes("host_allocate") == host.stat("num_host_alloc")


def test_an_allocation_of_a_segment_that_fits_asks_nothing_and_calls_nothing(host: Host) -> None:
    blocks = [host.block(8 * MIB) for _ in range(4)]
    host.limit(32 * MIB)
    with pytest.raises(Exception, match="page-locked"):
        host.block(8 * MIB)
    before = host.calls()
    for _ in range(100):
        blocks.pop()
        blocks.append(host.block(8 * MIB))
    assert host.calls() == before


def test_a_whole_segment_is_cut_if_the_driver_takes_none_back(host: Host) -> None:
    large = host.block(32 * MIB)
    host.limit(32 * MIB)
    with pytest.raises(Exception, match="page-locked"):
        host.block(4 * MIB)
    del large
    host.driver.fail("host_free", 0, 719)
    small = host.block(33 * MIB // 2)
    assert host.driver.failed
    assert small.size == 33 * MIB // 2


class TestRoom:
    """What the files of the system say about the memory that is left."""

    MACHINE = "MemTotal: 6400 kB\nMemFree: 100 kB\nMemAvailable: 5000 kB\n"

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        self.write(tmp_path, "proc/meminfo", self.MACHINE)
        self.write(tmp_path, "proc/self/cgroup", "3:memory:/old\n0::/outer/inner\n")
        return tmp_path

    @staticmethod
    def write(root: Path, name: str, text: str) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")

    def group(self, root: Path, name: str, most: object, used: int, files: int = 0) -> None:
        self.write(root, f"sys/fs/cgroup/{name}/memory.max", f"{most}\n")
        self.write(root, f"sys/fs/cgroup/{name}/memory.current", f"{used}\n")
        stat = f"anon 7\ninactive_anon 1\nactive_anon 6\ninactive_file {files}\nactive_file 10\nunevictable 0\n"
        self.write(root, f"sys/fs/cgroup/{name}/memory.stat", stat)

    def test_the_machine_keeps_a_64th(self, root: Path) -> None:
        assert for_tests.host_room(str(root)) == (5000 - 100) * KIB

    def test_a_group_and_the_groups_around_it_have_limits(self, root: Path) -> None:
        self.group(root, "outer/inner", 1000_000, 400_000, 300_000)
        assert for_tests.host_room(str(root)) == 900_010
        self.group(root, "outer", 500_000, 450_000)
        assert for_tests.host_room(str(root)) == 50_010
        self.group(root, "", "max", 10)
        assert for_tests.host_room(str(root)) == 50_010
        self.group(root, "", 20_000, 30_000)
        assert for_tests.host_room(str(root)) == 0

    def test_a_group_without_a_limit_counts_as_the_machine(self, root: Path) -> None:
        self.group(root, "outer/inner", "max", 400_000)
        assert for_tests.host_room(str(root)) == 4900 * KIB

    def test_a_machine_that_keeps_the_last_memory_has_no_room(self, root: Path) -> None:
        self.write(root, "proc/meminfo", "MemTotal: 6400 kB\nMemAvailable: 99 kB\n")
        assert for_tests.host_room(str(root)) == 0

    @pytest.mark.parametrize("text", ["", "MemTotal: 6400 kB\n", "nothing at all\n"])
    def test_a_system_that_does_not_tell_has_no_limit(self, tmp_path: Path, text: str) -> None:
        self.write(tmp_path, "proc/meminfo", text)
        assert for_tests.host_room(str(tmp_path)) == UNLIMITED

    def test_this_machine_has_room(self) -> None:
        assert 0 < for_tests.host_room("") < 1 << 50
