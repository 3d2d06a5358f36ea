"""The race detector of the process, which gets all operations and all memory from the runtime and the ledger.

A detector that is started before initialisation is attached by a step of initialisation, so that to start a detector
uses no device.
"""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, NamedTuple

from tcuda import _core
from tcuda._base.extension_modules import listen, stop_listening
from tcuda._base.scope import undone_by
from tcuda._process import captured_lines
from tcuda._process.fork import call_in_child
from tcuda._process.initialization import add_step
from tcuda._process.ledger import hearing_tool, ledger_if_any
from tcuda.sanitizer._mpi_calls import MpiCalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime


_WATCHES = {"cuda": "tcuda.sanitizer._cuda.watch", "emulated": "tcuda.emulation.runtime"}
"""The module of each runtime that watches the work of the runtime, by its function ``watch_races``."""


class _Started(NamedTuple):
    """A detector, and the function that is called if the runtime refuses the detector at initialisation.

    The function returns whether initialisation goes on without a detector.
    """

    detector: _core.RaceDetector
    refused: Callable[[RuntimeError], bool]


_lock = threading.RLock()
_started: _Started | None = None
_is_attached = False
_mpi_calls: MpiCalls | None = None
_runtime: Runtime | None = None
"""The runtime that initialisation has reached; a detector that is started later is attached at once."""


def start(on_race: Callable[[_core.Race], object], refused: Callable[[RuntimeError], bool]) -> None:
    """Start the detector, unless a detector is started already. A call that raises must be followed by :func:`stop`.

    Args:
        on_race: The function that is called with every race: on emulated devices in the thread of the operation that
            found the race, on CUDA devices in Python's main thread.
        refused: The function that is called if the runtime refuses the detector at a later initialisation. The function
            returns whether initialisation goes on without a detector.

    Raises:
        RuntimeError: The runtime in use cannot look for races, or a tool hears of all arrays.
    """
    global _started
    with _lock:
        if _started is not None:
            return
        _started = _Started(_core.RaceDetector(on_race), refused)
        if _runtime is not None:
            _attach(_runtime)


def is_started() -> bool:
    """Return whether there is a detector, attached or not."""
    return _started is not None


def stop() -> None:
    """Detach the detector from the runtime and the ledger; without a detector, do nothing."""
    global _is_attached, _started
    with _lock:
        if _started is not None:
            _detach(_runtime)
            _started = None


def deliver() -> None:
    """Report the races that calls of the driver have found, and that wait for Python's main thread.

    Raises:
        Exception: The function that gets the races has raised the exception.
    """
    if _started is not None:
        _core.deliver_races()


def known() -> list[_core.Race]:
    """Return the races that the detector has found and not forgotten, the newest last."""
    started = _started
    return started.detector.races() if started is not None else []


def operations() -> int:
    """Return the number of operations that the detector has seen; 0 without a detector."""
    started = _started
    return started.detector.operations if started is not None else 0


def forget() -> None:
    """Let the detector report again the races that it has reported."""
    started = _started
    if started is not None:
        started.detector.forget_races()


def attach(cuda: Runtime, backend: Backend) -> None:
    """Attach a detector that was started before: a step of initialisation.

    Raises:
        RuntimeError: The runtime cannot look for races, and a program asked for a detector in its own code.
    """
    global _runtime
    with _lock:
        _runtime = cuda
        if _started is None or _is_attached:
            return
        started = _started
        try:
            _attach(cuda)
            return
        except RuntimeError as error:
            refusal = error
    if not started.refused(refusal):
        raise refusal


def _detach(cuda: Runtime | None) -> None:
    """Undo :func:`_attach`, also one that has raised."""
    global _is_attached, _mpi_calls
    if _is_attached:
        assert cuda is not None
        assert _started is not None
        mpi_calls, _mpi_calls = _mpi_calls, None
        if mpi_calls is not None:
            mpi_calls.end()
        stop_listening(_core.notice_system_calls)
        _watch_races(cuda, None)
        _started.detector.detach()
        captured_lines.check(on=False)
        _is_attached = False


@undone_by(_detach)
def _attach(cuda: Runtime) -> None:
    global _is_attached, _mpi_calls
    ledger = ledger_if_any()
    assert ledger is not None
    assert _started is not None
    tool = hearing_tool()
    if tool:
        raise RuntimeError(
            f"The tool {tool} hears of all arrays, because TCUDA_NVTX_MEMORY is 1. tcuda reports its memory to one "
            "listener at a time. Remove the variable to look for races."
        )
    _is_attached = True  # first, because a signal handler may raise
    captured_lines.check(on=True)
    _watch_races(cuda, _started.detector)
    _started.detector.attach(ledger)
    _mpi_calls = MpiCalls(_started.detector)
    _mpi_calls.begin()
    listen(_core.notice_system_calls)
    _core.notice_system_calls()


def _watch_races(cuda: Runtime, detector: _core.RaceDetector | None) -> None:
    """Let the watch of the runtime report all work to ``detector``; None ends the watch."""
    importlib.import_module(_WATCHES[cuda.name]).watch_races(cuda, detector)


def _forget_in_child() -> None:
    global _is_attached, _lock, _mpi_calls, _runtime, _started
    _started = _runtime = _mpi_calls = None
    _is_attached = False
    captured_lines.check(on=False)
    _lock = threading.RLock()  # another thread of the parent may have held it


call_in_child(_forget_in_child)
add_step(attach)
