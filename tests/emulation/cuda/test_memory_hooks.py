"""Hooks of memory (``cupy.cuda.memory_hook``): when they are called, and what they are told."""

from __future__ import annotations

import io
import json
import re
import threading
from pathlib import Path

import pytest

import tcuda
from tcuda.emulation import xp
from tcuda.emulation.cuda import MemoryHook, MemoryPool, memory_hook, memory_hooks

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


class Recorder(MemoryHook):
    name = "Recorder"

    def __init__(self):
        self.calls = []

    def __getattribute__(self, name):
        if name.endswith("process"):
            return lambda **facts: self.calls.append((name, facts))
        return super().__getattribute__(name)


def test_a_pool_tells_of_its_memory_and_of_the_memory_of_the_device():
    pool = MemoryPool()
    with Recorder() as hook:
        pointer = pool.malloc(1)
        ptr, pmem = pointer.ptr, id(pointer.mem)
        del pointer
        again = pool.malloc(2)
    assert again.ptr == ptr
    facts = {"device_id": 0, "mem_size": 512}
    handed_out = {**facts, "mem_ptr": ptr}
    assert hook.calls[:6] == [
        ("malloc_preprocess", {**facts, "size": 1}),
        ("alloc_preprocess", facts),
        ("alloc_postprocess", handed_out),
        ("malloc_postprocess", {**handed_out, "size": 1, "pmem_id": pmem}),
        ("free_preprocess", {**handed_out, "pmem_id": pmem}),
        ("free_postprocess", {**handed_out, "pmem_id": pmem}),
    ]
    assert [name for name, _ in hook.calls[6:]] == ["malloc_preprocess", "malloc_postprocess"]


def test_arrays_tell_of_their_memory_while_there_is_a_hook():
    before = xp.ones(100)
    with Recorder() as hook:
        x = before + 1
        assert hook.calls[-1][1]["mem_ptr"] == x.data.ptr
        assert [(name, facts["size"]) for name, facts in hook.calls if "size" in facts] == [
            ("malloc_preprocess", 800),
            ("malloc_postprocess", 800),
        ]
        del hook.calls[:]
        view = x[1:]
        del x
        assert hook.calls == []
        del view
        assert [name for name, _ in hook.calls] == ["free_preprocess", "free_postprocess"]
        del hook.calls[:], before
        assert hook.calls == []  # the memory was handed out before there was a hook
    xp.empty(100)
    assert hook.calls == []


def test_hooks_hear_of_memory_that_there_is_not():
    limit = tcuda.get_device_properties().total_memory
    for allocate in (MemoryPool().malloc, lambda size: xp.empty(size, "B")):
        with Recorder() as hook, pytest.raises(tcuda.OutOfMemoryError):
            allocate(2 * limit)
        name, facts = hook.calls[-1]
        assert (name, facts["mem_ptr"], facts["pmem_id"]) == ("malloc_postprocess", 0, 0)


def test_a_thread_has_its_own_hooks_with_names_of_their_own():
    found = []
    with Recorder() as hook:
        assert memory_hook.get_memory_hooks() == {"Recorder": hook}
        with pytest.raises(KeyError, match="memory hook Recorder already exists"):
            Recorder().__enter__()

        def allocate():
            found.append(dict(memory_hook.get_memory_hooks()))
            xp.empty(10)

        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()
        assert (found, hook.calls) == ([{}], [])
    assert memory_hook.get_memory_hooks() == {}


def test_the_printed_lines_are_json():
    file = io.StringIO()
    with memory_hooks.DebugPrintHook(file=file):
        x = xp.empty(3)
        ptr = x.data.ptr
        del x
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [line.pop("pmem_id")[:2] for line in lines] == ["0x", "0x"]
    facts = {"device_id": 0, "mem_size": 512, "mem_ptr": ptr}
    assert lines == [{"hook": "malloc", "size": 24, **facts}, {"hook": "free", **facts}]


def test_the_report_counts_memory_by_lines():
    pool, hook, file = MemoryPool(), memory_hooks.LineProfileHook(), io.StringIO()
    with hook:
        first = pool.malloc(1000)
        del first
        second = pool.malloc(1024)
        third = pool.malloc(2000)
    del second, third
    hook.print_report(file=file)
    report = file.getvalue()
    assert report.startswith("_root (4.00KB, 3.00KB)\n")
    lines = re.findall(rf"{re.escape(__file__)}:(\d+):test_the_report\w+ \((.*)\)", report)
    assert [sizes for _, sizes in lines] == ["1.00KB, 1.00KB", "1.00KB, 0.00B", "2.00KB, 2.00KB"]
    assert len({line for line, _ in lines}) == 3


def test_the_report_has_no_lines_of_tcuda():
    hook, file = memory_hooks.LineProfileHook(), io.StringIO()
    with hook:
        x = xp.ones(1000)
        x + 1
    hook.print_report(file=file)
    last = file.getvalue().splitlines()[-2:]
    assert [line.partition(f"{__file__}:")[2].partition(":")[2] for line in last] == [
        "test_the_report_has_no_lines_of_tcuda (8.00KB, 0.00B)"
    ] * 2
    assert str(Path(tcuda.__file__).parent) not in file.getvalue()


def test_a_report_has_a_limited_depth():
    hook, file = memory_hooks.LineProfileHook(max_depth=2), io.StringIO()
    with hook:
        MemoryPool().malloc(1)
    hook.print_report(file=file)
    assert len(file.getvalue().splitlines()) == 2


def test_lines_and_reports_are_written_to_the_standard_output(capsys):
    hook = memory_hooks.LineProfileHook(max_depth=1)
    with hook, memory_hooks.DebugPrintHook():
        MemoryPool().malloc(1)
    hook.print_report()
    *lines, report = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["hook"] for line in lines] == ["alloc", "malloc", "free"]
    assert report == "_root (512.00B, 512.00B)"
