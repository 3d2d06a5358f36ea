"""Stacks, and the sites that the stacks name."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.snapshots import (
    LOAD,
    STEP,
    alloc,
    frame,
    free,
    snapshot,
)
from tcuda._base.cells import shown
from tcuda._viz import memory
from tcuda._viz.memory import devices
from tcuda._viz.shared.stacks import NO_STACK, Stacks

PACKAGE = Path(memory.__file__).parents[1]


@pytest.mark.parametrize(
    ("files", "site"),
    [
        (["/usr/lib/python3.12/site-packages/cupy/a.py", "/home/user/b.py", "/home/user/c.py"], 1),
        (["C:\\Python\\Lib\\site-packages\\cupy\\a.py", "C:\\code\\b.py"], 1),
        (["/opt/lib/python3.13t/threading.py", "<frozen runpy>", "<ipython-input-3-1f>"], 2),
        ([str(PACKAGE / "memory.py"), "b.py"], 1),
        (
            ["/usr/lib/python3.12/site-packages/torch/nn.py", "/lib/site-packages/program/a.py", "b.py"],
            1,
        ),
        (["??", "allocator.cpp", "/usr/lib/python3.12/threading.py"], 2),
        (["??", "Activation.cpp"], 0),
    ],
)
def test_the_site_is_the_innermost_frame_of_the_users_code(files: list[str], site: int) -> None:
    stacks = Stacks()
    number = stacks.number([frame(f"f{index}", name) for index, name in enumerate(files)])
    found = stacks.site(number)
    assert found is not None
    assert stacks.frames[found].filename == shown(files[site])


def test_the_site_of_a_native_stack_is_not_the_allocator() -> None:
    stacks = Stacks()
    names = ["torch::unwind::unwind()", "c10::cuda::CUDACachingAllocator::Native::malloc(unsigned long)", "at::add"]
    found = stacks.site(stacks.number([frame(name, "??") for name in names]))
    assert found is not None
    assert stacks.frames[found].name == "at::add"


def test_a_stack_in_two_scopes_has_two_numbers() -> None:
    stacks = Stacks()
    numbers = [stacks.number(STEP, scope) for scope in ("", "fft", "plan", "fft")] + [stacks.number([], "fft")]
    assert numbers == [1, 2, 3, 2, 4]
    assert [stacks.scopes[number] for number in numbers] == ["", "fft", "plan", "fft", "fft"]
    assert [stacks.site(number) for number in numbers] == [0, 0, 0, 0, None]


def test_every_stack_and_frame_is_kept_once() -> None:
    stacks = Stacks()
    again = [dict(each) for each in LOAD]
    numbers = [stacks.number(frames) for frames in ([], LOAD, again, STEP, LOAD, LOAD[:2])]
    assert numbers == [NO_STACK, 1, 1, 2, 1, 3]
    assert len(stacks.frames) == 4
    assert stacks.site(NO_STACK) is None


def test_sites_have_the_sums_of_their_allocations() -> None:
    other_way = [frame("read", "/usr/lib/python3.12/site-packages/cupy/io.py", 8), *LOAD[1:]]
    trace = [
        alloc(1, 100, LOAD),
        alloc(2, 30, other_way),
        alloc(3, 500, STEP),
        *free(1, 100),
        *free(3, 500),
        alloc(4, 7, LOAD),
        *free(9, 1),
    ]
    (device,), stacks = devices(snapshot(traces=[trace]))
    rows = []
    for site in device.sites:
        usage = site.usage
        name = "" if site.frame is None else stacks.frames[site.frame].name
        rows.append((name, usage.at_peak, usage.at_end, usage.alive, usage.count, usage.total))
    assert rows == [("step", 500, 0, 0, 1, 500), ("load", 130, 37, 2, 3, 137), ("", 1, 0, 0, 1, 1)]
    assert [usage.total for usage in device.sites[1].stacks.values()] == [107, 30]
