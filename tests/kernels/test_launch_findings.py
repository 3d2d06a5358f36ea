"""The names that reports of races inside of kernels have for memory. A made-up launch finds the races."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.made_kernel_races import MadeAccess, MadeRace, make_up
from tcuda.emulation.kernels import module
from tcuda.sanitizer import KernelMemory, KernelRace, check

if TYPE_CHECKING:
    from collections.abc import Callable

    Memory = Callable[..., KernelRace]

pytestmark = [pytest.mark.emulated, pytest.mark.eager, pytest.mark.usefixtures("kernels_are_searched")]


@pytest.fixture
def race_at(xp: Any, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Return a function that launches a kernel, whose launch finds a race at an address."""

    def race(kernel: Any, args: tuple[Any, ...], address: int, size: int = 4, **more: Any) -> KernelRace:
        shared = more.pop("shared", False)
        made = MadeRace(address, MadeAccess("write", 1), MadeAccess("write", 1), size=size, shared=shared)
        make_up(monkeypatch, lambda: [made])
        with check(mode="collect") as report:
            kernel((1,), (1,), args, **more)
        (found,) = report.races
        assert isinstance(found, KernelRace)
        return found

    return race


def raw(xp: Any, parameters: str, body: str = "", before: str = "") -> Any:
    """Return a kernel, which is compiled."""
    code = f'{before}\nextern "C" __global__ void kernel({parameters}) {{ {body} }}'
    kernel = xp.RawKernel(code, "kernel")
    kernel.compile()
    return kernel


def address_of(name: str, code: str) -> int:
    """Return the address of the variable ``name`` in shared memory of the module of ``code``."""
    (loaded,) = [found for found in module._loaded.values() if found.source == code and found._checks.races]
    loaded.shared_variable_at(0)
    assert loaded._shared is not None
    (place,) = [variable.place for variable in loaded._shared if variable.name == name]
    return loaded._origin(loaded._host) + place


def test_an_element_is_one_of_the_array_of_the_program(race_at: Memory, xp: Any) -> None:
    kernel = raw(xp, "double *x, double *y")
    x, y = xp.zeros(5), xp.zeros((3, 4))
    race = race_at(kernel, (x, y), y.data.ptr + 6 * 8, 8)
    assert race.memory == KernelMemory("global", "y", (1, 2), "float64", (3, 4))
    assert race.allocation is not None
    assert (race.allocation.address, race.allocation.size) == (y.data.ptr, 96)
    assert race.allocation.stack[0].name == "test_an_element_is_one_of_the_array_of_the_program"


def test_an_element_of_a_view_is_counted_in_the_view(race_at: Memory, xp: Any) -> None:
    kernel = raw(xp, "int *x")
    x = xp.zeros((4, 6), "i")
    race = race_at(kernel, (x[1:, ::2],), x[2, 4:].data.ptr)
    assert race.memory == KernelMemory("global", "x", (1, 2), "int32", (3, 3))
    assert race.allocation is not None
    assert race.allocation.address == x.data.ptr


def test_memory_beside_a_view_is_one_of_its_block(race_at: Memory, xp: Any) -> None:
    kernel = raw(xp, "int *x")
    x = xp.zeros(10, "i")
    race = race_at(kernel, (x[4:],), x.data.ptr + 4)
    assert race.memory == KernelMemory("global", "x", (1,), "", (10,))
    assert race.memory.text == "element 1 of `x` (shape (10,))"


def test_memory_behind_a_pointer_in_memory_has_the_line_of_its_allocation(race_at: Memory, xp: Any) -> None:
    kernel = raw(xp, "int **x")
    x = xp.zeros(10, "i")
    table = xp.asarray([x.data.ptr])
    race = race_at(kernel, (table,), x.data.ptr + 8)
    assert race.memory == KernelMemory("global", "", (2,), "", (10,))
    assert race.memory.text == "element 2 of memory without a known name (shape (10,))"
    assert race.allocation is not None
    assert race.allocation.stack[0].name == "test_memory_behind_a_pointer_in_memory_has_the_line_of_its_allocation"


def test_memory_that_is_allocated_anew_has_its_new_line(race_at: Memory, xp: Any) -> None:
    kernel = raw(xp, "int *x")

    def old() -> int:
        address: int = xp.zeros(10, "i").data.ptr
        return address

    before = old()
    x = xp.zeros(10, "i")
    assert x.data.ptr == before
    race = race_at(kernel, (x,), x.data.ptr)
    assert race.allocation is not None
    assert race.allocation.stack[0].name == "test_memory_that_is_allocated_anew_has_its_new_line"


def test_a_global_variable_has_its_name(race_at: Memory, xp: Any) -> None:
    before = "__device__ float sums[4];"
    code = f'{before} extern "C" __global__ void kernel() {{ sums[0] = 1; }}'
    found = xp.RawModule(code=code)
    kernel = found.get_function("kernel")
    race = race_at(kernel, (), found.get_global("sums").ptr + 12)
    assert race.memory == KernelMemory("global", "sums", (3,), "", (4,))


@pytest.mark.parametrize(
    ("declaration", "use", "place", "memory"),
    [
        ("__shared__ float part[8];", "part", 12, KernelMemory("shared", "part", (3,), "float", (8,))),
        ("__shared__ double tile[4][3];", "tile[0]", 40, KernelMemory("shared", "tile", (1, 2), "double", (4, 3))),
        ("__shared__ int tile[N][N + 1];", "tile[0]", 24, KernelMemory("shared", "tile", (1, 1), "int", (4, 5))),
        ("__shared__ int flag;", "&flag", 0, KernelMemory("shared", "flag", (), "int", ())),
        ("static __shared__ Pair two[2];", "two", 8, KernelMemory("shared", "two", (1,), "Pair", (2,))),
        ("volatile __shared__ int a[2], b[3];", "b", 8, KernelMemory("shared", "b", (2,), "int", (3,))),
    ],
)
def test_a_shared_variable_has_its_name_and_its_shape(
    declaration: str, use: str, place: int, memory: KernelMemory, race_at: Memory, xp: Any
) -> None:
    body = f"{declaration} *(volatile char *)({use}) = 1;"
    kernel = raw(xp, "", body, "#define N 4\nstruct Pair { int a, b; };")
    address = address_of(memory.name, kernel.code)
    race = race_at(kernel, (), address + place, 8 if memory.dtype == "double" else 4, shared=True)
    assert race.memory == memory


def test_an_element_of_shared_memory_is_written_as_in_the_kernel() -> None:
    assert KernelMemory("shared", "tile", (3, 4), "float", (8, 8)).expression == "tile[3][4]"
    assert KernelMemory("shared", "flag", (), "int", ()).expression == "flag"
    assert KernelMemory("shared", "flag", (), "int", ()).text == "`flag` in shared memory (int)"
    assert KernelMemory("shared", "", None, "", None).text == "shared memory"


def test_a_variable_of_a_template_has_its_name(race_at: Memory, xp: Any) -> None:
    code = """
    template <typename T> __global__ void kernel(T *x) { __shared__ T part[4]; part[threadIdx.x] = *x; *x = part[0]; }
    """
    kernel = xp.RawModule(code=code, name_expressions=["kernel<float>"]).get_function("kernel<float>")
    address = address_of("part", code)
    race = race_at(kernel, (xp.zeros(1, "f"),), address + 8, shared=True)
    assert race.memory == KernelMemory("shared", "part", (2,), "T", (4,))


def test_dynamic_shared_memory_has_the_name_of_its_array(race_at: Memory, xp: Any) -> None:
    kernel = raw(xp, "", "extern __shared__ float rows[]; rows[threadIdx.x] = 1;")
    race = race_at(kernel, (), address_of("rows", kernel.code) + 20, shared=True, shared_mem=64)
    assert race.memory == KernelMemory("shared", "rows", (5,), "float", None)
    assert race.memory.expression == "rows[5]"
    assert race.memory.text == "element 5 of `rows` in shared memory (float)"


def test_an_elementwise_kernel_has_the_lines_of_its_strings(
    race_at: Memory, xp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = xp.ElementwiseKernel("T a", "raw T x", "T y = x[0];\nx[0] = a + y;", "step")
    a, x = xp.ones(4), xp.zeros(4)
    make_up(monkeypatch, list)
    step(a, x)
    made = MadeRace(x.data.ptr, MadeAccess("write", 2), MadeAccess("read", 1), "atomic", size=8)
    make_up(monkeypatch, lambda: [made], file="step: operation")
    with check(mode="collect") as report:
        step(a, x)
    (race,) = report.races
    assert isinstance(race, KernelRace)
    assert (race.kernel, race.memory) == ("step", KernelMemory("global", "x", (0,), "float64", (4,)))
    assert (race.previous.source, race.current.source) == ("x[0] = a + y;", "T y = x[0];")


def test_a_launch_keeps_no_array_alive(race_at: Memory, xp: Any) -> None:
    kernel = raw(xp, "int *x")
    before = tcuda.memory_allocated()
    x = xp.zeros(1000, "i")
    race = race_at(kernel, (x,), x.data.ptr)
    del x
    assert tcuda.memory_allocated() == before
    assert race.memory.name == "x"


def test_an_argument_that_is_no_array_is_no_memory(race_at: Memory, xp: Any) -> None:
    kernel = raw(xp, "int n, int *x")
    x = xp.zeros(3, "i")
    assert race_at(kernel, (np.int32(3), x), x.data.ptr + 8).memory.expression == "x[2]"
