"""The benchmarks: the calls that they cover, the check for regressions, and the report."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Protocol

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tcuda._runtime.protocol import Runtime

BASELINE = REPOSITORY / "bench" / "baseline.json"

CALLS = {
    "is_available()",
    "device_count()",
    "current_device()",
    "set_device(0)",
    "with device(0)",
    "with device_of(x)",
    "current_stream()",
    "default_stream()",
    "Stream()",
    "with stream(s)",
    "set_stream(s)",
    "Event()",
    "event.record()",
    "stream.record_event()",
    "event.query()",
    "event.wait()",
    "stream.wait_stream(s2)",
    "stream.query()",
    "stream.synchronize()",
    "event.synchronize()",
    "start.elapsed_time(end)",
    "synchronize()",
    "get_device_properties()",
    "get_device_name()",
    "mem_get_info()",
    "memory_allocated()",
    "max_memory_allocated()",
    "memory_reserved()",
    "memory_stats()",
    "memory_summary()",
    "reset_peak_memory_stats()",
    "caching_allocator_alloc(1 KiB) + delete",
    "caching_allocator_alloc(20 MiB) + delete",
    "empty(1000)",
    "memory_snapshot() of 1,000 blocks",
    "history added to alloc + delete",
    "rand(1000)",
    "randn(1000)",
    "randint(0, 10, 1000)",
    "manual_seed(1)",
    "get_rng_state()",
    "set_rng_state(state)",
    "replay() of 20 kernels",
    "nvtx.range_push() + range_pop()",
    "utilization()",
    "temperature()",
    "import tcuda",
}
ON_CUDA_ALONE = {
    "randn of 100 million",
    "capture of 20 kernels",
    "capture of 20 kernels and 20 arrays",
    "jiterator of 4 inputs",
    "jiterator of broadcast inputs",
    "jiterator, beside ElementwiseKernel",
    "jiterator, beside RawKernel",
    "launch of a compiled kernel",
    "launch of a compiled kernel, beside the driver's",
}

WATCHED = {"watched operation of 2 arrays", "watched operation beside the default stream"}
"""The programs that the race detector watches, on emulated devices only."""

OPERATIONS = {
    "x + 1 of 100 floats",
    "x + x of 100 floats",
    "add(x, 1, out=y) of 100 floats",
    "sqrt(x) of 100 floats",
    "x.sum() of 100 floats",
    "x[1:] of 100 floats",
    "empty() of 100 floats",
    "x + 1 of 10 million floats",
}
"""The operations on emulated arrays, beside NumPy."""


class Check(Protocol):
    def __call__(
        self, ratios: Mapping[str, float], *options: str, runtime: str = "emulated"
    ) -> subprocess.CompletedProcess[str]: ...


def run(*command: str) -> subprocess.CompletedProcess[str]:
    # pytest-benchmark measures nothing in a worker of pytest-xdist, and the command is not run by one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    return subprocess.run(
        [sys.executable, *command],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )


def benchmark(call: str, side: str, nanoseconds: float, ratio: float, runtime: str) -> dict[str, object]:
    """Return the fields of pytest-benchmark's result for one side of a call that the tools read."""
    return {
        "group": call,
        "params": {"on": side},
        "extra_info": {"runtime": runtime, "ratio": ratio},
        "stats": {"median": nanoseconds * 1e-9},
    }


def replays(source: str, workload: str, reserved: float, seconds: float | None = None) -> dict[str, object]:
    """Return pytest-benchmark's result for the replay of a workload with 100 MiB live at the peak."""
    replay = {
        "source": source,
        "workload": workload,
        "allocations": 1000,
        "live": 100 << 20,
        "reserved": round(reserved * (100 << 20)),
        "driver_allocations": None if source == "cupy" else 50,
        "seconds": 0.001,
        "array_seconds": seconds,
    }
    return {"group": "replay", "params": {"source": source}, "extra_info": {"runtime": "cuda", "replays": [replay]}}


def write(path: Path, benchmarks: list[dict[str, object]]) -> None:
    path.write_text(json.dumps({"benchmarks": benchmarks}))


@pytest.fixture
def ratios() -> dict[str, float]:
    """The ratios of the committed baseline."""
    found: dict[str, float] = json.loads(BASELINE.read_text())["emulated"]["ratios"]
    return found


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Return a function that runs the check on results with the given ratios, as CI does."""

    def regression(
        ratios: Mapping[str, float], *options: str, runtime: str = "emulated"
    ) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "results.json"
        sides = [
            benchmark(call, side, 100 * ratio, ratio, runtime)
            for call, tcuda in ratios.items()
            for side, ratio in (("tcuda", tcuda), ("below", 1.0))
        ]
        write(path, sides)
        return run("bench/regression.py", "--json", str(path), *options)

    return regression


def test_every_call_has_a_benchmark_of_tcuda_and_of_the_layer_below(runtime: Runtime) -> None:
    done = run("-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "bench")
    assert done.returncode == 0, done.stdout + done.stderr
    calls = re.findall(r"::test_call\[(.*)-(tcuda|below)\]", done.stdout)
    watched = re.findall(r"::test_watched\[(.*)-(tcuda|below)\]", done.stdout)
    assert set(watched) == {(program, side) for program in WATCHED for side in ("tcuda", "below")}
    operations = re.findall(r"::test_(?:small|large)_operation\[(.*)-(tcuda|below)\]", done.stdout)
    assert set(operations) == {(operation, side) for operation in OPERATIONS for side in ("tcuda", "below")}
    imports = re.findall(r"::test_import\[(tcuda|below)\]", done.stdout)
    measured = {*calls, *(("import tcuda", side) for side in imports)}
    there = CALLS | (ON_CUDA_ALONE if runtime.name == "cuda" else set())
    assert measured == {(call, side) for call in there for side in ("tcuda", "below")}


def test_the_baseline_has_every_call(ratios: dict[str, float]) -> None:
    assert ratios.keys() == CALLS | WATCHED | OPERATIONS


def test_ratios_near_the_baseline_pass(check: Check, ratios: dict[str, float]) -> None:
    done = check(ratios)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SLOWER" not in done.stdout


@pytest.mark.parametrize("call", ["event.record()", "get_device_name()", "import tcuda"])
def test_a_call_that_became_twice_as_slow_fails_and_is_named(check: Check, ratios: dict[str, float], call: str) -> None:
    done = check({**ratios, call: 2 * ratios[call]})
    assert done.returncode == 1
    (row,) = [line for line in done.stdout.splitlines() if "SLOWER" in line]
    assert row.startswith(call)
    assert done.stdout.rstrip().endswith(f": {call}.")


def test_a_call_within_the_tolerance_passes(check: Check, ratios: dict[str, float]) -> None:
    assert check({call: 1.4 * ratio for call, ratio in ratios.items()}).returncode == 0


def test_a_call_that_was_not_measured_is_an_error(check: Check, ratios: dict[str, float]) -> None:
    del ratios["Event()"]
    done = check(ratios)
    assert done.returncode == 2
    assert "not measured: Event(); not in the baseline: none" in done.stderr


def test_a_call_that_the_baseline_does_not_know_is_an_error(check: Check, ratios: dict[str, float]) -> None:
    done = check({**ratios, "warp_drive()": 1.0})
    assert done.returncode == 2
    assert "not measured: none; not in the baseline: warp_drive()" in done.stderr
    assert "--update" in done.stderr


def test_a_runtime_without_a_baseline_is_an_error(check: Check, ratios: dict[str, float]) -> None:
    done = check(ratios, runtime="abacus")
    assert done.returncode == 2
    assert "no section for the abacus runtime" in done.stderr


@pytest.mark.parametrize(
    "text", ["", "[]", '{"benchmarks": []}', '{"benchmarks": [{"group": "another project"}]}'], ids=repr
)
def test_a_file_without_results_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    for script in ("bench/regression.py", "bench/report.py"):
        done = run(script, *(["--json"] if "regression" in script else []), str(path))
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {path} holds no results")


def test_results_of_one_side_only_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write(path, [benchmark("Event()", "tcuda", 100, 1.0, "emulated")])
    done = run("bench/regression.py", "--json", str(path))
    assert done.returncode == 2
    assert "Event() for tcuda only" in done.stderr


def test_update_writes_the_section_of_the_runtime_and_keeps_the_others(tmp_path: Path, check: Check) -> None:
    path = tmp_path / "baseline.json"
    other = {"machine": {"runtime": "cuda"}, "ratios": {"Event()": 2.0}}
    path.write_text(json.dumps({"cuda": other, "emulated": other}))
    assert check({"Event()": 3.0}, "--update", "--baseline", str(path)).returncode == 0
    sections = json.loads(path.read_text())
    assert sections["cuda"] == other
    assert sections["emulated"] == {"machine": {"runtime": "emulated"}, "ratios": {"Event()": 3.0}}
    assert check({"Event()": 3.0}, "--baseline", str(path)).returncode == 0


def test_the_report_checks_the_targets_on_cuda(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    costs = {
        "Event()": (399, 500, 450),
        "Stream()": (501, 5000, 600),
        "mem_get_info()": (4000, 3000, 3900),
        "synchronize()": (1300, 1000, 4000),
        "event.query()": (200, 100, 300),
    }
    ratios = {"synchronize()": 1.14, "event.query()": 2.6}
    write(
        path,
        [
            benchmark(call, side, cost, ratios.get(call, 0.8), "cuda")
            for call, sides in costs.items()
            for side, cost in zip(("tcuda", "below", "torch"), sides, strict=True)
        ],
    )
    done = run("bench/report.py", str(path))
    assert done.returncode == 0, done.stderr
    assert re.search(r"Event\(\) +399 +500 +450 +-100 +0\.89 +≤ 400, ≤ torch +yes", done.stdout)
    # The report compares neighbouring rounds of a call and the layer below, not the medians of all rounds.
    assert re.search(r"synchronize\(\) +1,300 +1,000 +4,000 +\+140 .* yes\n", done.stdout)
    assert done.stdout.endswith("2 of 5 calls meet their targets; not: Stream(), mem_get_info(), event.query().\n")
    in_markdown = run("bench/report.py", str(path), "--markdown").stdout
    assert "| Event() | 399 | 500 | 450 | -100 | 0.89 | ≤ 400, ≤ torch | yes |" in in_markdown


def test_the_report_shows_the_times_and_the_bandwidths_over_several_devices(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    times = {
        ("broadcast 256 MiB", 2): (700, 695, 776),
        ("broadcast 256 MiB", 4): (900, 2100, 890),
        ("reduce_add 1 KiB", 2): (18, 40, 29),
        ("scatter 4 MiB", 2): (20, None, None),
    }
    sides = "tcuda", "cupy", "torch"
    write(
        path,
        [
            {
                "extra_info": {"runtime": "cuda", "comm": {"call": call, "devices": devices, "on": on}},
                "stats": {"median": microseconds * 1e-6},
            }
            for (call, devices), measured in times.items()
            for on, microseconds in zip(sides, measured, strict=True)
            if microseconds is not None
        ],
    )
    done = run("bench/report.py", str(path))
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"broadcast 256 MiB +2 +700\.0 +695\.0 +776\.0 +0\.90 +383\.5 +≤ 726 µs, ≤ torch +yes", done.stdout
    )
    assert re.search(r"broadcast 256 MiB +4 +900\.0 +2,100\.0 +890\.0 +1\.01 +298\.3 +≤ torch +NO", done.stdout)
    assert re.search(r"reduce_add 1 KiB +2 +18\.0 +40\.0 +29\.0 +0\.62 +0\.1 +≤ torch +yes", done.stdout)
    assert re.search(r"scatter 4 MiB +2 +20\.0 +- +- +- +104\.9 +≤ torch +yes", done.stdout)


def test_the_report_checks_no_target_on_emulated_devices(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write(path, [benchmark("Event()", side, 9999, 1.0, "emulated") for side in ("tcuda", "below")])
    done = run("bench/report.py", str(path))
    assert re.search(r"Event\(\) +9,999 +9,999 +- +\+0 +- +- +-\n", done.stdout)


def test_the_report_checks_targets_relative_to_the_layer_below_and_to_torch(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    costs = {
        "memory_stats()": ((1900, 1800, 10000), 1.05, "≤ 0.2 torch +yes"),
        "caching_allocator_alloc(20 MiB) + delete": ((310, 700, 1000), 0.45, "≤ 0.3 torch +NO"),
        # The report compares neighbouring rounds of a call and the layer below, not the medians of all rounds.
        "empty(1000)": ((890, 900, 3000), 1.02, "≤ below, ≤ torch +NO"),
    }
    write(
        path,
        [
            benchmark(call, side, cost, ratio, "cuda")
            for call, (sides, ratio, _) in costs.items()
            for side, cost in zip(("tcuda", "below", "torch"), sides, strict=True)
        ],
    )
    done = run("bench/report.py", str(path)).stdout
    for call, (_, _, verdict) in costs.items():
        assert re.search(rf"^{re.escape(call)} .* {verdict}$", done, re.MULTILINE), done


@pytest.mark.parametrize(("torch", "met"), [(1150, "yes"), (949, "NO")])
def test_the_report_subtracts_the_cost_of_an_allocation_from_that_of_history(
    tmp_path: Path, torch: float, met: str
) -> None:
    path = tmp_path / "results.json"
    plain, history = "caching_allocator_alloc(1 KiB) + delete", "history added to alloc + delete"
    costs = {plain: (150, 700, 600), history: (500, 700, torch)}
    write(
        path,
        [
            benchmark(call, side, cost, 0.5, "cuda")
            for call, sides in costs.items()
            for side, cost in zip(("tcuda", "below", "torch"), sides, strict=True)
        ],
    )
    done = run("bench/report.py", str(path)).stdout
    assert re.search(rf"^{re.escape(history)} +350 +- +{torch - 600} +- .* {met}$", done, re.MULTILINE), done


def test_the_cost_of_history_without_that_of_an_allocation_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write(path, [benchmark("history added to alloc + delete", side, 100, 1.0, "cuda") for side in ("tcuda", "below")])
    done = run("bench/report.py", str(path))
    assert done.returncode == 2
    assert "is counted from 'caching_allocator_alloc(1 KiB) + delete': measure that call, too" in done.stderr


@pytest.mark.parametrize(
    ("seconds", "reserved", "met"), [(0.8, 1.1, "yes"), (0.81, 1.1, "NO"), (0.8, 1.11, "NO")], ids=str
)
def test_the_report_compares_new_memory_with_torch(tmp_path: Path, seconds: float, reserved: float, met: str) -> None:
    path = tmp_path / "results.json"
    write(path, [replays("tcuda", "cold_small", reserved, seconds), replays("torch", "cold_small", 1.1, 1.0)])
    done = run("bench/report.py", str(path)).stdout
    assert re.search(rf"cold_small +tcuda +1\.00 +{seconds * 1000:.2f} .* {met}$", done, re.MULTILINE), done
    assert re.search(r"cold_small +torch +1\.00 +1000\.00 +110 +50 +- +-$", done, re.MULTILINE), done


@pytest.mark.parametrize(("reserved", "met"), [(1.22, "yes"), (1.23, "NO")])
def test_the_report_allows_what_torch_reserves_and_one_step_of_small_requests(
    tmp_path: Path, reserved: float, met: str
) -> None:
    path = tmp_path / "results.json"
    held = {"tcuda": reserved, "torch": 1.5, "torch_expandable": 1.2, "cupy": 1.3, "cupy_async": 1.1}
    write(path, [replays(source, "churn_small", each) for source, each in held.items()])
    done = run("bench/report.py", str(path)).stdout
    assert re.search(rf"churn_small +100 +{reserved:.3f} +1\.500 .* +≤ 1\.220 +{met}$", done, re.MULTILINE), done


@pytest.mark.long
@pytest.mark.emulated
def test_replays_print_the_memory_and_allocations_of_a_workload() -> None:
    done = run("bench/replay.py", "--workload", "cold_large", "--trace", "bench/data/deeplab_infer.npz", "--json")
    assert done.returncode == 0, done.stderr
    found = {(each["source"], each["workload"]): each for each in json.loads(done.stdout)}
    assert found.keys() == {
        (source, workload) for source in ("tcuda", "tcuda_segments") for workload in ("cold_large", "deeplab_infer")
    }
    assert {each["allocations"] for each in found.values()} == {500, 2451}
    assert all(each["reserved"] >= each["live"] for each in found.values())


@pytest.mark.parametrize("text", [b"", b"no trace"], ids=repr)
def test_a_file_that_is_no_trace_is_an_error(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "trace.npz"
    path.write_bytes(text)
    done = run("bench/replay.py", "--source", "tcuda", "--trace", str(path))
    assert done.returncode == 2
    assert done.stderr == f"error: {path} holds no array 'events'.\n"
