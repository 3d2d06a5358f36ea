"""The fixtures of several test modules."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    from support.fixture_types import Captured, Changes, CompiledCpp, HoldAtMost, OutputOf, RunPython
    from tcuda._runtime.protocol import Runtime


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Run code in a process of its own, away from the source tree; None removes an environment variable."""

    def run(code: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
        merged: dict[str, str | None] = {**os.environ, **environment}
        if environment.get("PYTHONPATH") and "PYTHONPATH" in os.environ:
            merged["PYTHONPATH"] = f"{environment['PYTHONPATH']}{os.pathsep}{os.environ['PYTHONPATH']}"
        env = {name: value for name, value in merged.items() if value is not None}
        command = [sys.executable, "-W", "error", "-c", code]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture
def output_of(run_python: RunPython) -> OutputOf:
    """Run code as ``run_python`` does, insist that it succeeds, and return what it printed."""

    def output(code: str, **environment: str | None) -> str:
        done = run_python(code, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return output


@pytest.fixture
def changes(runtime: Runtime) -> Changes:
    """By how much each figure of ``memory_stats()`` has changed at the end of a block, but for those that have not."""
    import tcuda

    @contextlib.contextmanager
    def measured(device: int | None = None) -> Iterator[dict[str, int]]:
        collecting = gc.isenabled()
        gc.disable()  # it might free arrays of tests before
        try:
            before = tcuda.memory_stats(device)
            changed: dict[str, int] = {}
            yield changed
            after = tcuda.memory_stats(device)
            changed.update({key: after[key] - before[key] for key in after if after[key] != before[key]})
        finally:
            if collecting:
                gc.enable()

    return measured


@pytest.fixture
def captured(runtime: Runtime) -> Iterator[Captured]:
    """Let a stream capture what a function does, and return what that returned, and what launches the graph.

    By the runtime alone: without a pool, and without anything that keeps memory.
    """
    import tcuda
    from tcuda._runtime.protocol import CAPTURE_RELAXED

    executables: list[int] = []

    def capture(function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
        stream = tcuda.Stream()
        with tcuda.stream(stream):
            runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
            try:
                result = function()
            finally:
                graph = runtime.streamEndCapture(stream.cuda_stream)
        executables.append(runtime.graphInstantiate(graph, 0))
        runtime.graphDestroy(graph)
        return result, functools.partial(runtime.graphLaunch, executables[-1], 0)

    yield capture
    for executable in executables:
        runtime.graphExecDestroy(executable)


@pytest.fixture
def hold_at_most(runtime: Runtime) -> HoldAtMost:
    """Let the allocator hold ``more`` bytes, and some 4 KiB, than it does now; the value is the limit."""
    import tcuda

    @contextlib.contextmanager
    def limited(more: int, device: int = 0) -> Iterator[int]:
        tcuda.empty_cache()
        _, total = tcuda.mem_get_info(device)
        before = tcuda.get_per_process_memory_fraction(device)
        fraction = (tcuda.memory_reserved(device) + more + 4096) / total
        tcuda.set_per_process_memory_fraction(fraction, device)
        try:
            yield int(fraction * total)
        finally:
            tcuda.set_per_process_memory_fraction(before, device)

    return limited


@pytest.fixture
def alloc_settings(runtime: Runtime) -> Callable[[str], contextlib.AbstractContextManager[None]]:
    """Let the allocator go by other settings in a block."""
    from tcuda import _ledger
    from tcuda.memory import _set_allocator_settings

    @contextlib.contextmanager
    def changed(text: str) -> Iterator[None]:
        before = _ledger.conf()
        _set_allocator_settings(text)
        try:
            yield
        finally:
            _ledger.change_conf(before)

    return changed


@pytest.fixture
def allocator_as_found(runtime: Runtime) -> Iterator[None]:
    """A test leaves no memory allocated, and the allocator as it was."""
    import tcuda
    from tcuda._ledger import conf, ledger

    def state() -> list[Any]:
        devices = range(tcuda.device_count())
        return [
            conf(),
            ledger().caching,
            [tcuda.get_per_process_memory_fraction(device) for device in devices],
            [tcuda.memory_allocated(device) for device in devices],
            [tcuda.memory_stats(device)["active.all.current"] for device in devices],
        ]

    if any(map(tcuda.memory_allocated, range(tcuda.device_count()))):
        gc.collect()
    tcuda.empty_cache()
    before = state()
    yield
    tcuda.empty_cache()
    if state() != before:
        gc.collect()
        tcuda.empty_cache()
    assert state() == before


@pytest.fixture(scope="session")
def torch_memory() -> dict[str, Any]:
    """What torch does with memory."""
    facts: dict[str, Any] = json.loads((DATA / "torch_memory.json").read_text())
    return facts


@pytest.fixture(scope="session")
def plugged_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shared library of ``tests/data/pluggable_allocator.c``."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler, and there is no cc")
    path = tmp_path_factory.mktemp("plugged") / "pluggable_allocator.so"
    source = DATA / "pluggable_allocator.c"
    command = [compiler, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path, source, "-ldl"]
    subprocess.run(command, check=True)
    return str(path)


@pytest.fixture
def compiled_cpp(tmp_path: Path) -> CompiledCpp:
    """The path of a shared library made of a source file in ``tests/data``."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler, and there is no c++")

    def compiled(name: str, *options: str) -> str:
        path = tmp_path / f"{name}.so"
        command = [compiler, "-Wall", "-Wextra", "-shared", "-fPIC", *options, "-o", path, DATA / f"{name}.cpp"]
        subprocess.run(command, check=True)
        return str(path)

    return compiled


@pytest.fixture(scope="session")
def plugged() -> ModuleType:
    """The module ``tests/data/plugged.py``, which programs of tests find on their path."""
    spec = importlib.util.spec_from_file_location("plugged", DATA / "plugged.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["plugged"] = module
    spec.loader.exec_module(module)
    return module
