"""A check may refuse the calls of kernels before they begin, such as calls with arrays that are asleep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda import _core, xp
from tcuda._process import asleep
from tcuda.sanitizer._cuda.kernel_uses import refuse_sleeping_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator


class Operation:
    """Stands for a type of CuPy, whose calls launch kernels."""

    calls = 0

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.calls += 1
        return given, named


class Function(Operation):
    """Stands for CuPy's class of functions, which are called with a grid, a block and the arguments."""

    ptr = 1


@pytest.fixture(autouse=True)
def _as_found() -> Iterator[None]:
    yield
    asleep.listen(None)
    _core.check_calls(None)
    _core.stop_noting_stacks()
    _core.stop_noting_calls()


def test_a_check_sees_the_arguments_and_may_refuse_the_call() -> None:
    seen = []

    def check(given: Any) -> None:
        seen.append(given)
        if given[0] == ("refused",):
            raise RuntimeError("no")

    operation = Operation()
    _core.note_stacks_of(Operation)
    _core.check_calls(check)
    assert operation(1, out=2) == ((1,), {"out": 2})
    with pytest.raises(RuntimeError, match="no"):
        operation("refused")
    _core.check_calls(None)
    assert operation("refused") == (("refused",), {})
    assert seen == [((1,), {"out": 2}), (("refused",), None)]
    assert operation.calls == 2


def test_a_check_sees_the_calls_of_raw_kernels() -> None:
    seen: list[Any] = []
    function = Function()
    _core.note_calls(Function, xp.ndarray, xp.cuda.MemoryPointer, lambda _: ())
    _core.check_calls(seen.append)
    function((1,), (2,), (3,))
    assert seen == [(((1,), (2,), (3,)), None)]


def test_calls_with_arrays_that_are_asleep_are_refused() -> None:
    pool = tcuda.MemPool()
    with tcuda.use_mem_pool(pool):
        x = xp.arange(10)
    y = xp.arange(10)
    operation = Operation()
    _core.note_stacks_of(Operation)
    asleep.listen(lambda some: _core.check_calls(refuse_sleeping_arguments if some else None))
    operation(x, y)
    pool.sleep()
    for arguments, named in (((x, y), {}), ((y,), {"out": x}), (((1,), (1,), (y, x.data)), {}), (((x[3:],),), {})):
        with pytest.raises(RuntimeError, match="asleep"):
            operation(*arguments, **named)
    operation(y, 3, None)
    pool.wake()
    operation(x, y)
    assert operation.calls == 3
