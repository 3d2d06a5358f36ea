"""Writes to ``__constant__`` variables from kernels.

On an H200, the compiler refuses an assignment to a number, and other direct writes end the launch with the error 719. A
write by a pointer that the kernel has taken itself is made, but the kernel goes on to read the old value. The check of
memory reports all of these. A pointer from ``get_global()`` among the arguments is legal.
"""

from __future__ import annotations

from typing import Any

import pytest

SOURCE = r"""
struct Pair { int x, y; };
__constant__ int table[1025], number = 4, other;
__constant__ const float part = 0.5f;
__constant__ Pair pair;
extern __constant__ int later[4];
__device__ int plain[4] = {1, 2, 3, 4};
__device__ void add_to(int* place) { *place += 1; }
__constant__ int later[4] = {5, 6, 7, 8};
extern "C" __global__ void kernel(int* y, int* given) {
    __shared__ int near[32];
    int t = threadIdx.x;
    near[t] = 0;
    STATEMENT
}
"""


def compiled(xp: Any, statement: str) -> Any:
    return xp.RawModule(code=SOURCE.replace("STATEMENT", statement))


def launch(xp: Any, statement: str, given: Any = None) -> Any:
    y = xp.zeros(32, "int32")
    compiled(xp, statement).get_function("kernel")((1,), (32,), (y, y if given is None else given))
    return y.get()


@pytest.mark.parametrize(
    "statement", ["number = 3;", "if (t) other += t;", "other++;", "--number;", "{ number <<= 1; }"]
)
def test_the_compiler_refuses_an_assignment_to_a_number(statement: str, xp: Any) -> None:
    with pytest.raises(Exception, match="expression must be a modifiable lvalue") as caught:
        launch(xp, statement)
    assert type(caught.value).__name__ == "CompileException"


@pytest.mark.emulated
def test_the_error_of_an_assignment_names_the_line_and_the_cure(xp: Any) -> None:
    with pytest.raises(Exception, match=r"kernel.cu:14: error: .* \(number, a __constant__ variable\)") as caught:
        launch(xp, "number = 3;")
    assert "get_global()" in str(caught.value)


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("table[t] = t;", "table"),
        ("table[1024 - t] += y[t];", "table"),
        ("if (y[t] == 0) later[t % 4] = 1;", "later"),
        ("pair.y = t; y[t] = pair.x;", "pair"),
        ("int* place = table; place[t] = t; y[t] = table[t];", "table"),
        ("add_to(&table[t]);", "table"),
        ("atomicAdd(&table[0], 1);", "table"),
    ],
)
def test_a_write_ends_the_launch(statement: str, name: str, xp: Any) -> None:
    with pytest.raises(Exception, match=f"writes to the __constant__ variable {name},") as caught:
        launch(xp, statement)
    assert "719" in str(caught.value)
    if "table[0]" not in statement and "pair" not in statement:
        assert "kernel.cu:14" in str(caught.value) or "kernel.cu:8" in str(caught.value)


def test_kernels_read_constants_and_write_other_variables(xp: Any) -> None:
    sum = "near[t] = table[t] + number + int(2 * part) + later[t % 4];"
    statement = f"{sum} if (t < 4) plain[t] = t; y[t] = near[t] + pair.x;"
    assert launch(xp, statement).tolist() == [5 + 5 + t % 4 for t in range(32)]


def test_a_local_variable_of_the_same_name_is_no_constant(xp: Any) -> None:
    assert launch(xp, "int number = t; number += 1; y[t] = number;").tolist() == list(range(1, 33))


def test_a_pointer_of_get_global_may_be_written(xp: Any) -> None:
    module = compiled(xp, "given[t] = t;")
    table = xp.ndarray(32, "int32", module.get_global("table"))
    module.get_function("kernel")((1,), (32,), (xp.zeros(32, "int32"), table))
    assert table.get().tolist() == list(range(32))


def test_the_host_writes_constants_between_launches(xp: Any) -> None:
    module = compiled(xp, "y[t] = table[t];")
    table = xp.ndarray(32, "int32", module.get_global("table"))
    y = xp.zeros(32, "int32")
    for value in (3, 4):
        table[:] = value
        module.get_function("kernel")((1,), (32,), (y, y))
        assert y.get().tolist() == [value] * 32
