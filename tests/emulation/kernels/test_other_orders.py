"""Races that one order of the blocks and threads does not show, through launches of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda.emulation.kernels import other_orders
from tcuda.emulation.kernels.other_orders import OtherOrders
from tcuda.sanitizer import KernelRace, KernelRaceError, check

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("kernels_are_searched")]

LOCK_OF_BLOCKS = r"""
__device__ int lock = 0;
extern "C" __global__ void kernel(unsigned* data) {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    if (blockIdx.x != %s) __threadfence();
    data[0] = 1 + blockIdx.x;
    if (blockIdx.x != %s) __threadfence();
    atomicExch(&lock, 0);
}
"""

LOCK_OF_THREADS = r"""
extern "C" __global__ void kernel(unsigned* data) {
    __shared__ int lock;
    __shared__ unsigned count;
    if (threadIdx.x == 0) lock = count = 0;
    __syncthreads();
    if (threadIdx.x %% 32 == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {}
        if (threadIdx.x != %s) __threadfence_block();
        count += 1;
        if (threadIdx.x != %s) __threadfence_block();
        atomicExch(&lock, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) data[0] = count;
}
"""


def launch(xp: Any, code: str, blocks: int = 1, threads: int = 1) -> Any:
    """Run a kernel to its end, and return the array that the kernel has written."""
    data = xp.zeros(4, "uint32")
    xp.RawKernel(code, "kernel")((blocks,), (threads,), (data,))
    tcuda.synchronize()
    return data


@pytest.mark.parametrize("fences", [(0, 9), (1, 9), (2, 9), (9, 0), (9, 1), (9, 2)])
def test_a_lock_without_a_fence_is_found_whichever_block_lacks_the_fence(xp: Any, fences: tuple[int, int]) -> None:
    with pytest.raises(KernelRaceError, match="fence"):
        launch(xp, LOCK_OF_BLOCKS % fences, blocks=3)


@pytest.mark.parametrize("fences", [(0, 9), (32, 9), (64, 9), (9, 0), (9, 32), (9, 64)])
def test_a_lock_without_a_fence_is_found_whichever_thread_lacks_the_fence(xp: Any, fences: tuple[int, int]) -> None:
    with pytest.raises(KernelRaceError, match="fence"):
        launch(xp, LOCK_OF_THREADS % fences, threads=96)


@pytest.mark.parametrize(
    ("first", "order", "words"), [(1, "", ""), (0, "in reverse order", " whose threads run in reverse order")]
)
def test_a_race_of_another_order_names_the_order(xp: Any, first: int, order: str, words: str) -> None:
    with check(mode="collect") as report:
        launch(xp, LOCK_OF_BLOCKS % (first, 9), blocks=2)
    (race,) = report.races
    assert isinstance(race, KernelRace)
    assert race.order == order
    assert str(race).startswith(f"Race in the kernel `kernel`{words}: two threads use")
    (data,) = report.as_dict()["races"]
    assert (data["order"], data["words"]["title"]) == (order, f"race in the kernel `kernel`{words}")


def test_right_locks_are_not_accused(xp: Any) -> None:
    launch(xp, LOCK_OF_BLOCKS % (9, 9), blocks=3)
    assert launch(xp, LOCK_OF_THREADS % (9, 9), threads=96).get()[0] == 3


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The further orders in which launches have run."""
    found: list[int] = []
    made = OtherOrders.__init__

    def noted(self: OtherOrders, kernel: Any, ranges: Any, count: int, run: Any) -> None:
        def noting(order: int, patience: float) -> Any:
            found.append(order)
            return run(order, patience)

        made(self, kernel, ranges, count, noting)

    monkeypatch.setattr(OtherOrders, "__init__", noted)
    return found


KEPT = r"""
__device__ unsigned calls = 5;
extern "C" __global__ void kernel(unsigned* data) {
    unsigned mine = atomicAdd(&calls, 1);
    __threadfence();
    atomicExch(&data[0], blockIdx.x);
    data[1 + blockIdx.x] = mine;
    printf("block %u\n", blockIdx.x);
}
"""


def test_the_numbers_and_the_output_of_the_usual_order_stay(
    xp: Any, orders: list[int], capfd: pytest.CaptureFixture[str]
) -> None:
    kernel = xp.RawKernel(KEPT, "kernel")
    data = xp.zeros(4, "uint32")
    for first in (5, 7):
        kernel((2,), (1,), (data,))
        tcuda.synchronize()
        assert data.get().tolist() == [1, first, first + 1, 0]
    assert capfd.readouterr().out == 2 * "block 0\nblock 1\n"
    assert orders == [1, 1]


SUMS = r"""
extern "C" __global__ void kernel(unsigned* data) { atomicAdd(&data[0], threadIdx.x); }
"""


def test_without_communication_a_launch_runs_once(xp: Any, orders: list[int]) -> None:
    assert launch(xp, SUMS, threads=64).get()[0] == 63 * 32
    launch(xp, 'extern "C" __global__ void kernel(unsigned* data) { data[threadIdx.x] = 1; }', threads=4)
    assert orders == []


@pytest.mark.parametrize(("word", "expected"), [("races:orders=1", []), ("races:orders=4", [1, 2, 3])])
def test_the_number_of_orders_can_be_chosen(
    xp: Any, orders: list[int], monkeypatch: pytest.MonkeyPatch, word: str, expected: list[int]
) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", word)
    launch(xp, LOCK_OF_BLOCKS % (9, 9), blocks=3)
    assert orders == expected


WAITS = r"""
extern "C" __global__ void kernel(unsigned* data) {
    if (blockIdx.x > 0)
        while (atomicAdd(&data[blockIdx.x - 1], 0) == 0) {}
    __threadfence();
    atomicExch(&data[blockIdx.x], 1);
}
"""


def test_a_block_may_wait_for_an_earlier_block(xp: Any, orders: list[int]) -> None:
    assert launch(xp, WAITS, blocks=4).get().tolist() == [1, 1, 1, 1]
    assert orders == [1]


STUCK = r"""
extern "C" __global__ void kernel(unsigned* data) {
    unsigned before = atomicAdd(&data[0], 1);
    __threadfence();
    if (blockIdx.x == 0 && before != 0)
        while (atomicAdd(&data[1], 0) == 0) {}
}
"""

ASSERTS = r"""
extern "C" __global__ void kernel(unsigned* data) {
    __threadfence();
    assert(atomicAdd(&data[0], 1) == blockIdx.x);
}
"""


@pytest.mark.parametrize(("code", "status"), [(STUCK, 702), (ASSERTS, 710)])
def test_a_failure_in_another_order_names_the_order(
    xp: Any, monkeypatch: pytest.MonkeyPatch, code: str, status: int
) -> None:
    monkeypatch.setattr(other_orders, "_LEAST", 0.05)
    with pytest.raises(tcuda.AcceleratorError) as caught:
        launch(xp, code, blocks=2)
    assert caught.value.error_code == status
    assert "if its blocks and its threads run in reverse order. With the usual order, the kernel has ended." in str(
        caught.value
    )
