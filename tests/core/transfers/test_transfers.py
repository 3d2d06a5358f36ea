"""The driver's calls of transfers between devices, with a library in place of the driver."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

PREPARATION = """
import ctypes
import math
from tcuda import _core

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_log.restype = ctypes.c_char_p
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

FIRST, SECOND = 7, 8  # the contexts of the devices 0 and 1
current = ctypes.c_size_t()

legacy = False

def stream_of_context():
    stub.cuCtxGetCurrent(ctypes.byref(current))
    return 0 if legacy else 10 * current.value

get_stream = ctypes.CFUNCTYPE(ctypes.c_ssize_t)(stream_of_context)
current_stream = new_capsule(ctypes.cast(get_stream, ctypes.c_void_p), None, None)

def attributes(*names):
    return {name: property(lambda self, name=name: vars(self)["_" + name]) for name in names}

class Memory:
    locals().update(attributes("ptr"))
    def __init__(self, ptr, device_id):
        self._ptr, self.device_id = ptr, device_id

class Pointer:
    locals().update(attributes("mem", "ptr", "device_id"))
    def __init__(self, mem, offset):
        self._mem, self._ptr, self._device_id = mem, mem.ptr + offset, mem.device_id
    def __add__(self, offset):
        return Pointer(self.mem, self.ptr - self.mem.ptr + offset)

class Dtype:
    def __init__(self, itemsize):
        self.itemsize = itemsize

BYTE, FLOAT = Dtype(1), Dtype(4)
fresh = iter(range(0x9000, 0x100000, 0x1000))

class Array:
    locals().update(attributes("data", "nbytes", "c_contiguous", "dtype", "shape", "ndim", "size", "strides"))
    _c_contiguous = property(lambda self: vars(self)["c"])
    def __init__(self, shape, dtype, memptr=None):
        stub.cuCtxGetCurrent(ctypes.byref(current))
        dtype = BYTE if dtype == "B" else dtype
        self._data = memptr or Pointer(Memory(next(fresh), current.value - 7), 0)
        self._shape, self._dtype, self._ndim, self._strides = shape, dtype, len(shape), None
        self._size = math.prod(shape)
        self._nbytes = self._size * dtype.itemsize
        vars(self)["c"] = True

def array(shape, dtype, address, device):
    return Array(shape, dtype, Pointer(Memory(address, device), 0))

class Failure(Exception):
    pass

def fail(status, call):
    raise Failure(status, call)

asked, loaded = [], []

def reach(device, peer):
    asked.append((device, peer))
    return True

def check(*places):
    print("check", *places)

def load(device, kind, dtype, count):
    loaded.append((device, kind, dtype, count))
    return launches

captures = []
seen = []

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint)
def launched(arguments, blocks):
    seen.append(read(arguments))
    seen.append(blocks)
    return 0

launches = ctypes.cast(launched, ctypes.c_void_p).value
addresses = _core.ArrayAddresses(Array, Array.data, Pointer.ptr, Pointer.device_id, reach)
made = []
core = _core.Transfers(_core.ArrayType(addresses), Array, Pointer, current_stream, captures,
                       lambda dtype: dtype, reach, fail, check, load)

def copy(target, source):
    core.relay([source, target], [(0, 1, 0, source.nbytes, 0)])

def log():
    found = stub.stub_log().decode()
    stub.stub_forget_log()
    return found.rstrip().splitlines()
"""


def outputs(output_of: OutputOf, driver_stub: str, code: str) -> list[str]:
    return output_of(PREPARATION + code, LD_LIBRARY_PATH=driver_stub).splitlines()


FIRST_CONTEXT = 7
HOP = [
    "create 1 in 8",
    "record 1 80 in 8",  # the stream of the target's device
    "wait 70 1 in 7",
    "copy {target} 4096 40 70 in 7",
    "create 2 in 7",
    "record 2 70 in 7",
    "wait 80 2 in 8",
]


def test_a_copy_waits_for_the_target_which_waits_for_the_copy(output_of: OutputOf, driver_stub: str) -> None:
    code = """
copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
print(*log(), sep="\\n")
stub.cuCtxGetCurrent(ctypes.byref(current))
print(current.value, asked)
"""
    expected = [line.format(target=0x2000) for line in HOP]
    assert outputs(output_of, driver_stub, code) == [*expected, "7 [(0, 1)]"]


def test_events_are_used_again(output_of: OutputOf, driver_stub: str) -> None:
    code = """
for _ in range(2):
    copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
print(sum("create" in line for line in log()), len(asked))
"""
    assert outputs(output_of, driver_stub, code) == ["2 1"]


def test_memory_of_the_host_is_copied_by_one_call_for_each_target(output_of: OutputOf, driver_stub: str) -> None:
    code = """
targets = [array((5,), FLOAT, 0x2000, 1), array((0,), FLOAT, 0x4000, 1), array((15,), FLOAT, 0x3000, 0)]
core.upload(targets, [0x777, 0x999, 0x888])
print(*log(), sep="\\n")
try:
    core.upload([array((5,), FLOAT, 0x2000, 1)], [])
except ValueError as error:
    print(error, log())
"""
    assert outputs(output_of, driver_stub, code) == [
        "upload 8192 1911 20 80 in 8",
        "upload 12288 2184 60 70 in 7",
        "the sequences must have the same length []",
    ]


def test_rows_are_copied_by_one_call(output_of: OutputOf, driver_stub: str) -> None:
    code = """
core.copy_rows(array((4, 5), FLOAT, 0x2000, 1), 20, array((4, 6), FLOAT, 0x1000, 0), 24, 8, 4)
print([line for line in log() if "copy" in line])
"""
    assert outputs(output_of, driver_stub, code) == ["['copy_rows 8192 20 4096 24 8 4 70 in 7']"]


def test_pieces_move_through_a_chain_and_wait_for_the_targets_once(output_of: OutputOf, driver_stub: str) -> None:
    code = """
arrays = [array((64,), BYTE, address, device) for address, device in ((0x1000, 0), (0x2000, 1), (0x3000, 0))]
core.relay(arrays, [(0, 1, 0, 32, 0), (1, 2, 0, 32, 0), (0, 1, 32, 64, 32), (1, 2, 32, 64, 32)])
lines = log()
print(*[line for line in lines if line.startswith("copy")], sep="\\n")
print(sum(line.startswith("wait") for line in lines))
"""
    assert outputs(output_of, driver_stub, code) == [
        "copy 8192 4096 32 70 in 7",
        "copy 12288 8192 32 80 in 8",
        "copy 8224 4128 32 70 in 7",
        "copy 12320 8224 32 80 in 8",
        "6",
    ]


def out_of_order(log: list[str], legacy: bool) -> list[str]:
    """Return the copies that may begin too early, and those that the stream of their target does not wait for.

    A copy is too early if no wait orders the copy behind the copies of the bytes that it reads, and behind the work of
    the program on the streams of both devices. Each stream runs as soon as its waits allow.

    Args:
        log: The calls of the driver for a relay. The addresses of the device 1 begin at 0x10000.
        legacy: Whether the program uses the default streams.
    """

    def stream_of(address: int) -> tuple[str, str]:
        context = FIRST_CONTEXT + (address >> 16)
        return "0" if legacy else str(10 * context), str(context)

    done: dict[tuple[str, str], set[str]] = {}  # by stream: the work that is complete when its next call begins
    for stream in map(stream_of, (0, 0x10000)):
        done[stream] = {f"the program's work on {stream}"}
    events: dict[str, set[str]] = {}
    copies: list[tuple[range, str]] = []
    faults = []
    for kind, *words, _, context in map(str.split, log):
        if kind == "record":
            events[words[0]] = set(done.setdefault((words[1], context), set()))
        elif kind == "wait":
            done.setdefault((words[0], context), set()).update(events[words[1]])
        elif kind == "copy":
            target, source, size = map(int, words[:3])
            before = done.setdefault((words[3], context), set())
            needed = {f"the program's work on {stream_of(address)}" for address in (target, source)}
            needed |= {copy for place, copy in copies if place.start < source + size and source < place.stop}
            copies.append((range(target, target + size), f"a copy of {size} bytes from {source:#x} to {target:#x}"))
            faults += [f"{copies[-1][1]} does not wait for {each}" for each in needed - before]
            before.add(copies[-1][1])
    return faults + [
        f"the program does not wait for {copy}" for place, copy in copies if copy not in done[stream_of(place.start)]
    ]


@pytest.mark.parametrize("legacy", [False, True])
def test_every_copy_of_a_relay_waits_for_the_bytes_that_it_reads(
    output_of: OutputOf, driver_stub: str, legacy: bool
) -> None:
    code = f"""
import json, random
legacy = {legacy}
random.seed(0)
for _ in range(400):
    devices = [random.randrange(2) for _ in range(random.randint(2, 6))]
    arrays = [array((64,), BYTE, 0x1000 + device * 0x10000 + 0x100 * place, device)
              for place, device in enumerate(devices)]
    pieces = []
    for begin in range(0, 64, random.choice([16, 32, 64])):
        hops = [(random.randrange(place), place) for place in range(1, len(devices))]
        pieces.append([(*hop, begin) for hop in hops])
    size = 64 // len(pieces)
    hops = []
    while any(pieces):
        piece = random.choice([each for each in pieces if each])
        source, target, begin = piece.pop(0)
        hops.append((source, target, begin, begin + size, begin))
    for _ in range(random.randint(0, 2)):  # copies within a device that no other copy concerns
        device, count = random.randrange(2), len(devices)
        begin = 0x1000 + device * 0x10000
        arrays += [array((64,), BYTE, begin + 0x100 * place, device) for place in (count, count + 1)]
        devices += [device, device]
        hops.insert(random.randint(0, len(hops)), (count, count + 1, 0, 64, 0))
    core.relay(arrays, hops)
    print(json.dumps([devices, hops, log()]))
"""
    for line in outputs(output_of, driver_stub, code):
        devices, hops, log = json.loads(line)
        assert out_of_order(log, legacy) == [], (devices, hops)
        assert sum(each.startswith("copy") for each in log) == len(hops)


def test_a_failed_call_raises_its_status_and_restores_the_context(output_of: OutputOf, driver_stub: str) -> None:
    code = """
for name in ("create", "record", "wait", "copy"):
    stub.stub_fail(name.encode())
    try:
        copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
    except Failure as error:
        print(*error.args, [line for line in log() if "synchronize" in line])
    stub.cuCtxGetCurrent(ctypes.byref(current))
    assert current.value == 7
"""
    waits = "['synchronize 70 in 7', 'synchronize 80 in 8']"
    calls = "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuMemcpyAsync"
    assert outputs(output_of, driver_stub, code) == [f"719 {call} {waits}" for call in calls]


ALL_WAITS = {"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"}
CALLS = {
    "upload": (
        "core.upload([far, near], [0x777, 0x888])",
        {"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemcpyHtoDAsync"},
    ),
    "copy_rows": ("core.copy_rows(far, 8, near, 8, 4, 5)", ALL_WAITS | {"cuMemcpy2DAsync"}),
    "relay": (
        "core.relay([near, far, other, far], [(0, 1, 0, 40, 0), (1, 2, 0, 40, 0), (0, 3, 0, 20, 0)])",
        ALL_WAITS | {"cuMemcpyAsync"},
    ),
    "pack": ("core.pack([far, far], 1, 9999)", {"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuLaunchKernel"}),
    "add": ("core.add(other, [near, far])", ALL_WAITS | {"cuLaunchKernel"}),
}
"""Calls of the core, and the calls of the driver that each makes."""


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_every_call_of_the_driver_fails_once(output_of: OutputOf, driver_stub: str, name: str, legacy: bool) -> None:
    action, expected = CALLS[name]
    if legacy and "cuStreamWaitEvent" in expected:
        expected = expected | {"cuStreamCreate"}
    code = f"""
import itertools

legacy = {legacy}

def read(arguments):
    return 0

near, far, other = (array((10,), FLOAT, address, device) for address, device in ((0x1000, 0), (0x2000, 1), (0x3000, 0)))
for number in itertools.count(1):
    core = _core.Transfers(_core.ArrayType(addresses), Array, Pointer, current_stream, captures,
                           lambda dtype: dtype, reach, fail, check, load)
    log()
    stub.stub_fail_call(number)
    try:
        {action}
    except Failure as error:
        status, call = error.args
        assert status == (101 if call == "cuDevicePrimaryCtxRetain" else 719), error
        stub.cuCtxGetCurrent(ctypes.byref(current))
        assert current.value == FIRST, call
        lines = log()
        busy = {{line.split()[-3] for line in lines if line.startswith(("copy", "upload"))}}
        waited = {{line.split()[1] for line in lines if line.startswith("synchronize")}}
        recorded = {{}}
        for kind, *words in map(str.split, lines):  # a wait for a default stream is one for what this stream waits for
            if kind == "record":
                recorded[words[0]] = words[1]
            elif kind == "wait" and words[0] in waited and words[1] in recorded:
                waited.add(recorded[words[1]])
        assert busy <= waited, (call, lines)
        print(call)
    else:
        if stub.stub_waits_for_failure():
            break
        stub.stub_use(FIRST)  # the call that failed was the last one, which restores the context
"""
    assert set(outputs(output_of, driver_stub, code)) == expected


def test_a_capture_is_asked_before_each_wait_and_gets_copies_of_addresses(
    output_of: OutputOf, driver_stub: str
) -> None:
    code = """
captures.append("a capture")
copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
print([line for line in log() if "copy" in line])

def check(*places):
    raise KeyError("refused")

refusing = _core.Transfers(_core.ArrayType(addresses), Array, Pointer, current_stream, captures,
                           lambda dtype: dtype, reach, fail, check, load)
try:
    refusing.relay([array((10,), FLOAT, 0x1000, 0), array((10,), FLOAT, 0x2000, 1)], [(0, 1, 0, 40, 0)])
except KeyError as error:
    print(error, log())
"""
    expected = ["check 0 70 1 80", "check 1 80 0 70", "['copy 8192 4096 40 70 in 7']", "'refused' []"]
    assert outputs(output_of, driver_stub, code) == expected


def test_an_index_of_a_device_that_does_not_exist_is_refused(output_of: OutputOf, driver_stub: str) -> None:
    code = """
near, missing = array((1,), BYTE, 0x1000, 0), array((1,), BYTE, 0x2000, 2)
for call in (lambda: copy(missing, near), lambda: core.empty((1,), BYTE, 2)):
    try:
        call()
    except (ValueError, Failure) as error:
        print(error, log())
"""
    assert outputs(output_of, driver_stub, code) == [
        "a device of an array does not exist []",
        "(101, 'cuDevicePrimaryCtxRetain') []",
    ]


def test_views_are_arrays_in_the_memory_of_another_array(output_of: OutputOf, driver_stub: str) -> None:
    code = """
flat = Array((96,), BYTE, Pointer(Memory(0x1000, 1), 0x100))
like = [array((2, 3), FLOAT, 0x5000, 0), array((), BYTE, 0x6000, 0)]
for view in core.views(flat, like, [0, 32]):
    print(view.shape, view.dtype.itemsize, hex(view.data.ptr), view.data.mem is flat.data.mem)
try:
    core.views(flat, like, [0])
except ValueError as error:
    print(error)
"""
    assert outputs(output_of, driver_stub, code) == [
        "(2, 3) 4 0x1100 True",
        "() 1 0x1120 True",
        "the sequences must have the same length",
    ]


def test_many_arrays_are_packed_by_one_launch(output_of: OutputOf, driver_stub: str) -> None:
    code = """
def read(arguments):
    return ctypes.string_at(arguments[0], 16)

import struct
for count in (2, 200, 205, 1638):
    seen.clear()
    arrays = [array((20_000,), BYTE, 0x10000 * i, 0) for i in range(count)]
    flat, offsets = core.pack(arrays, 0, 1 << 40)
    assert (flat.shape, flat.data.device_id) == ((count * 20_000,), 0)
    assert offsets == [20_000 * i for i in range(count)]
    print([struct.unpack("QII", each) if isinstance(each, bytes) else each for each in seen])
print([kernel[:2] for kernel in loaded])
"""
    starts = [0x9000 + 0x1000 * place for place in range(4)]
    assert outputs(output_of, driver_stub, code) == [
        f"[({starts[0]}, 2, 4), 4]",
        f"[({starts[1]}, 200, 400), 400]",
        f"[({starts[2]}, 205, 410), 410]",
        f"[({starts[3]}, 1637, 3274), 3274, ({starts[3] + 1637 * 20_000}, 1, 2), 2]",
        "[(0, 0), (0, 1)]",
    ]


def test_a_device_without_large_parameters_packs_by_several_launches(output_of: OutputOf, driver_stub: str) -> None:
    code = """
def read(arguments):
    return 0

def load(device, kind, dtype, count):
    return launches if kind == 0 else 0

core = _core.Transfers(_core.ArrayType(addresses), Array, Pointer, current_stream, captures,
                       lambda dtype: dtype, reach, fail, check, load)
core.pack([array((8,), BYTE, 0x1000, 0)] * 500, 0, 99999)
print(seen)
"""
    assert outputs(output_of, driver_stub, code) == ["[0, 204, 0, 204, 0, 92]"]


def test_a_sum_waits_for_the_streams_of_the_inputs_which_wait_for_the_sum(
    output_of: OutputOf, driver_stub: str
) -> None:
    code = """
def read(arguments):
    words = ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_uint64))
    return [ctypes.c_uint64.from_address(arguments[0]).value, words[0], words[1],
            ctypes.c_uint64.from_address(arguments[2]).value]

terms = [array((10,), FLOAT, 0x2000, 0), array((10,), FLOAT, 0x3000, 1)]
for release in (True, False):
    print(core.add(array((10,), FLOAT, 0x1000, 0), terms, release=release), seen, log())
    seen.clear()
print(loaded[0][:2], loaded[0][2] is FLOAT, loaded[0][3])
"""
    summed = "True [[4096, 8192, 12288, 10], 1]"
    assert outputs(output_of, driver_stub, code) == [
        f"{summed} ['create 1 in 8', 'record 1 80 in 8', 'wait 70 1 in 7', 'create 2 in 7', 'record 2 70 in 7', "
        "'wait 80 2 in 8']",
        f"{summed} ['record 1 80 in 8', 'wait 70 1 in 7']",
        "(0, 2) True 2",
    ]


def test_a_sum_without_a_kernel_or_without_access_does_nothing(output_of: OutputOf, driver_stub: str) -> None:
    code = """
def without(reach, load):
    return _core.Transfers(_core.ArrayType(addresses), Array, Pointer, current_stream, captures,
                           lambda dtype: dtype, reach, fail, check, load)

terms = [array((10,), FLOAT, 0x2000, 0), array((10,), FLOAT, 0x3000, 1)]
for core in (without(lambda *pair: False, load), without(reach, lambda *kernel: 0)):
    print(core.add(array((10,), FLOAT, 0x1000, 0), terms), log())
"""
    assert outputs(output_of, driver_stub, code) == ["False []", "False []"]


def test_a_kernel_is_loaded_by_calls_that_captures_do_not_forbid(output_of: OutputOf, driver_stub: str) -> None:
    code = """
def read(arguments):
    return 0

def load(device, kind, dtype, count):
    print("loading in mode", stub.stub_mode())
    if count == 3:
        raise KeyError("no kernel")
    return launches

core = _core.Transfers(_core.ArrayType(addresses), Array, Pointer, current_stream, captures,
                       lambda dtype: dtype, reach, fail, check, load)
terms = [array((10,), FLOAT, 0x2000, 0), array((10,), FLOAT, 0x3000, 0)]
for inputs in (terms, [*terms, terms[0]]):
    try:
        core.add(array((10,), FLOAT, 0x1000, 0), inputs)
    except KeyError as error:
        print(error)
    print("then in mode", stub.stub_mode())
"""
    relaxed = 2
    assert outputs(output_of, driver_stub, code) == [
        f"loading in mode {relaxed}",
        "then in mode 0",
        f"loading in mode {relaxed}",
        "'no kernel'",
        "then in mode 0",
    ]


def test_kernels_keep_only_some_dtypes_alive(output_of: OutputOf, driver_stub: str) -> None:
    code = """
import weakref

def read(arguments):
    return 0

kept = []
for _ in range(1100):
    dtype = Dtype(4)
    kept.append(weakref.ref(dtype))
    terms = [array((1,), dtype, 0x1000, 0), array((1,), dtype, 0x2000, 0)]
    core.add(terms[0], terms)
    loaded.clear()
del dtype, terms
print(sum(each() is not None for each in kept))
"""
    assert outputs(output_of, driver_stub, code) == ["76"]


def test_copies_of_several_devices_for_one_device_overlap(output_of: OutputOf, driver_stub: str) -> None:
    code = """
stub.stub_devices(3)
core = _core.Transfers(_core.ArrayType(addresses), Array, Pointer, current_stream, captures,
                       lambda dtype: dtype, reach, fail, check, load)
near, far, third = array((4,), FLOAT, 0x1000, 0), array((4,), FLOAT, 0x2000, 1), array((4,), FLOAT, 0x3000, 2)
targets = [array((4,), FLOAT, address, 2) for address in (0x4000, 0x5000, 0x6000)]
core.relay([near, far, third, *targets], [(2, 5, 0, 16, 0), (0, 3, 0, 16, 0), (1, 4, 4, 16, 0)])
print(*(line for line in log() if not line.startswith("create")), sep="\\n")
"""
    assert outputs(output_of, driver_stub, code) == [
        "record 1 90 in 9",
        "wait 70 1 in 7",
        "wait 80 1 in 8",
        "copy 16384 4096 16 70 in 7",
        "copy 24576 12288 16 90 in 9",
        "record 2 70 in 7",
        "wait 90 2 in 9",
        "copy 20480 8196 12 80 in 8",
        "record 3 80 in 8",
        "wait 90 3 in 9",
    ]


def test_arrays_of_another_device_or_layout_are_not_packed(output_of: OutputOf, driver_stub: str) -> None:
    code = """
here, gaps = array((4,), FLOAT, 0x1000, 0), array((4,), FLOAT, 0x1000, 0)
vars(gaps)["c"] = False
print(core.pack([here], 1, 99), core.pack([here, gaps], 0, 99), log())
for hops in ([(0, 2, 0, 8, 0)], [(0, 0, 0)]):
    try:
        core.relay([here, here], hops)
    except ValueError as error:
        print(error, log())
"""
    assert outputs(output_of, driver_stub, code) == [
        "None None []",
        "a hop is between two of the arrays []",
        "a hop has five fields []",
    ]


def test_devices_without_access_copy_by_the_call_that_names_both(output_of: OutputOf, driver_stub: str) -> None:
    code = """
core = _core.Transfers(_core.ArrayType(addresses), Array, Pointer, current_stream, captures,
                       lambda dtype: dtype, lambda *pair: False, fail, check, load)
copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
print([line for line in log() if "copy" in line])
"""
    assert outputs(output_of, driver_stub, code) == ["['copy_peer 8192 8 4096 7 40 70 in 7']"]


def test_a_target_that_occurs_twice_waits_and_is_waited_for_once(output_of: OutputOf, driver_stub: str) -> None:
    code = """
targets = [array((4,), FLOAT, address, 1) for address in (0x9000, 0xa000)]
core.relay([array((4,), FLOAT, 0x1000, 0), *targets], [(0, 1, 0, 16, 0), (0, 2, 0, 16, 0)])
print(*log(), sep="\\n")
"""
    assert outputs(output_of, driver_stub, code) == [
        "create 1 in 8",
        "record 1 80 in 8",
        "wait 70 1 in 7",
        "copy 36864 4096 16 70 in 7",
        "copy 40960 4096 16 70 in 7",
        "create 2 in 7",
        "record 2 70 in 7",
        "wait 80 2 in 8",
    ]


class TestLegacyDefaultStreams:
    """The work of a legacy default stream runs on a side stream of the device: 107 on device 0, and 108 on device 1."""

    BEGIN = """
legacy = True

def work(*kinds):
    return [line for line in log() if not line.startswith("create") and line.split()[0] in (kinds or line)]
"""

    def lines(self, output_of: OutputOf, driver_stub: str, code: str) -> list[str]:
        return outputs(output_of, driver_stub, self.BEGIN + code)

    def test_a_copy_runs_on_a_side_stream_for_which_both_default_streams_wait(
        self, output_of: OutputOf, driver_stub: str
    ) -> None:
        code = """
copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
print(*work(), sep="\\n")
copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
print(work("stream"))
"""
        assert self.lines(output_of, driver_stub, code) == [
            "stream 1 in 7",  # a non-blocking stream
            "record 1 0 in 7",
            "wait 107 1 in 7",
            "record 2 0 in 8",
            "wait 107 2 in 7",
            "copy 8192 4096 40 107 in 7",
            "record 1 107 in 7",
            "wait 0 1 in 7",
            "wait 0 1 in 8",
            "[]",
        ]

    def test_rows_are_copied_on_a_side_stream(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
core.copy_rows(array((4, 5), FLOAT, 0x2000, 1), 20, array((4, 6), FLOAT, 0x1000, 0), 24, 8, 4)
print(*work("copy_rows", "wait"), sep="\\n")
"""
        assert self.lines(output_of, driver_stub, code) == [
            "wait 107 1 in 7",
            "wait 107 2 in 7",
            "copy_rows 8192 20 4096 24 8 4 107 in 7",
            "wait 0 1 in 7",
            "wait 0 1 in 8",
        ]

    def test_a_copy_within_one_device_runs_on_the_default_stream(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
copy(array((10,), FLOAT, 0x2000, 0), array((10,), FLOAT, 0x1000, 0))
print(*work(), sep="\\n")
"""
        assert self.lines(output_of, driver_stub, code) == ["copy 8192 4096 40 0 in 7"]

    def test_a_sum_runs_on_a_side_stream(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
def read(arguments):
    print("before", work("wait"))

terms = [array((10,), FLOAT, 0x2000, 0), array((10,), FLOAT, 0x3000, 1)]
for release in (True, False):
    core.add(array((10,), FLOAT, 0x1000, 0), terms, release=release)
    print("after", work("wait"))
core.add(array((10,), FLOAT, 0x1000, 0), [terms[0], terms[0]])
"""
        assert self.lines(output_of, driver_stub, code) == [
            "before ['wait 107 1 in 7', 'wait 107 2 in 7']",
            "after ['wait 0 1 in 7', 'wait 0 1 in 8']",
            "before ['wait 107 1 in 7', 'wait 107 2 in 7']",
            "after ['wait 0 1 in 7']",
            "before []",  # the sum of arrays of one device runs on its default stream
        ]

    def test_pieces_move_from_side_stream_to_side_stream(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
arrays = [array((64,), BYTE, address, device) for address, device in ((0x1000, 0), (0x2000, 1), (0x3000, 0))]
core.relay(arrays, [(0, 1, 0, 64, 0), (1, 2, 0, 64, 0)])
print(*work("copy", "wait", "record"), sep="\\n")
"""
        assert self.lines(output_of, driver_stub, code) == [
            "record 1 0 in 7",
            "wait 107 1 in 7",
            "record 2 0 in 8",
            "wait 107 2 in 7",
            "copy 8192 4096 64 107 in 7",
            "record 2 0 in 8",
            "wait 108 2 in 8",
            "record 1 107 in 7",
            "wait 0 1 in 7",
            "wait 108 1 in 8",
            "record 1 0 in 7",
            "wait 108 1 in 8",
            "copy 12288 8192 64 108 in 8",
            "record 2 108 in 8",
            "wait 0 2 in 8",
            "wait 0 2 in 7",
        ]

    def test_only_copies_from_other_devices_are_made_on_side_streams(
        self, output_of: OutputOf, driver_stub: str
    ) -> None:
        code = """
near, far = array((6,), FLOAT, 0x2000, 0), array((4,), FLOAT, 0x1000, 1)
targets = array((6,), FLOAT, 0x5000, 0), array((4,), FLOAT, 0x5018, 0)
core.relay([near, far, *targets], [(0, 2, 0, 24, 0), (1, 3, 0, 16, 0)])
print(*work("copy", "wait"), sep="\\n")
"""
        assert self.lines(output_of, driver_stub, code) == [
            "wait 108 1 in 8",
            "wait 108 2 in 8",
            "copy 20504 4096 16 108 in 8",
            "copy 20480 8192 24 0 in 7",  # beside the copy that arrives
            "wait 0 1 in 8",
            "wait 0 1 in 7",
        ]

    def test_a_failed_transfer_waits_for_the_side_stream_too(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
for name in ("stream", "create", "record", "wait", "copy"):
    stub.stub_fail(name.encode())
    try:
        copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
    except Failure as error:
        print(*error.args, work("synchronize"))
stub.stub_fail(b"")
copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
print(len(work("copy")))
"""
        streams = "'synchronize 0 in 7', 'synchronize 0 in 8'"
        calls = "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuMemcpyAsync"
        assert self.lines(output_of, driver_stub, code) == [
            f"719 cuStreamCreate [{streams}]",
            *[f"719 {call} ['synchronize 107 in 7', {streams}]" for call in calls],
            "1",
        ]

    def test_a_capture_gets_the_work_of_the_streams_themselves(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
captures.append("a capture")
copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
print([line for line in work() if "107" in line])
"""
        assert self.lines(output_of, driver_stub, code) == ["check 0 0 1 0", "check 1 0 0 0", "[]"]


@pytest.mark.wings
def test_work_stays_on_the_streams_of_the_program_while_kernels_are_noted(
    output_of: OutputOf, driver_stub: str
) -> None:
    code = """
class Function:
    def __call__(self): ...

legacy = True
for noted in (True, False):
    if noted:
        _core.note_calls(Function, Array, Pointer, tuple)
    copy(array((10,), FLOAT, 0x2000, 1), array((10,), FLOAT, 0x1000, 0))
    print([line for line in log() if line.startswith("copy")])
    _core.stop_noting_calls()
"""
    assert outputs(output_of, driver_stub, code) == ["['copy 8192 4096 40 0 in 7']", "['copy 8192 4096 40 107 in 7']"]


@pytest.mark.wings
def test_kernels_have_notes_while_kernels_are_noted(output_of: OutputOf, driver_stub: str) -> None:
    code = """
from tcuda._core import for_tests

class Function:
    def __call__(self): ...

def read(arguments):
    return for_tests.current_notes()

def noted(call):
    seen.clear()
    call()
    notes = [each for each in seen if isinstance(each, list)]
    return [[(hex(address), size, kind) for address, size, _, _, kind, _ in memory]
            for each in notes for _, memory, exclusive in each if exclusive]

near, far = array((10,), FLOAT, 0x1000, 0), array((10,), FLOAT, 0x2000, 0)
out = array((10,), FLOAT, 0x3000, 0)
kernel = _core.FillKernel(launches, 4, 4, 8)
calls = [
    lambda: core.pack([near, far], 0, 99),
    lambda: core.add(out, [near, far]),
    lambda: kernel.fill_reals(_core.PhiloxState(1), 0, 0x5000, 10, 0.0, 1.0),
    lambda: kernel.fill_integers(_core.PhiloxState(1), 0, 0x5000, 10, 0, 5),
]
core.pack([near, far], 0, 99)
stub.cuCtxSetCurrent(ctypes.c_size_t(7))
print([noted(call) for call in calls])
_core.note_calls(Function, Array, Pointer, tuple)
for call in calls:
    print(noted(call))
_core.stop_noting_calls()
print([noted(call) for call in calls], for_tests.current_notes())
"""
    assert outputs(output_of, driver_stub, code) == [
        "[[], [], [], []]",
        "[[('0x1000', 40, 1), ('0xb000', 40, 2), ('0x2000', 40, 1), ('0xb030', 40, 2)]]",
        "[[('0x3000', 40, 2), ('0x1000', 40, 1), ('0x2000', 40, 1)]]",
        "[[('0x5000', 40, 2)]]",
        "[[('0x5000', 40, 2)]]",
        "[[], [], [], []] []",
    ]
