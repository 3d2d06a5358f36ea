"""When a race with a kernel that a program has written is exact, possible, or none: what is certain of its threads."""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING

import pytest

from support.core import for_tests
from support.launches import Launches
from support.races import BOTH, READ, WRITE, access
from support.stand_in_driver import Arguments, Function
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FIRST, SECOND = 0x100, 0x102
X, SIZE = 0x7F00_0000_0000, 0x1000
_modules = itertools.count(0x6E57_0000)

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<19>; .reg .b64 %rd<19>; .reg .f32 %f<9>;"
POINTER = "ld.param.u64 %rd1, [k_param_0]; ld.param.u32 %r9, [k_param_1];"
INDEX = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;"
ELEMENT = f"{POINTER} {INDEX} mul.wide.s32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;"


def module(body: str, more: str = "") -> str:
    """Return a module with a kernel that has a pointer and a number."""
    return (
        f"{HEAD}{more}.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)\n"
        f"{{\n{REGISTERS}\n{body}\nret;\n}}\n"
    )


class Race:
    """A launch, and then another use of the same memory on another stream."""

    def __init__(self) -> None:
        self.launches = Launches(table=for_tests.kernel_table())
        self.detector = self.launches.watch.detector
        self.launches.own(X, SIZE)
        self.modules: list[int] = []
        for stream in (FIRST, SECOND):
            self.detector.stream_created(0, stream, False)

    def launch(
        self,
        text: str,
        number: int = 0,
        *,
        address: int = X,
        stream: int = FIRST,
        grid: Sequence[int] = (1, 1, 1),
        block: Sequence[int] = (1, 1, 1),
    ) -> None:
        """Launch the kernel of a text."""
        module = next(_modules)
        self.modules.append(module)
        _core.add_ptx(module, text)
        self.launches.driver.functions[module] = Function(module, b"k", [(0, 8), (8, 4)])
        arguments = Arguments(struct.pack("<Q", address), struct.pack("<i", number))
        self.launches.reader.launch(0, stream, module, "k", arguments.address, grid=grid, block=block)

    def found(self) -> list[str]:
        """Return the confidences of the races."""
        races = self.launches.watch.taken()
        return [
            "exact" if {race.previous.confidence, race.current.confidence} == {"exact"} else "possible"
            for race in races
        ]

    def with_read(self, address: int = X, size: int = SIZE) -> list[str]:
        """Return the confidences of the races with a read of some bytes."""
        self.detector.work(0, SECOND, "read", (access(READ, address, size),))
        return self.found()


@pytest.fixture
def race() -> Iterator[Race]:
    made = Race()
    yield made
    for module in made.modules:
        _core.forget_module(module)


def confidence(race: Race, body: str, number: int = 0, *, more: str = "") -> list[str]:
    """Return the confidences of the races of a launch of four threads with a read of all bytes."""
    race.launch(module(body, more), number, block=(4, 1, 1))
    return race.with_read()


STORE = "st.global.u32 [%rd3], 1;"
LOAD = f"{ELEMENT} ld.global.u32 %r5, [%rd3];"
CERTAIN = {
    "a store": f"{ELEMENT} {STORE}",
    "a generic store": f"{ELEMENT} st.u32 [%rd3], 1;",
    "a store with an offset": f"{ELEMENT} st.global.u32 [%rd3+8], 1;",
    "a store of four numbers": f"{ELEMENT} st.global.v4.f32 [%rd1], {{%f1, %f2, %f3, %f4}};",
    "a true guard": f"{ELEMENT} setp.lt.s32 %p1, %r4, %r9; @%p1 {STORE}",
    "a false guard behind a negation": f"{ELEMENT} setp.ge.s32 %p1, %r4, %r9; @!%p1 {STORE}",
    "a guard with two conditions": f"{ELEMENT} setp.ge.s32 %p1, %r4, 0; setp.lt.and.s32 %p2, %r4, %r9, %p1; "
    f"@%p2 {STORE}",
    "a loop": f"{ELEMENT} mov.u32 %r6, 0;\nL: add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, %r9; @%p1 bra L; {STORE}",
    "both ways come together": f"{LOAD} setp.eq.s32 %p1, %r5, 0; @%p1 bra E; add.s32 %r6, %r6, 1;\nE: {STORE}",
    "a loop that memory ends": f"{LOAD}\nL: add.s32 %r5, %r5, 1; setp.ne.s32 %p1, %r5, 0; @%p1 bra L; {STORE}",
    "an atomic function": f"{ELEMENT} atom.global.add.u32 %r5, [%rd3], 1;",
    "a reduction": f"{ELEMENT} red.global.add.u32 [%rd3], 1;",
    "a 16-bit index": f"{POINTER} mov.u32 %r3, %tid.x; cvt.u16.u32 %rs1, %r3; mul.wide.u16 %r4, %rs1, 4; "
    f"cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2; {STORE}",
    "a negative index": f"{POINTER} mov.u32 %r4, -1; mul.wide.s32 %rd2, %r4, 4; sub.s64 %rd3, %rd1, %rd2; {STORE}",
    "shifts": f"{POINTER} mov.u32 %r3, %tid.x; shl.b32 %r4, %r3, 3; shr.u32 %r4, %r4, 1; cvt.u64.u32 %rd2, %r4; "
    f"add.s64 %rd3, %rd1, %rd2; {STORE}",
    "a choice": f"{ELEMENT} setp.lt.s32 %p1, %r4, %r9; selp.b64 %rd3, %rd3, 0, %p1; {STORE}",
    "a variable of the thread": f".local .align 8 .b8 depot[16]; .reg .b64 %SP, %SPL; {ELEMENT} mov.u64 %SPL, depot; "
    "cvta.local.u64 %SP, %SPL; st.local.u64 [%SPL+8], %rd3; ld.u64 %rd4, [%SP+8]; st.global.u32 [%rd4], 1;",
    "parts of a number": f"{ELEMENT} mov.b64 {{%r5, %r6}}, %rd3; mov.b64 %rd4, {{%r5, %r6}}; st.global.u32 [%rd4], 1;",
    "a function that comes back": f"{ELEMENT} call.uni f, (); {STORE}",
    "logic of three numbers": f"{ELEMENT} mov.b32 %r5, 255; lop3.b32 %r6, %r9, %r5, 0, 0xC0; "
    f"setp.eq.s32 %p1, %r6, %r9; @%p1 {STORE}",
}
UNCERTAIN = {
    "a guard from memory": f"{LOAD} setp.eq.s32 %p1, %r5, 0; @%p1 {STORE}",
    "a branch from memory": f"{LOAD} setp.eq.s32 %p1, %r5, 0; @%p1 bra E; {STORE}\nE:",
    "an end from memory": f"{LOAD} setp.eq.s32 %p1, %r5, 0; @%p1 exit; {STORE}",
    "an address from memory": f"{LOAD} mul.wide.s32 %rd2, %r5, 4; add.s64 %rd4, %rd1, %rd2; st.global.u32 [%rd4], 1;",
    "an address from another thread": f"{ELEMENT} shfl.sync.idx.b32 %r5, %r4, 0, 31, -1; mul.wide.s32 %rd2, %r5, 4; "
    "add.s64 %rd4, %rd1, %rd2; st.global.u32 [%rd4], 1;",
    "a number that the ways make different": f"{LOAD} setp.eq.s32 %p1, %r5, 0; @%p1 bra E; add.s64 %rd3, %rd3, 4;\n"
    f"E: {STORE}",
    "a wait for another kernel": f"{ELEMENT}\nL: ld.volatile.global.u32 %r5, [%rd1+4092]; setp.eq.s32 %p1, %r5, 0; "
    f"@%p1 bra L; {STORE}",
    "a wait by an atomic function": f"{ELEMENT}\nL: atom.shared.cas.b32 %r5, [%r6], 0, 1; setp.eq.s32 %p1, %r5, 0; "
    f"@%p1 bra L; {STORE}",
    "a volatile store": f"{ELEMENT} st.volatile.global.u32 [%rd3], 1;",
    "a comparison that need not write": f"{ELEMENT} atom.global.cas.b32 %r5, [%rd3], 0, 1;",
    "a function that may end the thread": f"{ELEMENT} call.uni g, (); {STORE}",
    "a function that nobody knows": f"{ELEMENT} call.uni h, (); {STORE}",
    "an instruction that nobody knows": f"{ELEMENT} unheard.of.b32 %r5, %r6; {STORE}",
    "a branch to one of several places": f"{ELEMENT} T: .branchtargets A, B; brx.idx %r3, T;\nA: {STORE}\nB:",
    "an element of a vector": f".reg .v4 .b64 %v; {ELEMENT} mov.b64 %v.x, %rd3; mov.b64 %v.y, 0; "
    "st.global.u32 [%v.x], 1;",
    "a division by zero": f"{ELEMENT} mov.u32 %r5, 0; div.s32 %r6, %r4, %r5; setp.eq.s32 %p1, %r6, 0; @%p1 {STORE}",
    "a carry": f"{ELEMENT} add.cc.u32 %r5, %r4, 0; addc.u32 %r6, 0, 0; mul.wide.s32 %rd2, %r6, 4; "
    "add.s64 %rd4, %rd1, %rd2; st.global.u32 [%rd4], 1;",
    "a variable that an unknown address may change": f".local .align 8 .b8 depot[16]; .reg .b64 %SPL; {LOAD} "
    "mov.u64 %SPL, depot; st.local.u64 [%SPL+8], %rd3; cvt.u64.u32 %rd5, %r5; st.u64 [%rd5], 0; "
    "ld.local.u64 %rd4, [%SPL+8]; st.global.u32 [%rd4], 1;",
}
NOTHING = {
    "a false guard": f"{ELEMENT} setp.ge.s32 %p1, %r4, %r9; @%p1 {STORE}",
    "a branch around": f"{ELEMENT} setp.lt.s32 %p1, %r4, %r9; @%p1 bra E; {STORE}\nE:",
    "an end before": f"{ELEMENT} setp.lt.s32 %p1, %r4, %r9; @%p1 exit; {STORE}",
    "a branch from memory to nothing": f"{LOAD} setp.eq.s32 %p1, %r5, 0; @%p1 bra E; add.s32 %r6, %r6, 1;\n"
    f"E: setp.ge.s32 %p1, %r4, %r9; @%p1 {STORE}",
}
FUNCTIONS = ".func f() { ret; } .func g() { exit; } .extern .func h();"


@pytest.mark.parametrize("body", CERTAIN.values(), ids=CERTAIN)
def test_an_access_that_each_thread_makes_is_certain(race: Race, body: str) -> None:
    assert confidence(race, body, 8, more=FUNCTIONS) == ["exact"]


@pytest.mark.parametrize("body", UNCERTAIN.values(), ids=UNCERTAIN)
def test_an_access_that_depends_on_memory_or_on_others_is_possible(race: Race, body: str) -> None:
    assert confidence(race, body, 8, more=FUNCTIONS) == ["possible"]


@pytest.mark.parametrize("body", NOTHING.values(), ids=NOTHING)
def test_without_any_access_there_is_no_race(race: Race, body: str) -> None:
    assert confidence(race, body, 8) == []


class TestOverlaps:
    def test_only_bytes_that_threads_use_race(self, race: Race) -> None:
        race.launch(module(CERTAIN["a store"]), grid=(2, 1, 1), block=(16, 1, 1))
        assert race.with_read(X + 128, 64) == []
        assert race.with_read(X + 127, 64) == ["exact"]

    def test_the_report_has_the_common_bytes(self, race: Race) -> None:
        race.launch(module(CERTAIN["a store"]), grid=(2, 1, 1), block=(16, 1, 1))
        race.detector.work(0, SECOND, "read", (access(READ, X + 16, 400),))
        (found,) = race.launches.watch.taken()
        assert found.overlap == (X + 16, 112)

    def test_even_and_odd_elements_do_not_race(self, race: Race) -> None:
        body = f"{POINTER} {INDEX} mul.wide.s32 %rd2, %r4, 8; add.s64 %rd3, %rd1, %rd2; {STORE}"
        race.launch(module(body), block=(64, 1, 1))
        race.launch(module(body), block=(64, 1, 1), address=X + 4, stream=SECOND)
        assert race.found() == []
        race.launch(module(body), block=(64, 1, 1), address=X + 8, stream=SECOND)
        assert race.found() == ["exact"]

    def test_the_wrap_of_32_bits_is_followed(self, race: Race) -> None:
        body = (
            f"{POINTER} mov.u32 %r4, 0x7fffffff; add.s32 %r4, %r4, 1; cvt.s64.s32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2;"
        )
        race.launch(module(f"{body} {STORE}"))
        assert race.with_read() == []
        race.detector.device_synchronized(0)
        race.launch(module(f"{body} add.s64 %rd3, %rd3, 0x80000000; {STORE}"))
        assert race.with_read() == ["exact"]

    def test_two_reads_are_no_race(self, race: Race) -> None:
        race.launch(module(LOAD))
        race.launch(module(LOAD), stream=SECOND)
        assert race.found() == []

    def test_a_large_launch_is_possible_where_threads_are_left(self, race: Race) -> None:
        text = module(f"{ELEMENT} setp.eq.s32 %p1, %r4, %r9; @%p1 st.global.u32 [%rd1], 1;")
        race.launch(text, 1 << 24, grid=(1 << 20, 1, 1), block=(1024, 1, 1))
        assert race.with_read() == ["possible"]

    def test_each_byte_of_a_large_launch_is_found(self, race: Race) -> None:
        race.detector.memory_freed(X)
        race.launches.own(X, 1 << 40)
        race.launch(module(CERTAIN["a store"]), grid=(1 << 20, 1, 1), block=(1024, 1, 1))
        for place in (0, 4, 1 << 20, (1 << 30) + 12, (1 << 32) - 4):
            assert race.with_read(X + place, 4) == ["exact"], place
            race.detector.forget_races()
        assert race.with_read(X + (1 << 32), 4) == ["possible"]

    def test_two_large_launches_with_different_indices_are_exact(self, race: Race) -> None:
        race.detector.memory_freed(X)
        race.launches.own(X, 1 << 40)
        body = f"{POINTER} {INDEX} mul.wide.s32 %rd2, %r4, 100; add.s64 %rd3, %rd1, %rd2;"
        apart = f"{body} add.s64 %rd3, %rd3, 2000000; {STORE}"
        race.launch(module(CERTAIN["a store"]), grid=(1 << 20, 1, 1), block=(1024, 1, 1))
        race.launch(module(apart), grid=(1 << 10, 1, 1), block=(128, 1, 1), stream=SECOND)
        assert race.found() == ["exact"]

    def test_an_unknown_number_of_threads_tells_nothing(self, race: Race) -> None:
        race.launch(module(CERTAIN["a store"]), grid=(0, 0, 0), block=(0, 0, 0))
        assert race.with_read() == ["possible"]


class TestWhatIsKept:
    def test_a_later_kernel_of_the_stream_hides_no_exact_race(self, race: Race) -> None:
        race.launch(module(CERTAIN["a store"]))
        race.launch(module(UNCERTAIN["a guard from memory"]))
        assert sorted(race.with_read()) == ["exact", "possible"]

    def test_the_accesses_of_many_kernels_are_few(self, race: Race) -> None:
        for number in range(200):
            race.launch(module(CERTAIN["a store"]), number)
        assert for_tests.sizes_of_detector(race.detector)["accesses"] <= 10

    def test_launches_with_the_same_arguments_are_one_access(self, race: Race) -> None:
        text = module(CERTAIN["a store"])
        race.launch(text)
        handle = race.modules[0]
        arguments = Arguments(struct.pack("<Q", X), struct.pack("<i", 0))
        for _ in range(50):
            race.launches.reader.launch(0, FIRST, handle, "k", arguments.address)
        assert for_tests.sizes_of_detector(race.detector)["accesses"] == 1

    def test_the_threads_of_the_same_launches_are_followed_once(self, race: Race) -> None:
        body = f"{POINTER} {INDEX} mul.wide.s32 %rd2, %r4, 8; add.s64 %rd3, %rd1, %rd2; {STORE}"
        race.launch(module(body), block=(256, 1, 1))
        handle = race.modules[0]
        even, odd = (Arguments(struct.pack("<Q", X + place), struct.pack("<i", 0)) for place in (0, 4))
        for _ in range(6000):  # to follow the threads anew each time would take more work than is allowed
            race.launches.reader.launch(0, SECOND, handle, "k", odd.address, block=(256, 1, 1))
            race.launches.reader.launch(0, FIRST, handle, "k", even.address, block=(256, 1, 1))
        assert race.found() == []

    def test_the_work_of_searches_has_an_end(self, race: Race) -> None:
        text = module(f"{ELEMENT} setp.eq.s32 %p1, %r4, %r9; @%p1 st.global.u32 [%rd1], 1;")
        for number in range(400):
            race.launch(text, 1 << 24, grid=(64, 1, 1), block=(1024, 1, 1), address=X + number * 4)
            race.detector.work(0, SECOND, "read", (access(BOTH, X, SIZE),))
            race.detector.stream_synchronized(0, FIRST)
            race.detector.stream_synchronized(0, SECOND)
        assert set(race.found()) <= {"possible"}


def test_a_write_that_both_kernels_make_is_exact(race: Race) -> None:
    race.launch(module(CERTAIN["a store"]))
    race.detector.work(0, SECOND, "write", (access(WRITE, X, 4, confidence="possible"),))
    assert race.found() == ["possible"]
    race.launch(module(CERTAIN["a store"]), stream=SECOND)
    assert "exact" in race.found()
