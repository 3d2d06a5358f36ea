"""The function that CuPy calls for memory, on a ledger with memory of the host."""

from __future__ import annotations

import ctypes
import sys
import weakref
from typing import Any

import pytest

from tcuda import _core
from tcuda._core import block_allocator

pytestmark = pytest.mark.wings  # the ledger has the memory of an emulated device


class StandIn:
    """A memory object like those that ``cupy.cuda.CFunctionAllocator`` makes from C functions."""

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
    """A replacement of ``cupy.cuda.MemoryPointer``."""

    __slots__ = ("mem",)

    def __init__(self, mem: Any) -> None:
        self.mem = mem


class TestBlockAllocator:
    """``block_allocator()`` on a ledger with memory of the host, so that no GPU is needed."""

    @pytest.fixture
    def ledger(self) -> _core.Ledger:
        driver = _core.EmulatedDriver([_core.EmulatedMemory(1 << 26)], object())
        return _core.Ledger(driver, 1, _core.Settings(), print, print)

    @pytest.fixture
    def functions(self, ledger: _core.Ledger) -> tuple[int, int, int]:
        return ledger.cupy_functions(CURRENT_STREAM, lambda device: None)

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

    def test_a_device_is_begun_before_its_first_allocation(self, ledger: _core.Ledger) -> None:
        begun: list[tuple[int, int]] = []

        def begin(device: int) -> None:
            begun.append((device, ledger.allocated(device)))

        functions = ledger.cupy_functions(CURRENT_STREAM, begin)
        memory = [StandIn(1000, functions) for _ in range(3)]
        assert begun == [(0, 0)]
        assert ledger.allocated(0) == 3 * 1024
        del memory

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

    def test_an_exception_of_an_allocation_is_raised_and_does_not_affect_the_next_allocation(
        self, functions: Any
    ) -> None:
        def malloc(size: int) -> Pointer:
            memory = StandIn(size, functions)
            if size == 1000:
                raise KeyError(memory.size)
            return Pointer(memory)

        allocate = block_allocator(malloc, Pointer.__dict__["mem"], StandIn.__dict__["size"])
        with pytest.raises(KeyError, match="1000"):
            allocate(1000)
        assert allocate(512).mem.size == 512

    def test_a_result_without_memory_is_a_type_error(self, functions: Any) -> None:
        allocate = block_allocator(
            lambda size: StandIn(size, functions), Pointer.__dict__["mem"], StandIn.__dict__["size"]
        )
        with pytest.raises(TypeError, match="mem"):
            allocate(1000)

    @pytest.mark.parametrize("descriptor", [5, "mem", print])
    def test_another_object_than_a_descriptor_is_refused(self, descriptor: Any) -> None:
        with pytest.raises(TypeError, match="takes the descriptors of two attributes"):
            block_allocator(print, descriptor, StandIn.__dict__["size"])
        with pytest.raises(TypeError, match="takes the descriptors of two attributes"):
            block_allocator(print, Pointer.__dict__["mem"], descriptor)

    def test_the_allocator_exposes_the_wrapped_function_and_leaks_no_reference(self, allocate: Any) -> None:
        reference = weakref.ref(allocate.__wrapped__)
        pointer = allocate(1000)
        assert sys.getrefcount(pointer.mem) == sys.getrefcount(allocate.__wrapped__(1000).mem)
        memory = weakref.ref(pointer.mem)
        del pointer
        assert memory() is None
        assert reference() is allocate.__wrapped__

    def test_the_classes_of_cupy_have_suitable_descriptors(self, functions: Any, ledger: _core.Ledger) -> None:
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
"""A capsule with a function that returns the current stream, as CuPy passes the function to the core."""
