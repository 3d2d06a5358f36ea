"""Set-up of tests and benchmarks: the installed package on CUDA, or on emulated devices if there is no GPU."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime

pytest_plugins = ["tcuda.testing.plugin"]

# The source tree has no compiled core, and must not hide a package that was installed without -e, such as a wheel.
_ROOT = Path(__file__).parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _ROOT]


def _cuda_devices() -> int:
    try:
        from cupy.cuda import runtime
    except ImportError:
        return 0
    try:
        return int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError:
        return 0


# The choice is stored in the environment, so that processes started by tests use the same devices.
if "TCUDA_RUNTIME" not in os.environ:
    os.environ["TCUDA_RUNTIME"] = "cuda" if _cuda_devices() else "emulated"
os.environ.setdefault("TCUDA_EMULATED_DEVICES", "2")


@pytest.hookimpl(optionalhook=True)  # pytest-xdist may be missing
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of test processes for ``-n auto``: one for each core, or none beside pytest itself on a GPU.

    Tests on a GPU compare the free memory of the device, which other processes change.
    """
    return 0 if os.environ["TCUDA_RUNTIME"] == "cuda" else min(len(os.sched_getaffinity(0)), 8)


def _has_wings() -> bool:
    from tcuda._base.wings import has_wing

    return has_wing("emulation") and has_wing("sanitizer")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the files that cannot be imported where tcuda was built without its wings."""
    from support.wings import imports_a_wing, is_in_a_folder_of_the_wings

    if _has_wings():
        return None
    is_file = collection_path.suffix == ".py"
    return is_in_a_folder_of_the_wings(collection_path) or (is_file and imports_a_wing(collection_path)) or None


@pytest.hookimpl(tryfirst=True)  # before pytest obeys -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of the wings; deselect those that need the other runtime, the other schedule or more devices."""
    from support.wings import is_in_a_folder_of_the_wings

    for item in items:
        if item.get_closest_marker("emulated") or is_in_a_folder_of_the_wings(item.path):
            item.add_marker("wings")
    on_cuda = os.environ["TCUDA_RUNTIME"] == "cuda"
    absent = {"emulated"} if on_cuda else {"gpu"}
    if not on_cuda and os.environ.get("TCUDA_EMULATED_SCHEDULE", "eager") != "eager":
        absent.add("eager")
    if not on_cuda or _cuda_devices() < 2:
        absent.add("multigpu")
    if not _has_wings():
        absent.add("wings")
    left_out = [item for item in items if any(item.get_closest_marker(mark) for mark in absent)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Take the 15,000 tests and all modules out of the sight of the garbage collector.

    Many tests collect garbage, as the begin of a capture does. Each collection would visit 800,000 objects.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    """The runtime of this machine, initialised."""
    import tcuda
    from tcuda._runtime import runtime

    tcuda.init()
    return runtime()


@pytest.fixture(scope="session")
def backend(runtime: Runtime) -> Backend:
    """The array library on the devices of the machine."""
    from tcuda._backend import backend_of

    return backend_of(runtime)


@pytest.fixture(autouse=True)
def _state_as_found() -> Iterator[None]:
    """Fail a test that changes the current device or the current stream, or leaves a capture open."""
    from tcuda.testing import check_state

    with check_state(memory=False):
        yield
