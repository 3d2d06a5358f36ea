"""The demo under the detector: no race as the demo is, and a race where its wait is taken out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tcuda
from support.training import DIGITS, ONE_OR_TWO
from tcuda.demo import loader
from tcuda.demo.config import KERNELS, Config
from tcuda.demo.train import train

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("runtime")]  # the detector does not watch CUDA yet

WAIT = "self._copy_stream.wait_stream(self._compute_stream)"


def races_of(**settings: Any) -> list[dict[str, Any]]:
    """Train for one epoch under the detector, and return the races."""
    with tcuda.sanitizer.check(mode="collect") as report:
        train(Config(epochs=1, **settings), DIGITS)
    races: list[dict[str, Any]] = report.as_dict()["races"]
    return races


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_the_demo_has_no_race(kernel: str, devices: int) -> None:
    assert races_of(kernel=kernel, devices=devices) == []


@pytest.mark.long
@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_the_demo_has_no_race_in_graphs_and_on_one_stream(devices: int) -> None:
    assert races_of(graph=True, devices=devices) == []
    assert races_of(overlap=False, devices=devices) == []


def test_the_wait_of_the_loader_is_found_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(loader.__file__).read_text()
    assert source.count(WAIT) == 1
    changed = compile(source.replace(WAIT, "pass"), loader.__file__, "exec")
    namespace: dict[str, Any] = dict(vars(loader))
    exec(changed, namespace)
    monkeypatch.setattr(loader.Loader, "_fill", namespace["Loader"]._fill)

    races = races_of()
    assert {race["kind"] for race in races} == {"write after read"}
    assert {race["missing"] for race in races} == {WAIT}
    copies = [race["current"]["stack"][0] for race in races]
    assert {(frame["name"], line_of(frame)) for frame in copies} == {
        ("_fill", "slot.copied = tcuda.memory.copy_async(slot.device, host)")
    }
    assert all(
        race["before"] == {"file": frame["filename"], "line": frame["line"]}
        for race, frame in zip(races, copies, strict=True)
    )
    reads = [race["previous"]["stack"][0] for race in races]
    assert {frame["name"] for frame in reads} == {"unpack"}  # the function that reads the batch
    assert all("rows[" in line_of(frame) for frame in reads)


def line_of(frame: dict[str, Any]) -> str:
    """Return the text of the line at which a frame of a report is."""
    return Path(frame["filename"]).read_text().splitlines()[frame["line"] - 1].strip()
