"""The watch of CUDA devices gives way to torch's profiler. A package stands in for torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROFILER = """




{names}

class profile:
    def __init__(self, activities):
        self.activities = activities

    def __enter__(self):
        _prepare_profiler("config", self.activities)
        _enable_profiler("config", self.activities)

    def __exit__(self, *_):
        pass

class emit_nvtx:
    def __enter__(self):
        _enable_profiler("config", set())

    def __exit__(self, *_):
        pass
"""
STARTS = """
import sys

log, attached = [], lambda: None

def _prepare_profiler(config, activities):
    log.append(("prepare", config, activities, attached()))

def _enable_profiler(config, activities, scopes=None):
    log.append(("enable", config, activities, attached()))
    return scopes
"""
BEGIN = """
import sys, warnings
sys.path[:0] = [{folder!r}, {tests!r}]
from support.cupti import Cupti, MAIN, MEMORY, MEMORY_SIZE, SIDE
from tcuda import _core
from tcuda.sanitizer._cuda import cupti as library
from tcuda.sanitizer._cuda.watch import CudaWatch

cupti = Cupti({cupti!r})
library.find = lambda version: cupti.path
made = _core.DriverWatch
_core.DriverWatch = lambda detector, path: made(detector, path, cupti.path)
warnings.simplefilter("always")
finders = list(sys.meta_path)
races = []

def watch():
    detector = _core.RaceDetector(races.append)
    detector.memory_allocated(MEMORY, MEMORY_SIZE, 0, 0)
    return CudaWatch(detector, 13010)

def attached():
    return bool(cupti.stub.stub_subscribed())

def race():
    cupti.fill(MAIN)
    cupti.fill(SIDE)
"""
PROFILE = """
import torch.autograd
torch.autograd.attached = attached
from torch.autograd import profiler
"""


@pytest.fixture
def torch(tmp_path: Path) -> Callable[..., None]:
    """Make a package that stands in for torch, with the given names in its module of the profiler."""

    def made(*names: str) -> None:
        folder = tmp_path / "torch" / "autograd"
        folder.mkdir(parents=True)
        (tmp_path / "torch" / "__init__.py").touch()
        (folder / "__init__.py").write_text(STARTS)
        imports = "\n".join(f"from torch.autograd import {name}" for name in names)
        (folder / "profiler.py").write_text(PROFILER.format(names=imports))

    return made


@pytest.fixture
def output(torch: Callable[..., None], tmp_path: Path, cupti_library: str, output_of: Callable[..., str]):  # type: ignore[no-untyped-def]
    """Run code in a process with a stand-in of torch and of CUPTI, and return the lines that it prints."""

    def lines(code: str, *names: str) -> list[str]:
        torch(*(names or ("_prepare_profiler", "_enable_profiler")))
        begin = BEGIN.format(folder=str(tmp_path), tests=str(REPOSITORY / "tests"), cupti=cupti_library)
        return output_of(begin + code).splitlines()

    return lines


@pytest.mark.parametrize("first", ["torch", "watch"])
def test_a_start_ends_the_subscription(output: Callable[..., list[str]], first: str) -> None:
    """torch may be imported before the watch or in the watch; the profiler's functions run without a subscription."""
    begin = PROFILE + "w = watch()\n" if first == "torch" else "w = watch()\n" + PROFILE
    code = (
        begin
        + """
race()
print(attached(), len(races))
with warnings.catch_warnings(record=True) as caught:
    with profiler.profile({"cuda"}):
        print(attached(), len(races))
    race()
    with profiler.profile({"cuda"}):
        pass
    w.end()
print(torch.autograd.log == [(call, "config", {"cuda"}, False) for call in ("prepare", "enable")] * 2)
(warning,) = caught
print(warning.category.__name__, "\\n" in str(warning.message), warning.filename)
print(warning.message)
print(len(races), races[0].kind)
"""
    )
    assert output(code) == [
        "True 1",
        "False 1",
        "True",
        "RuntimeWarning False <string>",
        "The race detector sees no more CUDA work from here on, because torch's profiler needs CUPTI, and CUPTI serves "
        "one tool at a time",
        "1 write after write",
    ]


def test_races_that_wait_are_delivered_at_the_end(output: Callable[..., list[str]]) -> None:
    """A race that is found in another thread waits for the main thread, also if the subscription ends first."""
    code = (
        PROFILE
        + """
import threading
w = watch()
def run():
    race()
    warnings.simplefilter("ignore")
    with profiler.profile({"cuda"}):
        pass
thread = threading.Thread(target=run)
thread.start()
thread.join()
w.end()
print(attached(), [race.kind for race in races])
"""
    )
    assert output(code) == ["False ['write after write']"]


def test_nothing_stays_after_the_watch(output: Callable[..., list[str]]) -> None:
    """After the end, torch's functions and the imports are those of before, with and without a profile."""
    code = (
        PROFILE
        + """
originals = torch.autograd._prepare_profiler, torch.autograd._enable_profiler
for profiled in (False, True):
    w = watch()
    print((profiler._prepare_profiler, profiler._enable_profiler) == originals)
    if profiled:
        with warnings.catch_warnings(record=True), profiler.profile({"cuda"}):
            pass
    w.end()
    print((profiler._prepare_profiler, profiler._enable_profiler) == originals, sys.meta_path == finders, attached())
w = watch()
print(attached())
w.end()
w.end()
"""
    )
    assert output(code) == ["False", "True True False"] * 2 + ["True"]


def test_an_import_after_the_watch_is_left_alone(output: Callable[..., list[str]]) -> None:
    """A loader that a watch has found may run after the watch."""
    code = """
import importlib.util
w = watch()
import torch.autograd
spec = importlib.util.find_spec("torch.autograd.profiler")
w.end()
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module._prepare_profiler is torch.autograd._prepare_profiler)
"""
    assert output(code) == ["True"]


def test_ranges_of_nvtx_need_no_cupti(output: Callable[..., list[str]]) -> None:
    """The watch goes on in ``emit_nvtx``, which starts the profiler without activities."""
    code = (
        PROFILE
        + """
w = watch()
with profiler.emit_nvtx():
    race()
print(attached(), len(races), torch.autograd.log)
w.end()
"""
    )
    assert output(code) == ["True 1 [('enable', 'config', set(), True)]"]


def test_arguments_and_results_go_through(output: Callable[..., list[str]]) -> None:
    """The replaced function takes the scopes of torch's function, and returns its result."""
    code = (
        PROFILE
        + """
w = watch()
print(profiler._enable_profiler("config", set(), "scopes"), profiler._enable_profiler.__name__)
w.end()
"""
    )
    assert output(code) == ["scopes _enable_profiler"]


@pytest.mark.parametrize("name", ["_prepare_profiler", "_enable_profiler"])
def test_a_torch_without_one_of_the_names_is_left_alone(output: Callable[..., list[str]], name: str) -> None:
    """A name that is missing belongs to a torch that starts its profiler in another way."""
    code = (
        PROFILE
        + f"""
w = watch()
print(profiler.{name} is torch.autograd.{name})
w.end()
print(profiler.{name} is torch.autograd.{name})
"""
    )
    assert output(code, name) == ["True", "True"]


def test_a_wrapper_of_the_program_stays(output: Callable[..., list[str]]) -> None:
    """A function that the program has put in the place of the replaced one is not taken away, and still works."""
    code = (
        PROFILE
        + """
w = watch()
ours = profiler._prepare_profiler
def wrapper(*arguments):
    return ours(*arguments)
profiler._prepare_profiler = wrapper
w.end()
print(profiler._prepare_profiler is wrapper, profiler._enable_profiler is torch.autograd._enable_profiler)
w = watch()
w.end()
with warnings.catch_warnings(record=True) as caught, profiler.profile({"cuda"}):
    print(len(caught), [call for call, *_ in torch.autograd.log])
"""
    )
    assert output(code) == ["True True", "0 ['prepare', 'enable']"]


def test_without_torch_nothing_is_imported(output: Callable[..., list[str]]) -> None:
    """The watch imports no torch, and torch may be missing."""
    code = """
w = watch()
print("torch" in sys.modules)
w.end()
sys.modules["torch"] = None
w = watch()
print(attached())
w.end()
"""
    assert output(code) == ["False", "True"]
