"""Races of volatile memory, through launches of a program: a flag that a loop polls is no data."""

from __future__ import annotations

from typing import Any

import pytest

import tcuda
from tcuda.sanitizer import KernelRaceError

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("kernels_are_searched")]

LOAD = "__device__ int load(volatile int* p) {\n    return *p;\n}\n"
HEAD = 'extern "C" __global__ void kernel(volatile int* data, volatile int* flag, int* y) {\n'
MESSAGE = HEAD + (
    "    if (blockIdx.x == 0) {\n        %s\n        __threadfence();\n        flag[0] = 1;\n"
    "    } else {\n        %s\n        __threadfence();\n        y[0] = data[0];\n    }\n}\n"
)


def run(xp: Any, code: str, blocks: int = 2, threads: int = 1) -> None:
    """Run a kernel to its end."""
    arrays = [xp.zeros(64, "int32") for _ in range(3)]
    xp.RawKernel(code, "kernel")((blocks,), (threads,), tuple(arrays))
    tcuda.synchronize()


@pytest.mark.parametrize(
    "wait",
    [
        "while (flag[0] == 0) {}",
        "while (load(flag) == 0) {}",
        "int seen; do { seen = flag[0]; } while (seen == 0);",
        "for (;;) {\n            if (flag[0] != 0) break;\n        }",
        "while (atomicAdd((int*)flag, 0) == 0) {}",
        "while (atomicCAS((int*)flag, 1, 0) != 1) {}",
    ],
)
def test_a_flag_that_a_loop_polls_is_no_race(xp: Any, wait: str) -> None:
    run(xp, LOAD + MESSAGE % ("data[0] = 7;", wait))


def test_several_blocks_may_write_a_flag_that_a_loop_polls(xp: Any) -> None:
    code = HEAD + (
        "    if (blockIdx.x < 2) {\n        flag[0] = 1;\n    } else {\n"
        "        while (flag[0] == 0) {}\n        y[0] = 1;\n    }\n}\n"
    )
    run(xp, code, blocks=3)


def test_a_volatile_read_may_be_a_guess_for_a_compare_and_swap(xp: Any) -> None:
    code = HEAD + (
        "    int old = data[0], now;\n    do {\n        now = old;\n"
        "        old = atomicCAS((int*)data, now, now + 1);\n    } while (old != now);\n}\n"
    )
    run(xp, code, blocks=3, threads=64)


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (HEAD + "    data[threadIdx.x] = 1;\n    y[threadIdx.x] = data[63 - threadIdx.x];\n}\n", "__syncthreads"),
        (HEAD + "    data[0] = blockIdx.x;\n}\n", "atomic"),
        (HEAD + "    if (blockIdx.x == 0) atomicAdd((int*)data, 1);\n    else y[0] = data[0];\n}\n", "atomic"),
        (HEAD + "    if (blockIdx.x == 0) data[0] = 1;\n    else if (data[0] == 1) y[0] = 1;\n}\n", "atomic"),
        (
            LOAD
            + MESSAGE.replace("__threadfence();\n        flag", "flag") % ("data[0] = 7;", "while (flag[0] == 0) {}"),
            "fence",
        ),
        (LOAD + MESSAGE % ("data[1] = 7; data[0] = 7;", "if (flag[0] == 0) return;"), "atomic"),
    ],
)
def test_volatile_hides_no_race(xp: Any, code: str, word: str) -> None:
    with pytest.raises(KernelRaceError, match=word):
        run(xp, code, *((1, 64) if "threadIdx" in code else (2, 1)))


@pytest.mark.parametrize("scope", ["_block", ""])
@pytest.mark.parametrize("first", [0, 32])
def test_a_volatile_write_races_with_an_atomic_function_of_another_warp(xp: Any, scope: str, first: int) -> None:
    code = HEAD + (
        f"    if (threadIdx.x == {first}) atomicExch{scope}((int*)data, 1);\n"
        f"    else if (threadIdx.x == {32 - first}) data[0] = 2;\n}}\n"
    )
    with pytest.raises(KernelRaceError, match="data"):
        run(xp, code, blocks=1, threads=64)


@pytest.mark.parametrize("wait", ["while (flag[0] == 0) {}", "if (flag[0] == 0) return;"])
def test_a_write_right_behind_a_fence_is_one_of_a_flag_only_if_a_loop_polls(xp: Any, wait: str) -> None:
    code = HEAD + (
        "    if (threadIdx.x == 0) {\n        __threadfence();\n        flag[0] = 1;\n    } else {\n"
        f"        {wait}\n    }}\n}}\n"
    )
    if wait.startswith("while"):
        run(xp, code, blocks=1, threads=2)
        return
    with pytest.raises(KernelRaceError, match="flag"):
        run(xp, code, blocks=1, threads=2)


def test_a_flag_of_a_block_that_a_loop_polls_is_no_race(xp: Any) -> None:
    code = HEAD + (
        "    if (threadIdx.x == 0) {\n        data[0] = 7;\n        __threadfence_block();\n"
        "        atomicExch_block((int*)flag, 1);\n    } else if (threadIdx.x == 32) {\n"
        "        while (flag[0] == 0) {}\n        __threadfence_block();\n        y[0] = data[0];\n    }\n}\n"
    )
    run(xp, code, blocks=1, threads=64)
