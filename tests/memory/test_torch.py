"""One pool for CuPy and PyTorch: the real torch takes its memory from tcuda."""

from __future__ import annotations

import importlib.util
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch, which is not installed"),
]

# One program uses both libraries: torch trains on one stream, and CuPy works on another stream, in turns.
_PROGRAM = """
import json, os, warnings
warnings.simplefilter("ignore")  # the import of torch warns
import numpy, torch, tcuda
from tcuda import xp

shared = os.environ["SHARED"] == "1"
if shared:
    torch.cuda.memory.change_current_allocator(tcuda.memory.torch_allocator())

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.Adam(model.parameters())
inputs = torch.randn(8192, 1024, device="cuda")
side, cupy_side = torch.cuda.Stream(), tcuda.Stream()
losses, sums = [], []
for step in range(4):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        optimizer.zero_grad(set_to_none=True)
        loss = ((model(inputs) - inputs) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    del loss
    torch.cuda.synchronize()
    with tcuda.stream(cupy_side):
        a = xp.arange(16 * 1024 * 1024, dtype="float32").reshape(4096, 4096)
        b = xp.sqrt(a) + a
        sums.append(float(b[1000, 1000]))
        del a, b
    tcuda.synchronize()

x = torch.arange(1000, device="cuda", dtype=torch.float32)
y = xp.from_dlpack(x) * 2
z = torch.from_dlpack(y) + 1
counted = tcuda.memory_allocated()
keep = torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
grown = tcuda.memory_allocated() - counted
del keep
back = tcuda.memory_allocated() - counted
try:
    torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    message = ""
except RuntimeError as error:
    message = str(error)
print(json.dumps({
    "losses": losses, "sums": sums, "z": float(z.sum()), "grown": grown, "back": back, "message": message,
    "reserved": tcuda.max_memory_reserved() + (0 if shared else torch.cuda.max_memory_reserved()),
}))
"""


def test_torch_and_cupy_share_one_pool_get_the_same_results_and_reserve_less(output_of: OutputOf) -> None:
    apart, together = (json.loads(output_of(_PROGRAM, SHARED=shared)) for shared in ("0", "1"))
    assert together["losses"] == pytest.approx(apart["losses"], rel=1e-5)
    assert together["losses"][-1] < together["losses"][0]
    assert together["sums"] == apart["sums"]
    assert (apart["z"], together["z"]) == (1_000_000.0, 1_000_000.0)
    assert together["reserved"] < apart["reserved"]
    assert (apart["grown"], together["grown"]) == (0, 5 << 20)
    assert together["back"] == 0
    assert "Tried to allocate 32768.00 GiB" in together["message"]


def test_record_stream_of_a_tensor_keeps_its_memory_in_the_pool(output_of: OutputOf) -> None:
    program = """
import warnings; warnings.simplefilter("ignore")
import torch, tcuda
torch.cuda.memory.change_current_allocator(tcuda.memory.torch_allocator())
side = torch.cuda.Stream()
x = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
address = x.data_ptr()
with torch.cuda.stream(side):
    torch.cuda._sleep(1_000_000_000)
x.record_stream(side)
del x
busy = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
assert busy.data_ptr() != address
assert tcuda.memory_stats()["active.all.current"] == tcuda.memory_stats()["allocation.all.current"] + 1
torch.cuda.synchronize()
again = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
assert again.data_ptr() == address
print("held back")
"""
    assert output_of(program) == "held back"


def test_callbacks_make_room_for_tensors(output_of: OutputOf) -> None:
    program = """
import warnings; warnings.simplefilter("ignore")
import threading, torch, tcuda
from tcuda import xp
torch.cuda.memory.change_current_allocator(tcuda.memory.torch_allocator())
tcuda.init()
room = 64 << 20
tcuda.set_per_process_memory_fraction((tcuda.memory_reserved() + room) / tcuda.mem_get_info()[1])
cache = tcuda.memory.Spillable()
cache["x"] = xp.arange(room // 16)  # half of the room
def fill():
    y = torch.full((room // 4 * 3,), 7, dtype=torch.uint8, device="cuda")
    print(int(y[-1]), cache.stats().spills, end=" ")
fill()
print(int(cache["x"][-1]), end=" ")
thread = threading.Thread(target=fill)
thread.start()
thread.join()
def refuse(device, size):
    raise KeyError("no room is made")
with tcuda.memory.on_out_of_memory(refuse):
    kept = cache["x"]
    try:
        fill()
    except RuntimeError as error:
        print("no room is made" in str(error))
"""
    assert output_of(program) == f"7 1 {(64 << 20) // 16 - 1} 7 2 True"


def test_a_process_with_live_tensors_at_its_end_exits_without_an_error(output_of: OutputOf) -> None:
    program = """
import warnings; warnings.simplefilter("ignore")
import torch, tcuda, builtins
torch.cuda.memory.change_current_allocator(tcuda.memory.torch_allocator())
builtins.kept = [torch.ones(1000, device="cuda"), tcuda.xp.ones(1000)]
print(float(builtins.kept[0].sum()))
"""
    assert output_of(program) == "1000.0"


def test_torchs_own_viewer_reads_a_snapshot(output_of: OutputOf) -> None:
    program = """
import warnings; warnings.simplefilter("ignore")
import pickle, tcuda
from torch.cuda import _memory_viz
from tcuda import xp
tcuda.memory._record_memory_history()
kept = [xp.empty(1 << 20) for _ in range(3)]
del kept[1]
tcuda.memory._dump_snapshot("dump.pickle")
with open("dump.pickle", "rb") as file:
    snapshot = pickle.load(file)
trace = _memory_viz.trace(snapshot)
assert "= " in trace and "del" in trace, trace
assert "MiB" in _memory_viz.segsum(snapshot)
for page in (_memory_viz.trace_plot(snapshot), _memory_viz.segment_plot(snapshot)):
    assert "<script" in page
print("read")
"""
    assert output_of(program) == "read"


_SLEEP = """
import json, warnings
warnings.simplefilter("ignore")  # the import of torch warns
import torch, tcuda
from tcuda import xp

torch.cuda.memory.change_current_allocator(tcuda.memory.torch_allocator())
x = torch.arange(1 << 20, device="cuda")
view, y = x[3::7], xp.from_dlpack(x)
z = x * 2
address = x.data_ptr()
tcuda.memory.sleep()
asleep, reserved = tcuda.memory_stats()["sleeping_bytes.all.current"], tcuda.memory_reserved()
try:
    torch.empty(10, device="cuda")
    message = ""
except RuntimeError as error:
    message = str(error)
tcuda.memory.wake()
same = bool((x == torch.arange(1 << 20, device="cuda")).all()) and bool((z == x * 2).all())
x += 1
z.add_(1)
torch.cuda.synchronize()
print(json.dumps({
    "same": same, "address": x.data_ptr() == address, "view": int(view[1]), "shared": int(y[5]), "other": int(z[5]),
    "asleep": asleep, "reserved": reserved, "message": message,
}))
"""


def test_tensors_in_the_pool_sleep_and_wake(output_of: OutputOf) -> None:
    found = json.loads(output_of(_SLEEP))
    message = found.pop("message")
    assert "asleep" in message
    assert found.pop("asleep") >= 16 << 20
    assert found == {"same": True, "address": True, "view": 11, "shared": 6, "other": 11, "reserved": 0}
