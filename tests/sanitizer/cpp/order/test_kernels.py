"""Kernels of programs on emulated devices race only if they use the same bytes."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda import _core
from tcuda._process.ledger import ledger
from tcuda.emulation import xp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = pytest.mark.emulated


@pytest.fixture
def found(runtime: EmulatedRuntime) -> Iterator[list[_core.Race]]:
    """A list to which a detector adds its races until the test ends."""
    tcuda.init()
    gc.collect()
    tcuda.synchronize()
    races: list[_core.Race] = []
    detector = _core.RaceDetector(races.append)
    detector.attach(ledger())
    runtime.watchRaces(detector)
    yield races
    runtime.watchRaces(None)
    detector.detach()
    tcuda.synchronize()


def kernel(body: str, parameters: str) -> Any:
    """Return a kernel with a body, in which ``i`` is the number of the thread."""
    return xp.RawKernel(f'extern "C" __global__ void kernel({parameters}) {{ int i = threadIdx.x; {body} }}', "kernel")


def ready() -> tuple[Any, tcuda.Stream]:
    """Return an array of zeros, and a stream that comes after the work so far."""
    x = xp.zeros(256, "f")
    tcuda.synchronize()
    return x, tcuda.Stream()


EVEN = "x[2 * i] += 1;"
ODD = "x[2 * i + 1] += 1;"
FIRST = "x[i] += 1;"


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        (EVEN, ODD, []),
        (EVEN, EVEN, ["write after write"]),
        (EVEN, FIRST, ["write after write"]),
        (EVEN, "if (i % 2) x[i] = 1;", []),
        (FIRST, "x[64 + i] = 1;", []),
        (FIRST, "x[63 + i] = 1;", ["write after write"]),
        (FIRST, "if (x[63] == 7) x[100] = 1;", ["read after write"]),
        ("if (x[64 + i] == 7) x[0] = 1;", "x[100] = 1;", ["write after read"]),
        ("if (x[64 + i] == 7) x[0] = 1;", "if (x[64 + i] == 7) x[0] = 1;", []),
        ("atomicAdd(x, 1.f);", "atomicAdd(x, 1.f);", ["write after write"]),
        ("if (i == 3) x[i * i] = 1;", "if (i != 9) x[i] = 1;", []),
    ],
)
def test_two_kernels_without_an_order(found: list[_core.Race], here: str, there: str, expected: list[str]) -> None:
    x, side = ready()
    kernel(here, "float *x")((1,), (64,), (x,))
    kernel(there, "float *x")((1,), (64,), (x,), stream=side)
    assert [race.kind for race in found] == expected
    assert all(race.current.label == race.previous.label == "x" for race in found)
    assert all(race.current.confidence == "exact" for race in found)


def test_the_report_names_the_parameters_and_the_common_bytes(found: list[_core.Race]) -> None:
    x, side = ready()
    kernel("out[3 * i] = 1;", "float *out")((1,), (10,), (x,))
    y = xp.zeros(256, "f")
    tcuda.current_stream().synchronize()
    kernel("out[3 * i + 60] = 1;", "float *out")((1,), (10,), (x,))
    kernel("to[i] = from[9 * i + 1];", "float *to, const float *from")((1,), (9,), (y, x), stream=side)
    assert found == []
    kernel("to[i] = from[9 * i];", "float *to, const float *from")((1,), (9,), (y, x), stream=side)
    (race,) = found
    assert (race.previous.label, race.current.label, race.kind) == ("out", "from", "read after write")
    assert race.overlap == (x[63].data.ptr, 4 + 9 * 4)


def test_a_wait_orders_kernels(found: list[_core.Race]) -> None:
    x, side = ready()
    kernel(FIRST, "float *x")((1,), (64,), (x,))
    side.wait_stream(tcuda.current_stream())
    kernel(FIRST, "float *x")((1,), (64,), (x,), stream=side)
    assert found == []


def test_global_variables_are_shared_by_streams(found: list[_core.Race]) -> None:
    x, side = ready()
    code = '__device__ int count; extern "C" __global__ void kernel(float *x) { count += 1; *x = 0; }'
    counting = xp.RawModule(code=code).get_function("kernel")
    counting((1,), (1,), (x,))
    counting((1,), (1,), (x[1:],), stream=side)
    (race,) = found
    assert (race.kind, race.current.label) == ("write after write", "count")


@pytest.mark.parametrize(("begin", "races"), [(49, 0), (48, 1)])
def test_indices_decide(found: list[_core.Race], begin: int, races: int) -> None:
    x, side = ready()
    index = xp.arange(0, 50, 3)
    tcuda.synchronize()
    x[index] = 1
    with tcuda.stream(side):
        total = x[begin:].sum()
    assert len(found) == races
    assert total.shape == ()


@pytest.mark.parametrize("use", [lambda x, mask: x[mask], lambda x, mask: xp.extract(mask, x)])
@pytest.mark.parametrize("write", [lambda x, mask: x.__setitem__(mask, 1), lambda x, mask: xp.putmask(x, mask, 1)])
def test_masks_decide(found: list[_core.Race], use: Callable[..., Any], write: Callable[..., Any]) -> None:
    x, side = ready()
    host = np.random.default_rng(4).random(256) < 0.5
    mask, other = xp.asarray(host), xp.asarray(~host)
    tcuda.synchronize()
    write(x, mask)
    with tcuda.stream(side):
        kept = use(x, other)
    assert found == []
    with tcuda.stream(side):
        kept = use(x, mask)
    assert {race.kind for race in found} == {"read after write"}
    assert kept.size == host.sum()


def test_launches_of_a_graph_are_checked_with_their_own_accesses(found: list[_core.Race]) -> None:
    x, side = ready()
    first = xp.zeros(1, "i")
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        kernel("x[*first + i] = 1;", "float *x, const int *first")((1,), (16,), (x, first))
    for place, races in ((0, 0), (100, 1)):
        first[...] = place
        tcuda.synchronize()
        graph.replay()
        kernel("x[96 + i] = 1;", "float *x")((1,), (16,), (x,), stream=side)
        assert len(found) == races
