"""The environment variables that turn the sanitizer on when tcuda is imported."""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING

from tcuda.sanitizer import _process_reports
from tcuda.sanitizer._checks import MODES
from tcuda.sanitizer._switch import cuda_sanitizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcuda.sanitizer._report import Report

TORCHS, OURS, POSSIBLE = "TORCH_CUDA_SANITIZER", "TCUDA_SANITIZER", "TCUDA_SANITIZER_POSSIBLE"
_OFF = ("", "0")
_ON: dict[str, str] = {"1": "raise", **{mode: mode for mode in MODES}}


def enable_as_asked(environment: Mapping[str, str]) -> None:
    """Turn the sanitizer on if the environment asks for it.

    Raises:
        OSError: The file of suppressions cannot be read.
        ValueError: A variable has a value that is not allowed, or a line of the file of suppressions is wrong.
    """
    mode = _mode(environment)
    if mode is None:
        return
    possible = _possible(environment)
    folder = environment.get(_process_reports.VARIABLE)
    if folder:
        _process_reports.begin(folder, enabling(mode, possible))
        return
    is_torchs = environment.get(OURS, "") in _OFF
    cuda_sanitizer._enable(mode, possible=possible, may_be_refused=True, is_torchs=is_torchs)
    if mode == "collect":
        atexit.register(_print_report, os.getpid())
    elif not possible:
        atexit.register(_print_possible, os.getpid())


def enabling(mode: str, possible: bool) -> Callable[[Report], object]:
    """Return the function that turns the sanitizer on with a given report."""

    def enable(report: Report) -> None:
        cuda_sanitizer._enable(mode, report, possible=possible, may_be_refused=True)

    return enable


def _mode(environment: Mapping[str, str]) -> str | None:
    ours = environment.get(OURS, "")
    if ours not in _OFF:
        if ours not in _ON:
            raise ValueError(f"{OURS} is {ours!r}; it can be '0', '1', 'raise', 'warn' or 'collect'.")
        return _ON[ours]
    if OURS in environment and ours == "0":
        return None
    return None if environment.get(TORCHS, "") in _OFF else "raise"


def _possible(environment: Mapping[str, str]) -> bool:
    value = environment.get(POSSIBLE, "")
    if value not in (*_OFF, "1"):
        raise ValueError(f"{POSSIBLE} is {value!r}; it can be '0' or '1'.")
    return value == "1"


def _print_report(process: int) -> None:
    if _has_report(process):
        print(cuda_sanitizer.report, file=sys.stderr)


def _print_possible(process: int) -> None:
    """Print the races that the program has not heard of."""
    possible = cuda_sanitizer.report.possible if _has_report(process) else ()
    if possible:
        texts = "".join(f"{race}\n\n" for race in possible)
        races = "1 possible race" if len(possible) == 1 else f"{len(possible)} possible races"
        print(f"{texts}{races}; {POSSIBLE}=1 treats possible races as exact ones.", file=sys.stderr)


def _has_report(process: int) -> bool:
    return sys.stderr is not None and os.getpid() == process  # a forked child has found nothing
