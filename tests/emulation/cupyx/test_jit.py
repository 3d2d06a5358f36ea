"""Kernels in Python (``cupyx.jit``) on emulated devices."""

from __future__ import annotations

import linecache
import pickle
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.environments import environment
from support.folders import REPOSITORY
from tcuda.emulation import cupyx, xp
from tcuda.emulation.cupyx import jit
from tcuda.sanitizer import KernelRace, check

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.usefixtures("memory_comes_back"),
    pytest.mark.filterwarnings("ignore:cupyx.jit.rawkernel is experimental"),
]

RNG = np.random.default_rng(0)


def launched(kernel: Any, threads: int, *args: Any, **more: Any) -> None:
    kernel[1, threads](*args, **more)


def copied(x, y, size):
    first = jit.grid(1)
    for i in range(first, size, jit.gridsize(1)):
        y[i] = x[i]


def test_a_kernel_has_both_forms_of_a_launch() -> None:
    copy = jit.rawkernel()(copied)
    x = xp.arange(100, dtype=np.int32)
    for launch in (
        lambda y: copy((3,), (8,), (x, y, 100)),
        lambda y: copy[3, 8](x, y, np.uint32(100)),
        lambda y: copy[(3, 1), (8,)](x, y, 100, stream=tcuda.current_stream()),
    ):
        y = xp.zeros_like(x)
        launch(y)
        assert (x == y).all()
    assert copy.__name__ == "copied"
    assert len(copy.cached_codes) == 2


def test_the_first_use_of_the_decorator_warns() -> None:
    with pytest.warns(FutureWarning, match="experimental"):
        jit.rawkernel()
    with pytest.raises(ValueError, match="mode is 'cuda' or 'numpy', not 'c'"):
        jit.rawkernel(mode="c")
    assert cupyx.jit is jit


def test_statements_are_those_of_python() -> None:
    @jit.rawkernel()
    def kernel(out, n):
        total = 0
        for i in range(n):
            if i == 3:
                continue
            if i > 8:
                break
            total += i
        out[0] = total
        k = 10
        while k > 0 and k != 4:
            k -= 1
        out[1] = k
        for last in range(5, 0, -2):
            out[7] += last
        out[2] = last
        a, b = 1, 2
        a, b = b, a
        out[3], out[4] = a, b
        out[5] = 7 if n > 5 and not out[7] == 6 else 8  # noqa: SIM201
        out[6]: int = -n
        assert n > 0
        return

    out = xp.zeros(8, dtype=np.int64)
    launched(kernel, 1, out, 20)
    assert out.tolist() == [0 + 1 + 2 + 4 + 5 + 6 + 7 + 8, 4, 1, 2, 1, 7, -20, 5 + 3 + 1]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "f4", "f8"])
def test_operators_give_numpys_numbers(dtype: str) -> None:
    @jit.rawkernel()
    def kernel(x, y, out):
        i = jit.grid(1)
        out[i, 0] = x[i] + y[i]
        out[i, 1] = x[i] - y[i]
        out[i, 2] = x[i] * y[i]
        out[i, 3] = x[i] // y[i]
        out[i, 4] = x[i] % y[i]
        out[i, 5] = x[i] / y[i]
        out[i, 6] = x[i] < y[i]
        out[i, 7] = x[i] == y[i]
        out[i, 8] = min(x[i], y[i])
        out[i, 9] = max(x[i], y[i])
        out[i, 10] = x[i] ** 2

    low = 0 if dtype.startswith("u") else -7
    x, y = (RNG.integers(low, 8, 40).astype(dtype) for _ in range(2))
    y[y == 0] = 3
    out = xp.zeros((40, 11))
    launched(kernel, 40, xp.asarray(x), xp.asarray(y), out)
    expected = [x + y, x - y, x * y, x // y, x % y, x / y, x < y, x == y, np.minimum(x, y), np.maximum(x, y), x**2]
    for column, wanted in enumerate(expected):
        np.testing.assert_allclose(out.get()[:, column], wanted.astype("f8"), rtol=1e-6)


def test_functions_of_integers_have_loops_of_their_own() -> None:
    @jit.rawkernel(mode="numpy")
    def kernel(x, y, out):
        i = jit.grid(1)
        out[i, 0] = xp.reciprocal(x[i])
        out[i, 1] = xp.ceil(x[i])
        out[i, 2] = xp.fmod(x[i], y[i])
        out[i, 3] = xp.logical_xor(x[i], y[i])

    x, y = xp.asarray([0, 1, 5]), xp.asarray([1, 0, -3])
    out = xp.zeros((3, 4), int)
    launched(kernel, 3, x, y, out)
    assert out.tolist() == [[0, 0, 0, 1], [1, 1, 0, 1], [0, 5, 2, 0]]


@pytest.mark.parametrize("dtype", ["e", "f", "d", "F", "D"])
def test_functions_give_numpys_numbers(dtype: str) -> None:
    @jit.rawkernel()
    def kernel(x, out):
        i = jit.grid(1)
        out[i, 0] = xp.sin(x[i])
        out[i, 1] = xp.exp(x[i])
        out[i, 2] = xp.sqrt(x[i])
        out[i, 3] = abs(x[i])

    x = (RNG.random(16) + 0.5).astype(dtype)
    out = xp.zeros((16, 4), dtype=dtype)
    launched(kernel, 16, xp.asarray(x), out)
    expected = np.stack([np.sin(x), np.exp(x), np.sqrt(x), np.abs(x)], 1)
    np.testing.assert_allclose(out.get(), expected, rtol=1e-2 if dtype == "e" else 1e-5)


@pytest.mark.parametrize(("mode", "integer", "real"), [("cuda", "int", "float"), ("numpy", "long long", "double")])
def test_the_mode_decides_the_types_of_numbers(mode: str, integer: str, real: str) -> None:
    @jit.rawkernel(mode=mode)
    def kernel(x):
        i = 1
        f = 0.1
        x[0] = i + f

    x = xp.zeros(1)
    launched(kernel, 1, x)
    assert f"\n{integer} i;\n{real} f;\n" in kernel.cached_code
    assert x.item() == (np.float32(1) + np.float32(0.1) if mode == "cuda" else 1.1)


def test_arrays_have_their_strides_attributes_and_parts() -> None:
    @jit.rawkernel()
    def kernel(x, out):
        i = jit.threadIdx.x
        row = x[i]
        total = 0.0
        for k in range(len(row)):
            total += row[k]
        out[i] = total + x.size + x.ndim + x.shape[1] + x.strides[0]

    base = RNG.random((5, 12))
    for x in (xp.asarray(base), xp.asarray(base)[:, ::3], xp.asarray(base.T).T):
        out = xp.zeros(5)
        launched(kernel, 5, x, out)
        wanted = x.get().sum(1) + x.size + 2 + x.shape[1] + x.strides[0]
        np.testing.assert_allclose(out.get(), wanted, rtol=1e-5)


def test_threads_of_a_block_share_memory_and_wait() -> None:
    @jit.rawkernel()
    def reversed_of(x, y):
        i = jit.threadIdx.x
        part = jit.shared_memory(np.float32, 64)
        dynamic = jit.shared_memory(xp.float32, None)
        part[i] = x[i]
        dynamic[i] = 2 * x[i]
        jit.syncthreads()
        y[i] = part[63 - i] + dynamic[63 - i]

    x = xp.arange(64, dtype=np.float32)
    y = xp.zeros_like(x)
    launched(reversed_of, 64, x, y, shared_mem=256)
    assert (y == 3 * x[::-1]).all()


def test_atomic_and_shuffling_functions() -> None:
    @jit.rawkernel()
    def kernel(x, sums, counts, lanes):
        i = jit.grid(1)
        jit.atomic_add(sums, i % 2, x[i])
        jit.atomic_max(counts, 0, i)
        jit.atomic_cas(counts, 1, 5, 9)
        value = x[i]
        for step in range(5):
            value += jit.shfl_xor_sync(0xFFFFFFFF, value, 1 << step)
        lanes[i] = value + jit.laneid()

    x = xp.ones(32, dtype=np.float32)
    sums, counts, lanes = xp.zeros(2, np.float32), xp.array([0, 5], np.uint32), xp.zeros(32)
    launched(kernel, 32, x, sums, counts, lanes)
    assert (sums.tolist(), counts.tolist()) == ([16, 16], [31, 9])
    assert lanes.tolist() == [32 + lane for lane in range(32)]


def test_kernels_call_functions_for_the_device() -> None:
    def scaled_by(factor: int) -> Any:
        @jit.rawkernel(device=True)
        def scaled(x):
            return x * factor

        return scaled

    @jit.rawkernel(device=True)
    def pair(x):
        return x, -x

    @jit.rawkernel()
    def kernel(x, y):
        i = jit.grid(1)
        a, b = pair(x[i])
        y[i] = scaled_by(3)(a) + scaled_by(5)(b)

    x = xp.arange(8)
    y = xp.zeros_like(x)
    launched(kernel, 8, x, y)
    assert (y == -2 * x).all()


def test_groups_reductions_and_algorithms() -> None:
    @jit.rawkernel()
    def kernel(x, sums, sizes):
        i = jit.threadIdx.x
        reduction = jit.cub.BlockReduce[np.int32, 64]
        storage = jit.shared_memory(reduction.TempStorage, 1)
        value = reduction(storage[0]).Reduce(i, jit.cub.Max())
        group = jit.cg.this_thread_block()
        group.sync()
        if group.thread_rank() == 0:
            sums[0] = value
            sizes[0] = group.size()
        if i < 4:
            jit.thrust.sort(jit.thrust.seq, x[i].begin(), x[i].end())

    data = RNG.integers(0, 50, (4, 100))
    for x in (xp.asarray(data), xp.asfortranarray(xp.asarray(data))):
        sums, sizes = xp.zeros(1, np.int32), xp.zeros(1, np.int64)
        kernel[1, 64](x, sums, sizes)
        assert (sums.item(), sizes.item()) == (63, 64)
        assert (x.get() == np.sort(data, 1)).all()


def test_the_blocks_of_a_launch_meet() -> None:
    @jit.rawkernel(device=True)
    def next_of(part, grid):
        grid.sync()
        return part[(grid.block_rank() + 1) % grid.num_blocks()]

    @jit.rawkernel()
    def kernel(x, part, y):
        b = jit.blockIdx.x
        grid = jit.cg.this_grid()
        if jit.threadIdx.x == 0:
            part[b] = x[b]
        following = next_of(part, grid)
        if jit.threadIdx.x == 1:
            y[b] = 10 * following + grid.is_valid()

    x, part, y = xp.arange(40), xp.zeros(40, np.int64), xp.zeros(40, np.int64)
    for _ in range(2):
        kernel[40, 64](x, part, y)
        assert y.tolist() == [10 * (each % 40) + 1 for each in range(1, 41)]
    with pytest.warns(UserWarning, match="The grid size will be reduced from 300 to 256") as caught:
        kernel[300, 64](xp.arange(300), xp.zeros(300, np.int64), xp.zeros(300, np.int64))
    assert caught[0].filename == __file__


@pytest.mark.eager
@pytest.mark.parametrize("function", ["sync", "wait"])
def test_only_the_method_of_a_grid_asks_for_a_cooperative_launch(function: str) -> None:
    barrier = getattr(jit.cg, function)

    @jit.rawkernel()
    def kernel(valid):
        grid = jit.cg.this_grid()
        valid[0] = grid.is_valid()
        if valid[0] > 1:
            barrier(grid)

    valid = xp.ones(1, np.int32)
    launched(kernel, 1, valid)
    assert valid.item() == 0


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 33, 100, 257])
def test_sorting_keeps_the_order_of_equal_keys(count: int) -> None:
    @jit.rawkernel()
    def kernel(keys, values):
        jit.thrust.stable_sort_by_key(jit.thrust.seq, keys.begin(), keys.end(), values.begin())

    keys, values = RNG.integers(0, 9, count), np.arange(count)
    held = xp.asarray(keys), xp.asarray(values)
    launched(kernel, 1, *held)
    order = np.argsort(keys, kind="stable")
    assert (held[0].tolist(), held[1].tolist()) == (keys[order].tolist(), values[order].tolist())


def test_sets_are_those_of_numpy() -> None:
    @jit.rawkernel()
    def kernel(a, b, all_of, both, only, counts):
        end = jit.thrust.set_union(jit.thrust.seq, a.begin(), a.end(), b.begin(), b.end(), all_of.begin())
        counts[0] = end - all_of.begin()
        end = jit.thrust.set_intersection(jit.thrust.seq, a.begin(), a.end(), b.begin(), b.end(), both.begin())
        counts[1] = end - both.begin()
        end = jit.thrust.set_difference(jit.thrust.seq, a.begin(), a.end(), b.begin(), b.end(), only.begin())
        counts[2] = end - only.begin()

    a, b = (np.unique(RNG.integers(0, 60, 30)) for _ in range(2))
    made = [xp.zeros(60, dtype=a.dtype) for _ in range(3)]
    counts = xp.zeros(3, dtype=np.int64)
    launched(kernel, 1, xp.asarray(a), xp.asarray(b), *made, counts)
    wanted = (np.union1d(a, b), np.intersect1d(a, b), np.setdiff1d(a, b))
    for array, count, each in zip(made, counts.tolist(), wanted, strict=True):
        assert array[:count].tolist() == each.tolist()


def test_loops_are_unrolled_by_a_directive() -> None:
    @jit.rawkernel()
    def kernel(x):
        for _ in jit.range(5, unroll=3):
            x[0] += 1

    x = xp.zeros(1)
    launched(kernel, 1, x)
    assert x.item() == 5
    assert "#pragma unroll(3)\n" in kernel.cached_code


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("y = missing", NameError, "Unbound name: missing"),
        ("x[0, 0] = 1", IndexError, "The number of indices is beyond array dim: 1"),
        ("x[0.5] = 1", TypeError, "Array indices must be integers"),
        ("x[0] = 1j", TypeError, "Cannot cast from 'complex64' to 'float64'"),
        ("y = x.nothing", AttributeError, "Unknown attribute: nothing"),
        ("with x: pass", ValueError, "Switching contexts are not allowed"),
        ("import os", ValueError, "Cannot import modules"),
        ("y = [1, 2]", ValueError, "Not supported: List"),
        ("y = 0 < x[0] < 1", NotImplementedError, "Comparison of 3 or more values"),
        ("for i in x: pass", NotImplementedError, "for-loop is supported only for range iterator"),
        ("a, b = x", ValueError, "cannot be unpacked"),
        ("a, b = 1, 2, 3", ValueError, "too many values to unpack"),
        ("return 1", ValueError, "Failed to infer the return type"),
        ("y = 1; y = 1.5", TypeError, "Cannot cast from 'float32' to 'int32'"),
        ("y = xp.linalg.norm(x[0])", TypeError, "Invalid function call 'norm'"),
    ],
)
def test_an_error_names_the_line_of_the_program(tmp_path: Path, body: str, error: type, message: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"def kernel(x):\n    i = 0\n    {body}\n", encoding="utf-8")
    names: dict[str, Any] = {"jit": jit, "xp": xp}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    x = xp.ones(3)
    with pytest.raises(error, match=message) as caught:
        launched(jit.rawkernel()(names["kernel"]), 1, x)
    assert f'File "{path}", line 3, in kernel' in str(caught.value)


@pytest.mark.parametrize("decorator", ["", "    @jit.rawkernel()\n"])
def test_a_text_in_an_indented_function_may_have_lines_without_indent(tmp_path: Path, decorator: str) -> None:
    path = tmp_path / "program.py"
    body = '        """Double.\n\nNo indent.\n"""\n        x[0] = x[0] * 2\n        x[1] = 3 @ 4\n'
    text = f"def made():\n{decorator}    def kernel(x):\n{body}    return kernel\n"
    number = len(text.splitlines()) - 1
    names: dict[str, Any] = {"jit": jit}

    def kernel_of(text: str) -> Any:
        path.write_text(text, encoding="utf-8")
        linecache.checkcache(str(path))
        exec(compile(text, str(path), "exec"), names)
        made = names["made"]()
        return made if decorator else jit.rawkernel()(made)

    x = xp.ones(3)
    with pytest.raises(NotImplementedError, match=f'File "{path}", line {number}, in kernel\n    x\\[1\\] = 3 @ 4'):
        launched(kernel_of(text), 1, x)
    launched(kernel_of(text.replace("3 @ 4", "5.0")), 1, x)
    assert x.tolist() == [2, 5, 1]


def test_calls_that_a_kernel_does_not_have_are_refused() -> None:
    @jit.rawkernel()
    def kernel(x):
        other(x)

    @jit.rawkernel()
    def other(x):
        x[0] = 1

    @jit.rawkernel(device=True)
    def endless(x):
        return endless(x)

    @jit.rawkernel()
    def calls_endless(x):
        endless(x[0])

    x = xp.zeros(1)
    with pytest.raises(TypeError, match="Calling __global__ function other"):
        launched(kernel, 1, x)
    with pytest.raises(ValueError, match="Recursive function is not supported"):
        launched(calls_endless, 1, x)
    with pytest.raises(TypeError, match="takes 1 positional arguments but 2 were given"):
        launched(other, 1, x, x)
    with pytest.raises(TypeError, match="is not supported for RawKernel"):
        launched(other, 1, np.zeros(1))
    with pytest.raises(RuntimeError, match=r"Cannot call cupyx\.jit\.syncthreads from Python"):
        jit.syncthreads()
    with pytest.warns(UserWarning, match="No codes are cached"):
        assert kernel.cached_codes == {}


def test_both_devices_run_a_kernel() -> None:
    copy = jit.rawkernel()(copied)
    for device in range(2):
        with tcuda.device(device):
            x, y = xp.arange(8), xp.zeros(8, dtype=np.int64)
            copy[1, 8](x, y, 8)
            assert y.tolist() == [*range(8)]


@pytest.mark.eager
def test_an_access_outside_names_the_kernel() -> None:
    @jit.rawkernel()
    def beyond(x):
        x[jit.grid(1)] = 1.0

    x = xp.zeros(64, dtype=np.float32)
    with pytest.raises(Exception, match=r"in beyond at \S+:\d+, by thread \(64, 0, 0\) of block"):
        launched(beyond, 65, x)


@pytest.mark.eager
@pytest.mark.usefixtures("kernels_are_searched")
def test_a_race_names_the_lines_in_python() -> None:
    @jit.rawkernel()
    def mirrored(x):
        i = jit.threadIdx.x
        part = jit.shared_memory(np.float32, 64)
        part[i] = x[i]
        x[i] = part[63 - i]

    first = mirrored.__wrapped__.__code__.co_firstlineno
    with check(mode="collect") as report:
        launched(mirrored, 64, xp.zeros(64, dtype=np.float32))
    (race,) = report.races
    assert isinstance(race, KernelRace)
    lines = {(access.line.filename, access.line.line, access.source) for access in (race.previous, race.current)}
    assert lines == {(__file__, first + 4, "part[i] = x[i]"), (__file__, first + 5, "x[i] = part[63 - i]")}


def test_the_example_of_the_documentation_runs_as_a_program(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "kernels.md").read_text(encoding="utf-8")
    (example,) = [code for code in re.findall(r"^```py\n(.*?)^```\n", page, re.DOTALL | re.MULTILINE) if "jit" in code]
    path = tmp_path / "program.py"
    path.write_text(f"{example}print(y.sum())\n", encoding="utf-8")
    command = [sys.executable, "-m", "tcuda.emulation", str(path)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "256.0\n"), done.stderr


def test_a_module_of_kernels_is_what_pickles_name() -> None:
    assert pickle.loads(pickle.dumps(jit.rawkernel)) is jit.rawkernel
