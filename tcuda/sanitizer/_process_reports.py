"""The reports of several processes: each process writes its report into a folder, which ``tcuda sanitize`` reads.

A process writes at its end, and at each new race, because another process may end it at any time.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base.files import write_file
from tcuda._base.program import before_abrupt_exit
from tcuda._process.fork import call_in_child
from tcuda.sanitizer._report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from tcuda.sanitizer._found import FoundRace
    from tcuda.sanitizer._race import Finding

VARIABLE = "TCUDA_SANITIZER_REPORTS"
"""The variable with the folder to which each process writes its report."""

_SUFFIX = ".json"

_of_process: _Written | None = None
"""The report that this process writes."""


_kept: list[object] = []
"""The scopes that write the report before ``os._exit``. A scope that dies ends."""


class Found(NamedTuple):
    """What the processes of a program have written.

    Attributes:
        reports: The reports, each with the number of its process as ``"process"``.
        unfinished: The number of processes that have not written the report of their end.
    """

    reports: list[dict[str, Any]]
    unfinished: int


class _Written(Report):
    """A report that is in a file, too.

    Args:
        folder: The folder of the file.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._process = os.getpid()
        self._file = Path(folder, f"{self._process}-{os.urandom(4).hex()}{_SUFFIX}")
        self.write(finished=False)

    def _add(self, key: Any, finding: Finding, found: FoundRace) -> Finding:
        kept = super()._add(key, finding, found)
        self.write(finished=False)
        return kept

    def write(self, *, finished: bool) -> None:
        """Write the report; do nothing in another process, or if the folder is gone."""
        if os.getpid() != self._process:
            return
        report = {**self.as_dict(), "process": self._process, "finished": finished}
        with contextlib.suppress(OSError):
            write_file(self._file, json.dumps(report).encode())


def begin(folder: str, enable: Callable[[Report], object]) -> None:
    """Write a report of this process, and one of each process that this process forks, into ``folder``.

    Args:
        folder: The folder.
        enable: The function that lets a new report get the races of this process.
    """
    _begin(folder, enable)
    follow_forks(folder, enable)


def follow_forks(folder: str, enable: Callable[[Report], object]) -> None:
    """Write a report of each process that this process forks into ``folder``, as :func:`begin` does."""
    call_in_child(lambda: _begin(folder, enable))


def read(folder: Path) -> Found:
    """Return what processes have written into ``folder``."""
    reports = []
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        with contextlib.suppress(OSError, ValueError):
            reports.append(json.loads(path.read_bytes()))
    return Found(reports, sum(not report["finished"] for report in reports))


def variables(folder: Path, mode: str, *, possible: bool) -> Mapping[str, str]:
    """Return the environment variables by which a process writes its report into ``folder``."""
    return {VARIABLE: str(folder), "TCUDA_SANITIZER": mode, "TCUDA_SANITIZER_POSSIBLE": str(int(possible))}


def _begin(folder: str, enable: Callable[[Report], object]) -> None:
    global _of_process
    if not os.path.isdir(folder):  # noqa: PTH112  # a forked process may outlive the program
        return
    _of_process = _Written(folder)
    enable(_of_process)
    atexit.register(_finish)
    leaving = before_abrupt_exit(_finished)
    leaving.__enter__()
    _kept.append(leaving)
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # which a pool sends to its workers
        signal.signal(signal.SIGTERM, _terminate)


def _finish() -> None:
    if _of_process is not None:
        _of_process.write(finished=True)


def _finished(status: int) -> int:
    _finish()
    return status


def _terminate(number: int, frame: FrameType | None) -> None:
    _finish()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


__all__ = ["VARIABLE", "Found", "begin", "follow_forks", "read", "variables"]
