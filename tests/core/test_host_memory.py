from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcuda import _core
from tcuda._core import HostMemory, block_allocator, translated

ALIGNMENT = 512


def test_blocks_are_aligned_writable_and_counted_in_whole_units() -> None:
    memory = HostMemory(1 << 20)
    first, second = memory.allocate(1), memory.allocate(ALIGNMENT + 1)
    assert first % ALIGNMENT == second % ALIGNMENT == 0
    ctypes.memset(second, 7, ALIGNMENT + 1)
    assert memory.used == 3 * ALIGNMENT
    assert memory.live == 2


def test_a_block_is_found_by_every_address_in_it() -> None:
    memory = HostMemory(1 << 20)
    address = memory.allocate(1000)
    assert memory.block_at(address) == memory.block_at(address + 999) == (address, 1000)
    assert memory.block_at(address + 1000) is None
    assert memory.block_at(address - 1) is None


def test_the_limit_is_exact() -> None:
    memory = HostMemory(4 * ALIGNMENT)
    blocks = [memory.allocate(ALIGNMENT) for _ in range(4)]
    assert all(blocks)
    assert memory.allocate(1) == 0
    assert memory.release(blocks[0])
    assert memory.allocate(ALIGNMENT)


@pytest.mark.parametrize("size", [(1 << 20) + 1, sys.maxsize, 2**64 - 1, 2**64 - ALIGNMENT])
def test_sizes_beyond_the_limit_are_refused_without_wrapping_around(size: int) -> None:
    memory = HostMemory(1 << 20)
    assert memory.allocate(size) == 0
    assert memory.used == memory.live == 0


def test_a_size_of_zero_takes_nothing() -> None:
    memory = HostMemory(1 << 20)
    assert memory.allocate(0) == 0
    assert memory.live == 0


def test_only_the_start_of_a_live_block_can_be_released_and_only_once() -> None:
    memory = HostMemory(1 << 20)
    address = memory.allocate(4096)
    assert not memory.release(address + ALIGNMENT)
    assert not memory.release(0)
    assert memory.used == 4096
    assert memory.release(address)
    assert not memory.release(address)
    assert memory.used == 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5000)), max_size=60))
def test_live_blocks_never_overlap_and_every_byte_is_accounted_for(steps: list[tuple[bool, int]]) -> None:
    memory = HostMemory(64 * 1024)
    live: dict[int, int] = {}
    for allocate, number in steps:
        if allocate:
            address = memory.allocate(number)
            room = memory.limit - sum(-(-size // ALIGNMENT) * ALIGNMENT for size in live.values())
            assert bool(address) == (-(-number // ALIGNMENT) * ALIGNMENT <= room)
            if address:
                assert all(address + number <= start or start + size <= address for start, size in live.items())
                live[address] = number
        elif live:
            address = sorted(live)[number % len(live)]
            assert memory.release(address)
            del live[address]
    assert memory.live == len(live)
    assert memory.used == sum(-(-size // ALIGNMENT) * ALIGNMENT for size in live.values())


def test_threads_share_it_without_losing_a_block() -> None:
    memory = HostMemory(1 << 30)
    together = threading.Barrier(4)

    def churn() -> None:
        together.wait()
        for size in range(1, 500):
            address = memory.allocate(size)
            assert memory.block_at(address) == (address, size)
            assert memory.release(address)

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.used == memory.live == 0


class LowError(Exception):
    pass


class HighError(Exception):
    pass


def raise_high(error: LowError, *args: Any) -> NoReturn:
    raise HighError(args) from error


def low_or_answer(*args: Any, **kwargs: Any) -> Any:
    if args[:1] == ("low",):
        raise LowError("deep down")
    if args[:1] == ("other",):
        raise KeyError(args[0])
    return args, kwargs


class TestTranslated:
    call = staticmethod(translated(low_or_answer, LowError, raise_high))

    def test_arguments_and_answers_pass_through(self) -> None:
        assert self.call() == ((), {})
        assert self.call(1, b=2) == ((1,), {"b": 2})
        assert self.call(*range(50)) == (tuple(range(50)), {})

    def test_one_kind_of_exception_becomes_another_with_its_cause(self) -> None:
        with pytest.raises(HighError) as caught:
            self.call("low", 5, key=6)
        assert caught.value.args == (("low", 5),)
        assert isinstance(caught.value.__cause__, LowError)
        assert caught.value.__cause__.__traceback__ is not None

    def test_other_exceptions_are_left_alone(self) -> None:
        with pytest.raises(KeyError) as caught:
            self.call("other")
        assert caught.value.__cause__ is None

    def test_a_translation_that_raises_nothing_is_an_error_itself(self) -> None:
        call = translated(low_or_answer, LowError, lambda error, *args: None)  # type: ignore[arg-type,return-value]
        with pytest.raises(SystemError, match="the translation of an exception raised none"):
            call("low")

    def test_it_keeps_nothing_alive(self) -> None:
        class Function:
            itself: Any

            def __call__(self, *args: Any) -> Any:
                return low_or_answer(*args)

        function = Function()
        function.itself = call = translated(function, LowError, raise_high)  # a cycle
        call(1)
        with pytest.raises(HighError):
            call("low")
        reference = weakref.ref(function)
        del function, call
        gc.collect()
        assert reference() is None

    def test_a_call_leaks_no_reference(self) -> None:
        argument = object()
        gc.collect()
        before = sys.getrefcount(argument)
        for _ in range(100):
            self.call(argument)
            with pytest.raises(HighError):
                self.call("low", argument)
        gc.collect()
        assert sys.getrefcount(argument) == before

    def test_there_is_no_empty_one(self) -> None:
        with pytest.raises(TypeError, match="cannot create"):
            type(translated(low_or_answer, LowError, raise_high))()


class StandIn:
    """Memory, as ``cupy.cuda.CFunctionAllocator`` makes it of three C functions."""

    __slots__ = ("__weakref__", "_face", "_free", "ptr", "size")

    def __init__(self, size: int, functions: tuple[int, int, int], device: int = 0) -> None:
        self._face, allocate, self._free = functions
        self.size = size
        call = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(allocate)
        self.ptr = call(self._face, size, device) if size else 0

    def __del__(self) -> None:
        call = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(self._free)
        call(self._face, self.ptr, 0)


class Pointer:
    """``cupy.cuda.MemoryPointer``."""

    __slots__ = ("mem",)

    def __init__(self, mem: Any) -> None:
        self.mem = mem


class TestBlockAllocator:
    """What CuPy calls for memory, with a ledger over memory of the host and without a GPU."""

    @pytest.fixture
    def ledger(self) -> _core.Ledger:
        driver = _core.HostDriver([HostMemory(1 << 26)], object())
        return _core.Ledger(driver, 1, _core.Settings(), print, print)

    @pytest.fixture
    def functions(self, ledger: _core.Ledger) -> tuple[int, int, int]:
        return ledger.cupy_functions(CURRENT_STREAM)

    @pytest.fixture
    def allocate(self, functions: tuple[int, int, int]) -> Any:
        def malloc(size: int) -> Pointer:
            return Pointer(StandIn(size, functions))

        return block_allocator(malloc, Pointer.__dict__["mem"], StandIn.__dict__["size"])

    @pytest.mark.parametrize(("asked", "size"), [(1, 512), (512, 512), (513, 1024), (100_000, 100_352), (0, 0)])
    def test_memory_has_the_size_of_its_block(self, allocate: Any, ledger: _core.Ledger, asked: int, size: int) -> None:
        memory = allocate(asked).mem
        assert memory.size == size
        assert ledger.size_of(0, memory.ptr or 0) == size
        statistics = ledger.statistics(0)
        assert statistics["requested_bytes.all.current"] == asked
        assert statistics["allocated_bytes.all.current"] == size
        del memory
        assert ledger.allocated(0) == 0

    def test_an_allocation_within_an_allocation_has_its_own_size(self, functions: tuple[int, int, int]) -> None:
        inner: list[int] = []

        def malloc(size: int) -> Pointer:
            memory = StandIn(size, functions)
            if size < 10_000:
                inner.append(allocate(size * 10).mem.size)
            return Pointer(memory)

        allocate = block_allocator(malloc, Pointer.__dict__["mem"], StandIn.__dict__["size"])
        assert allocate(1000).mem.size == 1024
        assert inner == [10_240]

    def test_what_an_allocation_raises_is_raised_and_leaves_the_next_alone(self, functions: Any) -> None:
        def malloc(size: int) -> Pointer:
            memory = StandIn(size, functions)
            if size == 1000:
                raise KeyError(memory.size)
            return Pointer(memory)

        allocate = block_allocator(malloc, Pointer.__dict__["mem"], StandIn.__dict__["size"])
        with pytest.raises(KeyError, match="1000"):
            allocate(1000)
        assert allocate(512).mem.size == 512

    def test_what_has_no_memory_is_an_error_and_not_a_crash(self, functions: Any) -> None:
        allocate = block_allocator(
            lambda size: StandIn(size, functions), Pointer.__dict__["mem"], StandIn.__dict__["size"]
        )
        with pytest.raises(TypeError, match="mem"):
            allocate(1000)

    @pytest.mark.parametrize("descriptor", [5, "mem", print])
    def test_what_is_no_descriptor_is_refused(self, descriptor: Any) -> None:
        with pytest.raises(TypeError, match="takes the descriptors of two attributes"):
            block_allocator(print, descriptor, StandIn.__dict__["size"])
        with pytest.raises(TypeError, match="takes the descriptors of two attributes"):
            block_allocator(print, Pointer.__dict__["mem"], descriptor)

    def test_it_tells_what_it_calls_and_leaks_nothing(self, allocate: Any) -> None:
        reference = weakref.ref(allocate.__wrapped__)
        pointer = allocate(1000)
        assert sys.getrefcount(pointer.mem) == sys.getrefcount(allocate.__wrapped__(1000).mem)
        memory = weakref.ref(pointer.mem)
        del pointer
        assert memory() is None
        assert reference() is allocate.__wrapped__

    def test_cupys_own_classes_have_such_descriptors(self, functions: Any, ledger: _core.Ledger) -> None:
        memory = pytest.importorskip("cupy").cuda.memory

        def malloc(size: int) -> Any:
            return memory.MemoryPointer(memory.CFunctionAllocatorMemory(size, *functions, 0), 0)

        allocate = block_allocator(malloc, memory.MemoryPointer.mem, memory.BaseMemory.size)
        pointer = allocate(1000)
        assert (pointer.mem.size, ledger.allocated(0)) == (1024, 1024)
        assert allocate(0).mem.size == 0
        del pointer
        assert ledger.allocated(0) == 0


@ctypes.CFUNCTYPE(ctypes.c_ssize_t)
def _default_stream() -> int:
    return 0


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
CURRENT_STREAM = _new_capsule(ctypes.cast(_default_stream, ctypes.c_void_p), None, None)
"""The function that tells CuPy's current stream, as CuPy hands it to the core."""
