"""Each backend of the allocator: array contents are right, figures are exact, and all memory is given back."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from support.sizes import MIB

if TYPE_CHECKING:
    from support.fixture_types import OutputOf, RunPython

VARIABLES = ("TCUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


class Backend(NamedTuple):
    settings: str
    name: str


BACKENDS = [
    Backend("", "native"),
    Backend("backend:native", "native"),
    Backend("expandable_segments:False", "native"),
    Backend("backend:cupy", "cupy"),
    Backend("backend:cudaMallocAsync", "cudaMallocAsync"),
]

# One process for each backend runs this program; each test checks a part of the results.
_PROGRAM = """
import gc, json, random, sys, threading
import tcuda
from tcuda import xp

KIB, MIB = 1 << 10, 1 << 20
told = {"before": tcuda.get_allocator_backend()}
tcuda.init()
device = tcuda.device_count() - 1
free_at_first = tcuda.mem_get_info()[0]

def counted():
    stats = tcuda.memory_stats()
    names = ("allocation", "allocated_bytes", "requested_bytes", "active", "active_bytes", "segment", "reserved_bytes")
    return {name: stats[f"{name}.all.current"] for name in names}

def consistent():
    '''Return the differences between a snapshot and the statistics.'''
    segments = tcuda.memory_snapshot()
    blocks = [block for segment in segments for block in segment["blocks"]]
    live = [block for block in blocks if block["state"] == "active_allocated"]
    active = [block for block in blocks if block["state"] != "inactive"]
    stats = [tcuda.memory_stats(index) for index in range(tcuda.device_count())]
    def total(key): return sum(one[f"{key}.all.current"] for one in stats)
    figures = [
        (len(live), total("allocation")),
        (sum(block["size"] for block in live), total("allocated_bytes")),
        (len(active), total("active")),
        (sum(block["requested_size"] for block in active), total("requested_bytes")),
        (sum(segment["allocated_size"] for segment in segments), total("allocated_bytes")),
        (sum(segment["active_size"] for segment in segments), total("active_bytes")),
    ]
    if told["before"] != "cudaMallocAsync":
        figures += [(len(segments), total("segment"))]
        figures += [(sum(segment["total_size"] for segment in segments), total("reserved_bytes"))]
    gaps = 0  # the blocks of a segment follow each other without gaps, and segments do not overlap
    end, device = 0, 0
    for segment in segments:  # snapshots are in the order of devices and addresses
        gaps += segment["device"] < device or (segment["device"] == device and segment["address"] < end)
        device = segment["device"]
        at = segment["address"]
        for block in segment["blocks"]:
            gaps += block["address"] != at
            at += block["size"]
        end = segment["address"] + segment["total_size"]
        gaps += at != end
    return [pair for pair in figures if pair[0] != pair[1]] + gaps * ["gap"]

a = xp.arange(100_000, dtype="f8").reshape(100, 1000)
b = (a * 2 + 1)[::2]
told["right"] = [float(b.sum()), float(xp.linalg.norm(xp.ones((30, 30)) @ xp.ones((30, 30)))), b[3, :3].tolist()]
del a, b
gc.collect()

base = counted()
kept = [xp.empty(size, "B") for size in (1, 512, 513, 100_000, MIB, MIB + 1, 12_000_000)]
names = ("allocation", "allocated_bytes", "requested_bytes", "active")
told["sizes"] = [counted()[name] - base[name] for name in names]
told["memory"] = [array.data.mem.size for array in kept]
told["consistent"] = [consistent()]
with tcuda.memory.track() as usage:
    xp.empty(3000, "B")
told["tracked"] = usage.usage[:5]  # without page-locked memory

side = tcuda.Stream()
with tcuda.stream(side):
    kept.append(xp.empty(5000, "B"))
with tcuda.device(device):
    kept.append(xp.empty(7000, "B"))
told["consistent"].append(consistent())

doomed = xp.empty(4000, "B")
active = counted()["active"]
with tcuda.stream(side):
    tcuda._sleep(100_000_000)
tcuda.memory.record_stream(doomed, side)
del doomed
told["recorded"] = [counted()["active"] - active]
told["consistent"].append(consistent())
side.synchronize()
xp.empty(10, "B")
told["recorded"].append(counted()["active"] - active)

try:
    xp.empty(1 << 50, "B")
except tcuda.OutOfMemoryError as error:
    told["oom"] = str(error).partition(". GPU")[0]
told["ooms"] = tcuda.memory_stats()["num_ooms"]

tcuda.set_per_process_memory_fraction((tcuda.memory_reserved() + 64 * MIB) / tcuda.mem_get_info()[1])
try:
    kept.append(xp.empty(200 * MIB, "B"))
    told["limited"] = False
except tcuda.OutOfMemoryError:
    told["limited"] = True
xp.empty(8 * MIB, "B")
tcuda.set_per_process_memory_fraction(1.0)

tcuda.memory._record_memory_history()
xp.empty(100, "B")
events = tcuda.memory._snapshot()["device_traces"][0]
told["history"] = [[event["action"], event["frames"][-1:]] for event in events if "segment" not in event["action"]]
tcuda.empty_cache()
tcuda.memory._record_memory_history(clear_history=True)
xp.empty(90 * MIB, "B")
tcuda.empty_cache()
events = tcuda.memory._snapshot()["device_traces"][0]
told["segments"] = [[event["action"], event["frames"][-1]["line"]] for event in events if "segment" in event["action"]]
tcuda.memory._record_memory_history(None)

def churn(seed):
    chance = random.Random(seed)
    mine = []
    with tcuda.stream(tcuda.Stream()):
        for _ in range(200):
            if mine and chance.random() < 0.5:
                mine.pop(chance.randrange(len(mine)))
            else:
                mine.append(xp.empty(chance.randrange(1, 200_000), "B"))
before = counted()
threads = [threading.Thread(target=churn, args=[seed]) for seed in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
after = counted()
told["churned"] = [after[name] - before[name] for name in names]
told["consistent"].append(consistent())

tcuda.synchronize()
tcuda.empty_cache()
told["consistent"].append(consistent())
del kept
tcuda.empty_cache()
told["end"] = [tcuda.memory_stats(index)[f"{name}.all.current"] for index in range(device + 1)
               for name in ("allocation", "allocated_bytes", "active", "requested_bytes")]
told["reserved at the end"] = tcuda.memory_reserved()
told["free"] = tcuda.mem_get_info()[0] - free_at_first
told["after"] = tcuda.get_allocator_backend()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return {}


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.settings or "default")
def backend(request: pytest.FixtureRequest) -> Backend:
    backend: Backend = request.param
    return backend


@pytest.fixture
def told(backend: Backend, results: dict[str, Any], fresh_output_of: OutputOf) -> dict[str, Any]:
    """The results of the program with the backend; the program runs once for each backend."""
    if backend.settings not in results:
        environment = dict.fromkeys(VARIABLES) | {"TCUDA_ALLOC_CONF": backend.settings}
        results[backend.settings] = json.loads(fresh_output_of(_PROGRAM, **environment))
    result: dict[str, Any] = results[backend.settings]
    return result


class TestEveryBackend:
    def test_the_backend_has_its_name_before_and_after_initialisation(
        self, told: dict[str, Any], backend: Backend
    ) -> None:
        assert (told["before"], told["after"]) == (backend.name, backend.name)

    def test_array_contents_are_right(self, told: dict[str, Any]) -> None:
        assert told["right"] == [pytest.approx(4_950_000_000.0), pytest.approx(900.0), [12001.0, 12003.0, 12005.0]]

    def test_allocations_and_bytes_are_counted_exactly(self, told: dict[str, Any]) -> None:
        sizes = (1, 512, 513, 100_000, MIB, MIB + 1, 12_000_000)
        rounded = [-(-size // 512) * 512 for size in sizes]
        assert told["sizes"] == [len(sizes), sum(rounded), sum(sizes), len(sizes)]

    def test_the_memory_of_an_array_is_all_of_its_block(self, told: dict[str, Any]) -> None:
        sizes = [512, 512, 1024, 100_352, MIB, MIB + 512, 12_000_256]
        assert told["memory"] == sizes
        assert told["sizes"][1] == sum(sizes)

    def test_a_snapshot_says_the_same_as_the_statistics(self, told: dict[str, Any]) -> None:
        assert told["consistent"] == [[]] * 5

    def test_track_measures_an_array_that_is_freed(self, told: dict[str, Any]) -> None:
        assert told["tracked"] == [0, 3072, 3072, 3072, 1]

    def test_memory_that_another_stream_uses_is_freed_later(self, told: dict[str, Any]) -> None:
        assert told["recorded"] == [0, -1]

    def test_a_lack_of_memory_is_reported(self, told: dict[str, Any]) -> None:
        assert told["oom"] == "CUDA out of memory. Tried to allocate 1048576.00 GiB"
        assert told["ooms"] == 1

    def test_the_memory_fraction_limits_the_process(self, told: dict[str, Any]) -> None:
        assert told["limited"]

    def test_the_history_records_an_array_that_is_freed(self, told: dict[str, Any]) -> None:
        line = _PROGRAM.splitlines().index('xp.empty(100, "B")') + 1
        here = [{"name": "<module>", "filename": "<string>", "line": line}]
        assert told["history"] == [["alloc", here], ["free_requested", here], ["free_completed", here]]

    def test_segment_events_have_the_stacks_of_their_calls(self, told: dict[str, Any], backend: Backend) -> None:
        taking = _PROGRAM.splitlines().index('xp.empty(90 * MIB, "B")') + 1
        taken = {line for action, line in told["segments"] if action in ("segment_alloc", "segment_map")}
        given = {line for action, line in told["segments"] if action in ("segment_free", "segment_unmap")}
        if backend.name == "cudaMallocAsync":  # CUDA does not report what its own pool takes
            assert taken == given == set()
        else:
            assert (taken, given) == ({taking}, {taking + 1})

    def test_threads_at_once_leave_the_figures_right(self, told: dict[str, Any]) -> None:
        assert told["churned"] == [0, 0, 0, 0]

    def test_all_memory_is_given_back_at_the_end(self, told: dict[str, Any]) -> None:
        assert set(told["end"]) == {0}
        assert told["reserved at the end"] == 0
        if os.environ["TCUDA_RUNTIME"] == "emulated":  # no other process uses the memory
            assert told["free"] == 0


class TestChoosing:
    @pytest.mark.parametrize("variable", VARIABLES)
    def test_each_environment_variable_is_read(self, output_of: OutputOf, variable: str) -> None:
        environment = dict.fromkeys(VARIABLES) | {variable: "backend:cupy"}
        program = "import tcuda; x = tcuda.xp.empty(1000, 'B'); print(tcuda.get_allocator_backend())"
        assert output_of(program, **environment) == "cupy"

    def test_only_the_first_variable_that_is_set_is_read(self, output_of: OutputOf) -> None:
        settings = {"TCUDA_ALLOC_CONF": "", "PYTORCH_CUDA_ALLOC_CONF": "backend:cupy", "PYTORCH_ALLOC_CONF": "nonsense"}
        program = "import tcuda; print(tcuda.get_allocator_backend())"
        assert output_of(program, **settings) == "native"
        settings |= {"TCUDA_ALLOC_CONF": None}  # type: ignore[dict-item]
        assert output_of(program, **settings) == "cupy"

    def test_an_unknown_backend_is_refused_at_first_use_and_the_message_names_the_variable(
        self, run_python: RunPython
    ) -> None:
        program = """
import tcuda
print("imported")
try:
    tcuda.get_allocator_backend()
except ValueError as error:
    print(error)
tcuda.xp.empty(1000)
"""
        done = run_python(program, TCUDA_ALLOC_CONF="backend:tcmalloc")
        lines = done.stdout.splitlines()
        assert lines[0] == "imported"
        allowed = "it can be 'native' or 'cupy' or 'cudaMallocAsync'."
        assert lines[1] == f"TCUDA_ALLOC_CONF: backend is 'tcmalloc'; {allowed}"
        assert done.returncode == 1
        assert f"AllocatorSettingsError: {lines[1]}" in done.stderr

    def test_a_library_takes_the_place_of_a_backend(self, output_of: OutputOf) -> None:
        program = """
import ctypes, tcuda
from tcuda import _core
from tcuda._process.lazy import cuda
from tcuda.memory import _CUDAAllocator
sizes = []
take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(
    lambda size, device, stream: (sizes.append(size), cuda.malloc(size))[1])
give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(
    lambda address, size, device, stream: cuda.free(address))
addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in (take, give)]
tcuda.change_current_allocator(_CUDAAllocator(_core.LibrarySource(*addresses, (take, give))))
x = tcuda.xp.empty(1000, "B")
print(tcuda.get_allocator_backend(), sizes)
del x
"""
        assert output_of(program, TCUDA_ALLOC_CONF="backend:cupy") == "pluggable [1000]"
