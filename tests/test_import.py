"""What ``import tcuda`` costs and drags in."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tcuda

if TYPE_CHECKING:
    from conftest import OutputOf

HEAVY = ("cupy", "cupy_backends", "numpy", "nvtx", "pynvml", "rich", "torch", "tcuda.emulation")


def test_import_brings_in_nothing_heavy_and_initialises_nothing(output_of: OutputOf) -> None:
    code = "import json, sys, tcuda; print(json.dumps([sorted(sys.modules), tcuda.is_initialized()]))"
    modules, initialized = json.loads(output_of(code))
    assert "tcuda.streams" in modules
    assert not [name for name in HEAVY if name in modules]
    assert initialized is False


def test_import_takes_less_than_100_ms(output_of: OutputOf) -> None:
    code = "import time; start = time.process_time(); import tcuda; print(time.process_time() - start)"
    # Processor time, of which a machine that is busy otherwise takes nothing away.
    best = min(float(output_of(code)) for _ in range(5))
    assert best < 0.1


def test_the_version_is_that_of_the_distribution() -> None:
    assert tcuda.__version__ == importlib.metadata.version("tcuda")


def test_the_package_is_typed() -> None:
    assert (Path(tcuda.__file__).parent / "py.typed").exists()


def test_every_public_name_is_there_and_sorted() -> None:
    assert sorted(tcuda.__all__, key=str) == sorted(set(tcuda.__all__))
    assert all(hasattr(tcuda, name) for name in tcuda.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tcuda' has no attribute 'warp_drive'"):
        tcuda.warp_drive  # noqa: B018


def test_xp_is_the_array_module_of_the_runtime() -> None:
    from tcuda._runtime import runtime

    assert tcuda.xp.__name__ == runtime().array_module


def test_names_that_come_late_are_listed() -> None:
    assert {"xp", "emulation", "Stream"} <= set(dir(tcuda))


def test_late_names_are_in_their_places_after_initialisation(output_of: OutputOf) -> None:
    code = (
        "import tcuda\n"
        "assert '__getattr__' in vars(tcuda) and 'xp' not in vars(tcuda)\n"
        "xp = tcuda.xp\n"
        "tcuda.init()\n"
        "assert '__getattr__' not in vars(tcuda) and vars(tcuda)['xp'] is xp\n"
        "assert tcuda.emulation.enable\n"
        "try: tcuda.warp_drive\n"
        "except AttributeError as error: print(error)"
    )
    assert output_of(code) == "module 'tcuda' has no attribute 'warp_drive'"
