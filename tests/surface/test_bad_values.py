"""Every public function, class and method with bad values for each of its parameters, one at a time.

A call must refuse a bad value with a readable message and without a change of state. ``LEGITIMATE`` has the values of
``BAD`` that a parameter takes.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import json
import os
import re
import types
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda._process import ledger
from tcuda._process.captures import captures
from tcuda.memory import _out_of_memory, _relief

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import OutputOf

BAD: dict[str, Any] = {
    "None": None,
    "True": True,
    "-1": -1,
    "-2**70": -(2**70),
    "2**31": 2**31,
    "2**40": 2**40,
    "2**63": 2**63,
    "2**64": 2**64,
    "2**70": 2**70,
    "1.5": 1.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "1j": 1j,
    "text": "x",
    "lone surrogate": "\ud800",
    "null character": "a\0b",
    "bytes": b"",
    "bytearray": bytearray(64),
    "list": [],
    "list of numbers": [1, 2],
    "tuple of numbers": (2**70, 1),
    "dict": {},
    "object": object(),
    "type": int,
}
ALL = frozenset(BAD)
NEGATIVE = frozenset(["-1", "-2**70"])
LARGE = frozenset(["2**31", "2**40", "2**63", "2**64", "2**70"])
INTEGERS = NEGATIVE | LARGE | {"True"}
SEEDS = frozenset(["-1", "2**31", "2**40", "2**63"])
TEXTS = frozenset(["text", "lone surrogate", "null character"])
EMPTY = frozenset(["bytes", "list", "dict"])

# For a device, None and mostly also a negative integer mean the current device.
LEGITIMATE: dict[str, frozenset[str]] = {
    ".device": NEGATIVE | {"None"},
    ".device_index": frozenset(["None"]),
    "accelerator.get_memory_info.device_index": NEGATIVE | {"None"},
    "accelerator.set_stream.stream": frozenset(["None"]),
    "StreamContext.stream": frozenset(["None"]),
    "caching_allocator_alloc.size": frozenset(["True"]),
    "caching_allocator_alloc.stream": frozenset(["None", "True", "2**31", "2**40"]),
    "memory.empty_pinned.shape": frozenset(["True", "list", "list of numbers"]),
    "memory.zeros_pinned.shape": frozenset(["True", "list", "list of numbers"]),
    "memory.empty_pinned.dtype": frozenset(["None", "dict", "list", "type"]),
    "memory.zeros_pinned.dtype": frozenset(["None", "dict", "list", "type"]),
    "memory.copy_async.stream": frozenset(["None"]),
    "graph.stream": frozenset(["None"]),
    "set_stream.stream": frozenset(["None"]),
    "stream.stream": frozenset(["None"]),
    "Event.record.stream": frozenset(["None"]),
    "Event.wait.stream": frozenset(["None"]),
    "recorded Event.record.stream": frozenset(["None"]),
    "recorded Event.wait.stream": frozenset(["None"]),
    "Stream.record.event": frozenset(["None"]),
    "Stream.record_event.event": frozenset(["None"]),
    # torch takes integers as truth values.
    ".enable_timing": INTEGERS,
    ".blocking": INTEGERS,
    ".interprocess": INTEGERS,
    ".external": INTEGERS,
    ".keep_graph": INTEGERS,
    ".use_on_oom": INTEGERS,
    ".no_split": INTEGERS,
    ".thread": INTEGERS,
    ".sites": INTEGERS,
    ".explicit": INTEGERS,
    ".keep": frozenset(["True"]),
    "caching_allocator_enable.value": frozenset(["True"]),
    # torch takes any object as a truth value.
    ".including_emulation": ALL,
    ".abbreviated": ALL,
    ".enabled": ALL,
    ".enable_annotations": ALL,
    ".verbose": ALL,
    ".check_available": ALL,
    # tcuda ignores these parameters of torch.
    ".include_traces": ALL,
    ".annotation_config": ALL,
    ".check_input_liveness": ALL,
    ".allow_unused_input": ALL,
    # A priority out of range is clamped to the range.
    ".priority": INTEGERS,
    "GreenContext.num_sms": frozenset(["True"]),
    ".stream_ptr": frozenset(["True", "2**31", "2**40"]),
    ".data_ptr": frozenset(["True", "2**31", "2**40"]),
    ".pool": frozenset(["None"]),
    ".mempool_id": frozenset(["None"]),
    "memory.SnapshotPage.snapshot": frozenset(["None", "list"]),
    ".allocator": frozenset(["None"]),
    ".devices": EMPTY | {"None", "bytearray", "list of numbers"},
    ".new_states": EMPTY,
    "comm.broadcast.out": EMPTY,
    "comm.broadcast_coalesced.tensors": EMPTY,
    "comm.gather.out": frozenset(["None"]),
    "comm.reduce_add_coalesced.inputs": EMPTY,
    ".destination": frozenset(["None", "-1"]),
    ".buffer_size": LARGE | {"True"},
    ".dim": frozenset(["-1"]),
    ".report": frozenset(["None", "type"]),
    ".observer": frozenset(["type"]),
    ".callback": frozenset(["type"]),
    ".callables": frozenset(["type"]),
    "graphs.while_loop.body": frozenset(["type"]),
    "kept CUDAGraph.replay_stepwise.check": frozenset(["None", "type"]),
    ".num_warmup_iters": frozenset(["True"]),
    "track.__call__.function": frozenset(["type"]),
    "manual_seed.seed": SEEDS | {"True", "1.5"},  # torch converts the seed to an int
    "manual_seed_all.seed": SEEDS | {"True", "1.5"},
    "Generator.manual_seed.seed": SEEDS,
    "Generator.seed.seed": frozenset(["None", "True", "2**31", "2**40", "2**63"]),
    "random.default_rng.seed": frozenset(["None", "True", "2**31", "2**40", "2**63"]),
    "Generator.set_offset.offset": frozenset(["2**31", "2**40", "2**63"]),
    "nvtx.mark.msg": TEXTS,
    "nvtx.range.msg": TEXTS,
    "nvtx.range_push.msg": TEXTS,
    "nvtx.range_start.msg": TEXTS,
    "nvtx.range_end.range_id": frozenset(["True", "2**31", "2**40", "2**63"]),
    "kept CUDAGraph.debug_dump.debug_path": frozenset(["text"]),
    "memory.scope.name": frozenset(["text"]),
    "profiler.trace.path": frozenset(["text"]),
    "_sleep.cycles": NEGATIVE - {"-2**70"},
    "default_generators.__getitem__.index": frozenset(["-1", "True"]),
    # A library may return any status.
    "AcceleratorError.error_code": INTEGERS | {"1.5"},
    "AcceleratorError.call": ALL,
    "AcceleratorError.details": ALL,
    "CudaError.code": INTEGERS | {"1.5"},
}

TOO_MUCH: dict[str, frozenset[str]] = {
    "caching_allocator_alloc.size": frozenset(["2**31"]),
    "_sleep.cycles": frozenset(["2**31", "2**40"]),
    "make_graphed_callables.num_warmup_iters": LARGE,
    "memory.empty_pinned.shape": frozenset(["2**31", "2**40"]),
    "memory.zeros_pinned.shape": frozenset(["2**31", "2**40"]),
}
"""Legitimate values that keep the device or the program busy for minutes, or take most of the memory."""

INTERNAL = re.compile(
    r"incompatible (function|constructor) arguments|nanobind|pybind|std::|tcuda\._core|map::at|bad_cast|SystemError"
    r"|has no attribute|not subscriptable|unhashable|not supported between|unsupported operand|cannot unpack"
    r"|too large to convert|int too (large|big)|has no len|not enough values|too many values|is required"
)
ERRORS = (TypeError, ValueError, RuntimeError, IndexError, OSError, NotImplementedError)
TORCHS = re.compile(
    r"Invalid (peer )?device id"  # AssertionError
    r"|In the beta API, sample_args for each callable must contain only Tensors"  # AssertionError
    r"|undefined symbol"  # AttributeError
    r"|cannot convert float infinity to integer"  # torch calls int() too, which raises this OverflowError
    r"|takes an integer as the seed, such as 42; got inf"  # the same
)

GOOD: dict[str, Callable[[], Any]] = {
    "cuda_graph": tcuda.CUDAGraph,
    "stream": lambda: tcuda.Stream(),
    "size": lambda: 512,
    "shape": lambda: 3,
    "dst": lambda: tcuda.xp.zeros(3),
    "old": lambda: tcuda.xp.zeros(3),
    "new": lambda: tcuda.xp.zeros(3),
    "node": lambda: 0,
    "enabled": lambda: True,
    "src": lambda: np.zeros(3),
    "mem_ptr": lambda: 0,
    "seed": lambda: 5,
    "generator": lambda: tcuda.default_generators[0],
    "new_state": lambda: tcuda.get_rng_state(),
    "new_states": list,
    "state": lambda: tcuda.Generator(),
    "Generator": lambda: tcuda.Generator(),
    "offset": lambda: 4,
    "msg": lambda: "a",
    "range_id": lambda: 0,
    "fraction": lambda: 1.0,
    "array": lambda: tcuda.xp.zeros(3),
    "tensor": lambda: tcuda.xp.zeros(3),
    "tensors": lambda: [tcuda.xp.zeros(3)],
    "inputs": lambda: [tcuda.xp.zeros(3)],
    "devices": lambda: [0],
    "obj": lambda: tcuda.xp.zeros(3),
    "device": lambda: 0,
    "peer_device": lambda: 0,
    "pool": lambda: tcuda.MemPool(),
    "observer": lambda: print,
    "callback": lambda: print,
    "callables": lambda: lambda *arrays: [array + 1 for array in arrays],
    "sample_args": lambda: (),
    "data_ptr": lambda: 0,
    "stream_ptr": lambda: 0,
    "res": lambda: 0,
    "handle": lambda: bytes(64),
    "debug_mode": lambda: 0,
    "event": lambda: tcuda.Event(),
    "end_event": lambda: tcuda.Event(enable_timing=True),
    "cycles": lambda: 1,
    "debug_path": lambda: os.devnull,
    "index": lambda: 0,
    "path_to_so_file": lambda: tcuda._core.__file__,
    "alloc_fn_name": lambda: "tcuda_torch_malloc",
    "free_fn_name": lambda: "tcuda_torch_free",
    "allocator": lambda: None,
    "function": lambda: len,
    "flag": lambda: tcuda.xp.zeros((), bool),
    "body": lambda: lambda: None,
    "error_code": lambda: 1,
    "code": lambda: 1,
    "value": lambda: None,
    "type": lambda: None,
    "traceback": lambda: None,
}

MODULES = (
    tcuda,
    tcuda.memory,
    tcuda.random,
    tcuda.graphs,
    tcuda.streams,
    tcuda.nvtx,
    tcuda.profiler,
    tcuda.comm,
    tcuda.accelerator,
)
WITHOUT_SIGNATURE = {"DeferredCudaCallError", "OutOfMemoryError"}  # exceptions take any arguments
TUPLES = {"Usage", "AliveSite", "SpillStats"}
"""The tuples of figures."""
NOT_CALLED = {*(f"memory.{name}" for name in TUPLES), "cudaStatus"}
"""cudaStatus is a class of constants."""


def recorded_event() -> tcuda.Event:
    event = tcuda.Event(enable_timing=True)
    event.record()
    return event


def kept_graph() -> tcuda.CUDAGraph:
    graph, x = tcuda.CUDAGraph(keep_graph=True), tcuda.xp.zeros(10)
    graph.enable_debug_mode()
    with tcuda.graph(graph):
        x += 1
    return graph


OBJECTS: dict[str, Callable[[], Any]] = {
    "Event": tcuda.Event,
    "recorded Event": recorded_event,
    "Stream": tcuda.Stream,
    "CUDAGraph": tcuda.CUDAGraph,
    "kept CUDAGraph": kept_graph,
    "MemPool": tcuda.MemPool,
    "Generator": tcuda.Generator,
    "default_generators": lambda: tcuda.default_generators,
    "track": tcuda.memory.track,
}
CLASSES = {"kept CUDAGraph": "CUDAGraph", "recorded Event": "Event"}
OPERATORS = ("__call__", "__getitem__")


def functions() -> dict[str, Callable[[], Any]]:
    """Return a function that returns the public function, for each name of a public function."""
    found: dict[str, Callable[[], Any]] = {"_sleep": lambda: tcuda._sleep}
    seen: set[int] = set()
    for module in MODULES:
        path = module.__name__.removeprefix("tcuda").lstrip(".")
        for name in module.__all__:
            value = getattr(module, name)
            full = f"{path}.{name}".lstrip(".")
            if callable(value) and id(value) not in seen and name not in WITHOUT_SIGNATURE and full not in NOT_CALLED:
                seen.add(id(value))
                found[full] = lambda value=value: value
    return found


def methods() -> dict[str, Callable[[], Any]]:
    """Return a function that returns the bound method of a new object, for each name of a public method."""
    found: dict[str, Callable[[], Any]] = {}
    for kind, make in OBJECTS.items():
        owner = getattr(tcuda, CLASSES.get(kind, kind), None) or tcuda.memory.track
        members = vars(owner if isinstance(owner, type) else type(owner))
        for name, member in members.items():
            is_public = not name.startswith("_") or name in OPERATORS
            is_function = isinstance(member, (types.FunctionType, classmethod, staticmethod))
            if is_public and (is_function or hasattr(member, "__wrapped__")):
                found[f"{kind}.{name}"] = lambda make=make, name=name: getattr(make(), name)
    return found


TARGETS = functions() | methods()


def state() -> dict[str, Any]:
    """Return the state that a refused call must not change."""
    devices = range(tcuda.device_count())
    return {
        "current device": tcuda.current_device(),
        "current stream": tcuda.current_stream(),
        "allocated": [tcuda.memory_allocated(device) for device in devices],
        "random numbers": [bytes(state) for state in tcuda.get_rng_state_all()],
        "settings": ledger.conf(),
        "caching": ledger.ledger().caching,
        "fractions": [tcuda.get_per_process_memory_fraction(device) for device in devices],
        "captures": list(captures),
        "debug mode": tcuda.get_sync_debug_mode(),
        "observers": list(_out_of_memory._observers),
        "callbacks": _relief._in_force,
    }


def restore(before: dict[str, Any]) -> None:
    """Undo the changes of a call with a legitimate value."""
    tcuda.set_device(before["current device"])
    tcuda.set_stream(before["current stream"])
    tcuda.set_rng_state_all([np.frombuffer(state, np.uint8) for state in before["random numbers"]])
    ledger.ledger().caching = before["caching"]
    for device, fraction in enumerate(before["fractions"]):
        tcuda.set_per_process_memory_fraction(fraction, device)
    _out_of_memory._observers[:] = before["observers"]
    _relief._in_force = before["callbacks"]
    for device in range(tcuda.device_count()):
        tcuda.memory.wake(device)


def call(target: str, parameter: str, bad: Any) -> None:
    """Call ``target`` with one bad value and good values for the rest, and enter or free the result."""
    function = TARGETS[target]()
    parameters = inspect.signature(function).parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    arguments = {p.name: GOOD[p.name]() for p in required if p.name != parameter} | {parameter: bad}
    positional = [arguments.pop(p.name) for p in parameters if p.kind is p.POSITIONAL_ONLY and p.name in arguments]
    result = function(*positional, **arguments)
    if target == "caching_allocator_alloc":
        tcuda.caching_allocator_delete(result)
    elif hasattr(result, "__enter__") and not isinstance(result, tcuda.Stream):
        with result:
            pass


def outcome(target: str, parameter: str, bad: Any) -> tuple[str, bool, list[str]]:
    """Call ``target`` with one bad value.

    Returns the text of its error, whether the type of the error is right, and what the call has changed.
    """
    before, text, right = state(), "", True
    try:
        call(target, parameter, bad)
    except Exception as error:
        text, right = f"{type(error).__name__}: {error}", isinstance(error, ERRORS)
    if state() != before:  # a traceback may have kept objects of the failed call alive
        gc.collect()
    after = state()
    restore(before)
    return text, right, [what for what in before if after[what] != before[what]]


def complaints(target: str) -> Iterator[str]:
    """Yield a complaint for each bad value that is taken, changes state or gets a bad message."""
    for parameter in inspect.signature(TARGETS[target]()).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        legitimate = LEGITIMATE.get(f"{target}.{parameter.name}", LEGITIMATE.get(f".{parameter.name}", frozenset()))
        for name in ALL - TOO_MUCH.get(f"{target}.{parameter.name}", frozenset()):
            text, right, changed = outcome(target, parameter.name, BAD[name])
            if text and changed:  # the call may have collected memory that an earlier call has left
                gc.collect()
                text, right, changed = outcome(target, parameter.name, BAD[name])
            refused = bool(text)
            if not right and not TORCHS.search(text):
                yield f"{target}({parameter.name}={name}) raises {text}"
            if refused and changed:
                yield f"{target}({parameter.name}={name}) changes {changed}, and raises {text}"
            if INTERNAL.search(text):
                yield f"{target}({parameter.name}={name}) says {text}"
            if not refused and name not in legitimate:
                yield f"{target}({parameter.name}={name}) is taken"


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.chdir(before)


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("target", TARGETS)
def test_bad_values_are_refused_and_change_nothing(target: str, tmp_path: Path) -> None:
    with in_folder(tmp_path):
        assert list(complaints(target)) == []


@pytest.mark.long
def test_a_process_survives_all_bad_values(output_of: OutputOf) -> None:
    code = (
        "import json, pathlib, test_bad_values as tests\n"
        "with tests.in_folder(pathlib.Path.cwd()):\n"
        "    found = [text for target in tests.TARGETS for text in tests.complaints(target)]\n"
        "print(json.dumps(found))"
    )
    output = output_of(code, PYTHONPATH=str(Path(__file__).parent))
    assert json.loads(output.splitlines()[-1]) == []


def test_no_public_name_is_left_out() -> None:
    called = {name.rpartition(".")[2] for name in TARGETS}
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                assert name in called | WITHOUT_SIGNATURE | TUPLES | {"cudaStatus"}, name
    assert {"Event.record", "Stream.wait_stream", "CUDAGraph.capture_begin", "Generator.set_offset"} <= set(TARGETS)


@pytest.mark.parametrize("name", ["stream_id", "device_index"])
@pytest.mark.parametrize("bad", ["-1", "-2**70", "2**63", "2**70", "1.5", "text", "list", "object"])
def test_a_stream_with_bad_numbers_is_refused(name: str, bad: str) -> None:
    numbers = {"stream_id": 0, "device_index": 0} | {name: BAD[bad]}
    with pytest.raises((TypeError, ValueError, tcuda.AcceleratorError)) as caught:
        tcuda.Stream(**numbers)
    assert not INTERNAL.search(str(caught.value))


def test_a_stream_of_another_device_type_is_refused() -> None:
    with pytest.raises(ValueError, match="device_type must be 1, torch's number for CUDA; got 2"):
        tcuda.Stream(stream_id=0, device_index=0, device_type=2)


@pytest.mark.parametrize("index", [2**31, 2**40, 2**64])
def test_an_index_beyond_a_c_int_is_an_invalid_device(index: int) -> None:
    for select in (tcuda.set_device, lambda index: tcuda.device(index).__enter__()):
        with pytest.raises(tcuda.AcceleratorError, match=rf"cudaSetDevice\({index}\) failed") as caught:
            select(index)
        assert caught.value.error_code == 101


@pytest.mark.parametrize("cycles", [2**63, -(2**63), 2**64])
def test_sleep_refuses_numbers_beyond_64_bits(cycles: int) -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        tcuda._sleep(cycles)


def test_a_float_is_refused_as_a_priority() -> None:
    tcuda.Stream(priority=-1)
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        tcuda.Stream(priority=-1.0)  # type: ignore[arg-type]


def test_memory_that_an_earlier_call_has_left_is_no_change(tmp_path: Path) -> None:
    garbage: list[Any] = [tcuda.xp.zeros(1000)]
    garbage.append(garbage)
    del garbage
    with in_folder(tmp_path):
        assert list(complaints("graph")) == []
