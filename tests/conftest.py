"""The fixtures that tests in several folders use."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.core import skip_without_for_tests
from support.folders import DATA, REPOSITORY
from support.forked_programs import ForkedPrograms
from support.garbage import collect_until
from support.settings import changes as _changes
from support.settings import settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from support.cupti import Cupti, Watched
    from support.fixture_types import Changes, CompiledCpp, OutputOf, RunPython
    from tcuda._runtime.protocol import Runtime
    from tcuda.sanitizer import Race


# Tests start hundreds of processes that import tcuda. Without compiled modules, each import takes twice as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--races",
        action="store_true",
        default="TCUDA_TEST_RACES" in os.environ,  # PYTEST_ADDOPTS would reach the pytest that a test starts, too
        help="fail a test in which the race detector finds a race (slow; see CONTRIBUTING)",
    )
    parser.addoption(
        "--long",
        action="store_true",
        help="run the tests with the mark long too, without naming their files",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that take long, unless the command line has ``--long`` or names a file."""
    if config.getoption("--long") or any(".py" in argument for argument in config.args):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in set(long)]


_OURS = (str(REPOSITORY / "tests"), str(REPOSITORY / "tcuda"))

RACES_ON_PURPOSE: dict[str, str] = json.loads((DATA / "races_on_purpose.json").read_text())
"""The tests, files and folders that the race detector does not check, each with the reason."""


@pytest.fixture(scope="module", autouse=True)
def _few_objects_for_the_garbage_collector() -> None:
    """Hide what earlier modules have left from the garbage collector, because many tests collect garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_races(request: pytest.FixtureRequest) -> Iterator[None]:
    """With ``--races``, fail a test in which the race detector finds a race."""
    if not request.config.getoption("--races"):
        yield
        return
    path = request.path.relative_to(REPOSITORY)
    test = f"{path}::{getattr(request.node, 'originalname', request.node.name)}"
    if any(place in RACES_ON_PURPOSE for place in (test, *map(str, (path, *path.parents)))):
        yield
        return
    import tcuda

    with tcuda.sanitizer.check(mode="collect") as report:
        yield
    if report:
        pytest.fail("\n".join(map(_described, report)), pytrace=False)


def _described(race: Race) -> str:
    """Return a race in a few lines, with the lines of the test and of its helpers."""
    if "in a kernel" in race.kind:
        return str(race)
    kind = f"use after free, {race.kind}" if race.use_after_free else race.kind
    lines = [f"The race detector found a race ({kind})."]
    for name, access in (("previous", race.previous), ("current", race.current)):
        lines.append(f"  {name}: {access.operation} {access.kind} on {access.stream_name}")
        places = [frame for frame in (*access.stack, *(access.launch_stack or ())) if frame.filename.startswith(_OURS)]
        lines += [f"    {frame.filename}:{frame.line} in {frame.name}" for frame in places]
    return "\n".join([*lines, f"  {race.missing.sentence}"])


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Run code in a new process, in a temporary folder; None removes an environment variable."""

    def run(code: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
        skip_without_for_tests(code)
        env = _changed_environment(environment)
        command = [sys.executable, "-W", "error", "-c", code]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    return run


def _changed_environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    merged: dict[str, str | None] = {**os.environ, **changes}
    if changes.get("TCUDA_RUNTIME") == "emulated" and "CUDA_VISIBLE_DEVICES" not in changes:
        merged["CUDA_VISIBLE_DEVICES"] = None  # says which GPUs the tests use, and would hide emulated devices
    if changes.get("PYTHONPATH") and "PYTHONPATH" in os.environ:
        merged["PYTHONPATH"] = f"{changes['PYTHONPATH']}{os.pathsep}{os.environ['PYTHONPATH']}"
    return {name: value for name, value in merged.items() if value is not None}


@pytest.fixture(scope="session")
def forked_programs() -> Iterator[ForkedPrograms]:
    """The processes that run programs in copies of themselves, for all tests."""
    with ForkedPrograms() as programs:
        yield programs


@pytest.fixture
def run_forked(request: pytest.FixtureRequest, tmp_path: Path) -> RunPython:
    """Run code as ``run_python`` does, in less time, in a process that has imported tcuda but not used it.

    Each value of ``LD_LIBRARY_PATH`` needs a process of its own. So a value that only one test has takes more time than
    with ``run_python``.
    """
    if os.environ["TCUDA_RUNTIME"] == "cuda":
        run_python: RunPython = request.getfixturevalue("run_python")
        return run_python
    programs: ForkedPrograms = request.getfixturevalue("forked_programs")

    def run(code: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
        skip_without_for_tests(code)
        return programs.run(code, tmp_path, _changed_environment(environment))

    return run


@pytest.fixture
def output_of(run_forked: RunPython) -> OutputOf:
    """Run code as ``run_forked`` does, check that the process succeeds, and return its output."""
    return _outputs(run_forked)


@pytest.fixture
def fresh_output_of(run_python: RunPython) -> OutputOf:
    """Run code as ``run_python`` does, check that the process succeeds, and return its output.

    A test of imports, of variables that imports read, or of the search for shared libraries needs a fresh process.
    """
    return _outputs(run_python)


def _outputs(run: RunPython) -> OutputOf:
    def output(code: str, **environment: str | None) -> str:
        done = run(code, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return output


@pytest.fixture
def xp(runtime: Runtime) -> Any:
    """The array namespace of the runtime."""
    import tcuda

    return tcuda.xp


@pytest.fixture
def changes(runtime: Runtime) -> Changes:
    """Measure by how much the figures of ``memory_stats()`` change in a scope; unchanged figures are left out.

    Each private pool and each scope of memory has figures of its own, which are left out too.
    """
    import tcuda

    def figures(device: int | None) -> dict[str, int]:
        own = ("reserved_bytes_by_private_pools.", "scope_bytes.")
        return {key: value for key, value in tcuda.memory_stats(device).items() if not key.startswith(own)}

    @contextlib.contextmanager
    def measured(device: int | None = None) -> Iterator[dict[str, int]]:
        collecting = gc.isenabled()
        gc.disable()  # the garbage collector may free arrays of earlier tests
        try:
            before = figures(device)
            changed: dict[str, int] = {}
            yield changed
            after = figures(device)
            changed.update({key: after[key] - before[key] for key in after if after[key] != before[key]})
        finally:
            if collecting:
                gc.enable()

    return measured


@pytest.fixture
def allocator_as_found(runtime: Runtime) -> Iterator[None]:
    """Check that the test frees all its memory and leaves the settings of the allocator unchanged."""
    import tcuda
    from tcuda._process.ledger import conf, ledger

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

    def is_as_before() -> bool:
        tcuda.empty_cache()
        return state() == before

    yield
    if not is_as_before():
        collect_until(is_as_before)
    assert state() == before


@pytest.fixture
def kernels_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for races inside of kernels in the test."""
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "memory,races")


@pytest.fixture(autouse=True)
def _settings_as_found() -> Iterator[None]:
    """Fail a test that changes the settings of the process, such as the environment or the limits of the allocator."""
    before = settings()
    yield
    if changed := _changes(before, settings()):
        pytest.fail(" ".join(changed), pytrace=False)


@pytest.fixture(autouse=True)
def _no_stacks_left() -> Iterator[None]:
    """No longer keep the stacks of allocations after a test that looked for races inside of kernels."""
    yield
    ledger = sys.modules.get("tcuda._process.ledger")
    if ledger is not None and ledger.always_want_stacks.cache_info().currsize:
        ledger.release_stacks()
        ledger.always_want_stacks.cache_clear()


@pytest.fixture
def memory_comes_back(runtime: Runtime) -> Iterator[None]:
    """Require that a test that drops its arrays gives all their memory back, also after errors and captures."""
    from tcuda.testing import check_state

    with check_state():
        yield


@pytest.fixture(scope="session")
def plugged_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the shared library that is built from ``tests/data/pluggable_allocator.c``."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler, and there is no cc")
    path = tmp_path_factory.mktemp("plugged") / "pluggable_allocator.so"
    source = DATA / "pluggable_allocator.c"
    command = [compiler, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path, source, "-ldl"]
    subprocess.run(command, check=True)
    return str(path)


@pytest.fixture(scope="session")
def driver_stub(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a library that replaces the driver, for ``LD_LIBRARY_PATH``."""
    folder = tmp_path_factory.mktemp("driver")
    _compile_cpp("driver_stub", folder / "libcuda.so.1")
    return str(folder)


@pytest.fixture(scope="session")
def graph_driver_stub(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a library that replaces a driver with graphs, for ``LD_LIBRARY_PATH``."""
    folder = tmp_path_factory.mktemp("graph_driver")
    _compile_cpp("graph_driver_stub", folder / "libcuda.so.1")
    return str(folder)


@pytest.fixture(scope="session")
def cupti_library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a library that stands in for CUPTI and for the driver."""
    path = tmp_path_factory.mktemp("cupti") / "libcupti_stub.so"
    _compile_cpp("cupti_stub", path)
    return str(path)


@pytest.fixture
def cupti(cupti_library: str) -> Cupti:
    """The stand-in for CUPTI, with two devices."""
    from support.cupti import Cupti

    return Cupti(cupti_library)


@pytest.fixture
def watched(cupti: Cupti) -> Iterator[Watched]:
    """A detector that is told of the calls of the stand-in."""
    from support.cupti import Watched

    made = Watched(cupti)
    yield made
    made.watch.end()


@pytest.fixture
def compiled_cpp(tmp_path: Path) -> CompiledCpp:
    """Build a shared library from a C++ source file in ``tests/data`` and return the path of the library."""

    def compiled(name: str, *options: str) -> str:
        path = tmp_path / f"{name}.so"
        _compile_cpp(name, path, *options)
        return str(path)

    return compiled


def _compile_cpp(name: str, path: Path, *options: str) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler, and there is no c++")
    command = [compiler, "-Wall", "-Wextra", "-shared", "-fPIC", *options, "-o", path, DATA / f"{name}.cpp"]
    subprocess.run(command, check=True)
