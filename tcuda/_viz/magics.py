"""The magics of notebooks: ``%load_ext tcuda`` adds ``%%tcuda_sanitize`` and ``%%tcuda_memory``.

The extension also lets the traceback of an error end at the line of the cell.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tcuda._base.tracebacks import end_at_program
from tcuda._base.wings import wing_module

if TYPE_CHECKING:
    from collections.abc import Callable

_NAMES = ("tcuda_sanitize", "tcuda_memory")
_REACTIONS = ("", "raise", "warn")
_ERRORS = (Exception,)  # of cells; IPython keeps this object, which says whose function shows them
_MOST_SITES = 10


def add(shell: Any, track: Callable[..., Any], device_count: Callable[[], int]) -> None:
    """Add the magics of cells.

    Args:
        shell: The shell of IPython that runs the notebook.
        track: ``tcuda.memory.track``.
        device_count: ``tcuda.device_count``.
    """

    def tcuda_sanitize(line: str, cell: str) -> None:
        """Run the cell under the race detector, and show the report: %%tcuda_sanitize [raise | warn]."""
        reaction = line.strip()
        if reaction not in _REACTIONS:
            raise _usage_error(f"%%tcuda_sanitize takes 'raise', 'warn' or nothing; got {reaction!r}.")
        with wing_module("sanitizer").check(reaction or "collect") as report:
            error = _run(shell, cell)
        if not reaction and (report or report.possible):  # the other reactions have reported the races
            _show(shell, report)
        else:
            print(report.summary)
        _raise_again(error)

    def tcuda_memory(line: str, cell: str) -> None:
        """Run the cell, and show its peak of memory, and the lines whose memory is still allocated: %%tcuda_memory."""
        if line.strip():
            raise _usage_error(f"%%tcuda_memory takes no options; got {line.strip()!r}.")
        with contextlib.ExitStack() as measuring:
            measured = [measuring.enter_context(track(device, sites=True)) for device in range(device_count())]
            error = _run(shell, cell)
        for device, each in enumerate(measured):
            if device == 0 or each.usage.peak:
                _print_memory(f"device {device}", each.usage.peak, each.usage.current)
            for site in each.alive[:_MOST_SITES]:
                print(f"    {site}")
        if measured and measured[0].usage.host_peak:
            _print_memory("page-locked", measured[0].usage.host_peak, measured[0].usage.host_current)
        _raise_again(error)

    for magic in (tcuda_sanitize, tcuda_memory):
        shell.register_magic_function(magic, "cell")
    if not shell.custom_exceptions:
        shell.set_custom_exc(_ERRORS, _show_error)


def remove(shell: Any) -> None:
    """Take away what :func:`add` has added, for IPython's ``%unload_ext tcuda``."""
    for name in _NAMES:
        shell.magics_manager.magics["cell"].pop(name, None)
    if shell.custom_exceptions is _ERRORS:
        shell.set_custom_exc((), None)


def _show_error(shell: Any, kind: type, error: BaseException, traceback: Any, tb_offset: int | None = None) -> None:
    """Show the error of a cell without the functions of tcuda that the cell has called.

    ``%xmode Verbose`` shows these functions, too.
    """
    if shell.InteractiveTB.mode != "Verbose":
        end_at_program(error)
    shell.showtraceback((kind, error, traceback), tb_offset=tb_offset, running_compiled_code=True)


def _usage_error(text: str) -> Exception:
    """Return IPython's error of a wrong call of a magic, which a notebook shows in one line, without a traceback."""
    from IPython.core.error import UsageError

    error: Exception = UsageError(text)
    return error


def _run(shell: Any, cell: str) -> BaseException | None:
    """Run a cell, and return its error, which IPython has shown.

    The comment stands in the place of the line of the magic, so that reports name the lines as the notebook shows them.
    """
    compiler, number = shell.compile, len(shell.user_ns["In"]) - 1
    cache = compiler.cache
    # Some versions of IPython count the next cell already, so that the code would have the name of that cell.
    compiler.cache = lambda code, _=0, **options: cache(code, number, **options)
    try:
        done = shell.run_cell(f"# the magic\n{cell}", store_history=False)
    finally:
        del compiler.cache
    error: BaseException | None = done.error_before_exec or done.error_in_exec
    return error


def _raise_again(error: BaseException | None) -> None:
    """Let the cell of a magic fail with the error of its code, without a second traceback."""
    if error is not None:
        error._render_traceback_ = list  # type: ignore[attr-defined]  # what IPython asks for
        raise error


def _show(shell: Any, report: Any) -> None:
    """Show a report: as a page in a notebook, and as text in a terminal."""
    if hasattr(shell, "kernel"):
        shell.display_pub.publish({"text/plain": repr(report), "text/html": report._repr_html_()})
    else:
        print(report)


def _print_memory(place: str, peak: int, current: int) -> None:
    print(f"{place}: at most {peak:,} bytes; {current:,} bytes more are allocated after the cell than before")


__all__ = ["add", "remove"]
