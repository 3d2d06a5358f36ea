"""The watch of CUDA devices: which library is taken, and what a program hears if there is none."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.cupti import MAIN, SIDE, Cupti
from support.folders import REPOSITORY
from tcuda import _core
from tcuda.sanitizer._cuda import cupti as library
from tcuda.sanitizer._cuda.watch import CudaWatch

if TYPE_CHECKING:
    from support.fixture_types import OutputOf


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for ``sys.path``, on a machine without CUPTI."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    monkeypatch.setattr(sys, "path_importer_cache", {})
    for name in ("CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(library, "_DEFAULT_TOOLKIT", "")
    opens = library._opens
    monkeypatch.setattr(library, "_opens", lambda path: os.sep in path and opens(path))  # not what the loader finds
    return tmp_path


def put(cupti_library: str, path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(cupti_library, path)
    return str(path)


class TestTheLibrary:
    def test_is_that_of_the_wheel_of_the_drivers_version(self, nowhere: Path, cupti_library: str) -> None:
        newer = put(cupti_library, nowhere / "nvidia/cu13/lib/libcupti.so.13")
        older = put(cupti_library, nowhere / "nvidia/cuda_cupti/lib/libcupti.so.12")
        assert library.find(13010) == newer
        assert library.find(12080) == older

    def test_may_be_older_than_the_driver_but_not_newer(self, nowhere: Path, cupti_library: str) -> None:
        older = put(cupti_library, nowhere / "nvidia/cuda_cupti/lib/libcupti.so.12")
        assert library.find(13010) == older
        Path(older).unlink()
        put(cupti_library, nowhere / "nvidia/cu13/lib/libcupti.so.13")
        assert library.find(12080) is None

    @pytest.mark.parametrize("variable", ["CUDA_PATH", "CUDA_HOME"])
    def test_may_be_that_of_the_toolkit(
        self, nowhere: Path, cupti_library: str, variable: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = put(cupti_library, nowhere / "cuda/extras/CUPTI/lib64/libcupti.so.13")
        monkeypatch.setenv(variable, str(nowhere / "cuda"))
        assert library.find(13000) == path

    def test_must_open(self, nowhere: Path) -> None:
        broken = nowhere / "nvidia/cu13/lib/libcupti.so.13"
        broken.parent.mkdir(parents=True)
        broken.write_text("no library")
        assert library.find(13000) is None

    def test_may_be_one_that_the_loader_finds(
        self, tmp_path: Path, cupti_library: str, fresh_output_of: OutputOf
    ) -> None:
        put(cupti_library, tmp_path / "libcupti.so.13")
        code = """
from tcuda.sanitizer._cuda import cupti
cupti._folders = lambda major: iter(())  # a wheel may be installed
print(cupti.find(13000))
"""
        assert fresh_output_of(code, LD_LIBRARY_PATH=str(tmp_path)) == "libcupti.so.13"


class TestTheWatch:
    @pytest.fixture
    def found(self, cupti: Cupti, monkeypatch: pytest.MonkeyPatch) -> Cupti:
        monkeypatch.setattr(library, "find", lambda version: cupti.path)
        made = _core.DriverWatch
        monkeypatch.setattr(_core, "DriverWatch", lambda detector, path: made(detector, path, cupti.path))
        return cupti

    def test_delivers_at_its_end_what_was_found(self, found: Cupti) -> None:
        races: list[_core.Race] = []
        watch = CudaWatch(_core.RaceDetector(races.append), 13010)
        found.fill(MAIN)
        found.fill(SIDE)
        watch.end()
        assert [race.kind for race in races] == ["write after write"]
        assert not found.stub.stub_subscribed()
        watch.end()
        assert len(races) == 1

    def test_has_ended_when_the_detectors_function_raises(self, found: Cupti) -> None:
        def refuse(race: _core.Race) -> None:
            raise ValueError(race.kind)

        watch = CudaWatch(_core.RaceDetector(refuse), 13010)
        found.fill(MAIN)
        with pytest.raises(ValueError, match="write after write"):
            found.fill(SIDE)
        watch.end()
        assert not found.stub.stub_subscribed()
        watch.end()

    def test_warns_once_if_another_tool_uses_cupti(self, found: Cupti) -> None:
        found.stub.stub_set_subscribe_status(39)
        with pytest.warns(RuntimeWarning) as caught:
            watch = CudaWatch(_core.RaceDetector(print), 13010)
        (warning,) = caught
        text = str(warning.message)
        assert "\n" not in text
        assert text.startswith("The race detector sees the memory of arrays, but no kernels, copies and waits")
        assert text.endswith('CUPTI serves one tool at a time, and "CUPTI for a profiler" uses CUPTI already')
        assert warning.filename == __file__
        watch.end()

    @pytest.mark.parametrize("version", [12080, 13010])
    def test_names_the_package_that_is_missing(self, nowhere: Path, version: int) -> None:
        package = {12: "nvidia-cuda-cupti-cu12", 13: "'nvidia-cuda-cupti>=13,<14'"}[version // 1000]
        with pytest.warns(RuntimeWarning, match=rf"pip install {re.escape(package)}$"):
            CudaWatch(_core.RaceDetector(print), version).end()


def test_the_child_of_a_fork_has_no_watch(cupti_library: str, output_of: OutputOf) -> None:
    code = f"""
import os, sys
sys.path.insert(0, {str(REPOSITORY / "tests")!r})
from support.cupti import Cupti, Watched, MAIN, SIDE
cupti = Cupti({cupti_library!r})
watched = Watched(cupti)
cupti.fill(MAIN)
if os.fork() == 0:
    cupti.fill(SIDE)
    print("child", len(watched.steps()), len(watched.found()), flush=True)
    watched.watch.end()
    print("child", bool(cupti.stub.stub_subscribed()), flush=True)
    os._exit(0)
os.wait()
cupti.fill(SIDE)
print("parent", len(watched.found()))
watched.watch.end()
"""
    assert output_of(code).splitlines() == ["child 1 0", "child True", "parent 1"]


def test_a_watch_at_the_end_of_the_interpreter_ends_in_peace(cupti_library: str, output_of: OutputOf) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(REPOSITORY / "tests")!r})
from support.cupti import Cupti, Watched, MAIN, SIDE
cupti = Cupti({cupti_library!r})
keep = Watched(cupti)
cupti.fill(MAIN)
cupti.fill(SIDE)
print(len(keep.races))
"""
    assert output_of(code) == "1"
