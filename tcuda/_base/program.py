"""A Python program that runs in this process as ``python PROGRAM`` or ``python -m MODULE`` runs the program."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import io
import os
import pkgutil
import sys
import threading
import traceback
from dataclasses import dataclass, field
from importlib.machinery import BuiltinImporter, ModuleSpec, SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tcuda._base import log
from tcuda._base.tracebacks import end_at_program, place_of_error

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Container, Iterator, Sequence
    from types import CodeType, FrameType, TracebackType

    from tcuda._base.user_code import Place

_INTERRUPTED = 130  # 128 + SIGINT, as shells count
_IMPORT = "<frozen importlib"
_SHORTENED = f"The traceback ends at the line of the program that called tcuda ({log.VARIABLE}=debug shows the rest)."
_NOUNS = {"-m": "the name of a module", "-c": "code"}
"""The options that name a program, and what comes after each."""
_IMPORTED = ("tcuda", "_editable_skbc_tcuda")
"""The modules of tcuda's distribution that are in no package; the second one is there in an editable install."""


@dataclass(frozen=True)
class Ending:
    """How a program ended.

    Attributes:
        status: The exit status.
        failure: The exception that ended the program, in one line; None if no exception did.
        place: The innermost line of the program in the traceback of the exception; None if there is no such line.
    """

    status: int
    failure: str | None = None
    place: Place | None = field(default=None, repr=False)


def require_program(path: str) -> None:
    """Require that ``path`` is a file that can be read, or a folder.

    The file is not opened, because a pipe, which a shell makes for ``<(...)``, can be opened only once.

    Raises:
        OSError: There is no such file, or the permission to read the file is missing.
    """
    Path(path).stat()
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def run_file(path: str, arguments: Sequence[str]) -> Ending:
    """Run the file, folder or archive ``path``, and wait for the threads of the program."""
    _take_arguments([path, *arguments])
    full = os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118  # as Python does, without normalising
    importer = pkgutil.get_importer(full)
    if importer is None:
        _take_first_path(os.path.dirname(os.path.realpath(full)))  # noqa: PTH120
        return _ending(lambda: _run_script(full))
    _take_first_path(full)
    return _ending(lambda: _run_spec(_spec_in(importer, path)))


def run_module(name: str, arguments: Sequence[str]) -> Ending:
    """Run the module ``name``, or the ``__main__`` of the package ``name``, and wait for the threads of the program."""
    _take_arguments(["-m", *arguments])
    _take_first_path(os.getcwd())  # noqa: PTH109
    _let_pytest_use_imported_modules()
    return _ending(lambda: _run_spec(_spec_of(name), takes_name=True))


def run_code(code: str, arguments: Sequence[str]) -> Ending:
    """Run ``code`` as ``python -c`` does, and wait for the threads of the program."""
    _take_arguments(["-c", *arguments])
    _take_first_path("")
    return _ending(lambda: _run_text(code, "<string>"))


def run_stdin(arguments: Sequence[str]) -> Ending:
    """Run the code on the standard input as ``python -`` does, and wait for the threads of the program."""
    _take_arguments(["-", *arguments])
    _take_first_path("")
    return _ending(lambda: _run_text(sys.stdin.buffer.read(), "<stdin>"))


def _let_pytest_use_imported_modules() -> None:
    """Mark the imported modules of tcuda for pytest, in pytest's way, as modules without assertions of tests.

    pytest compiles the modules of its plugins anew, and warns of a plugin whose modules have been imported before. Here
    tcuda has been imported before any program.
    """
    for name in _IMPORTED:
        module = sys.modules.get(name)
        if module is not None:
            module.__doc__ = f"{module.__doc__ or ''}\n\nPYTEST_DONT_REWRITE"


def named_program(words: Sequence[str]) -> Callable[[], Ending]:
    """Return the function that runs the program that ``words`` name, with arguments.

    The program is a file, ``-m`` and a module, ``-c`` and code, or ``-`` for the standard input.

    Raises:
        OSError: The program cannot be read.
        ValueError: There is nothing after ``-m`` or ``-c``.
    """
    first, *arguments = words
    if first == "-":
        return lambda: run_stdin(arguments)
    option, name = first[:2], first[2:]
    if option not in _NOUNS:
        require_program(first)
        return lambda: run_file(first, arguments)
    if not name:
        if not arguments:
            raise ValueError(f"give {_NOUNS[option]} after {option}")
        name, *arguments = arguments
    run = run_module if option == "-m" else run_code
    return lambda: run(name, arguments)


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add a program to the help of a command, which takes the program apart by :func:`split_program`."""
    parser.add_argument("program", metavar="PROGRAM", nargs="?", help="the file, folder or archive to run; - for stdin")
    parser.add_argument("-m", metavar="MODULE", dest="module", help="run a module instead, such as pytest")
    parser.add_argument("-c", metavar="CODE", dest="code", help="run code instead")


def split_program(arguments: Sequence[str], command: str, with_value: Container[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of a command that runs a program, and the program with its arguments.

    The program begins with ``-m``, with ``-c``, or with the name of a file, which may be ``-``. For other commands
    there is no program.

    Args:
        arguments: All arguments, with the name of the command first.
        command: The name of the command.
        with_value: The options that take the next argument as their value. All other options take a value only after
            ``=``.
    """
    own = list(arguments)
    if not own or own[0] != command:
        return own, []
    place = 1
    while place < len(own):
        argument = own[place]
        if argument == "--":
            return own[:place], own[place + 1 :]
        if argument.startswith(("-m", "-c")) or argument == "-" or not argument.startswith("-"):
            return own[:place], own[place:]
        place += 2 if argument in with_value else 1
    return own, []


@contextlib.contextmanager
def before_abrupt_exit(finish: Callable[[int], int]) -> Iterator[None]:
    """Call ``finish`` before ``os._exit`` ends this process; ``finish`` may change the exit status.

    If ``finish`` fails, the exit status is not 0. A child process that this process forks ends as ever.
    """
    leave, owner = os._exit, os.getpid()

    def _exit(status: int) -> None:
        if os.getpid() == owner:
            os._exit = leave
            try:
                status = finish(status)
            except BaseException:
                traceback.print_exc()
                status = status or 1
        leave(status)

    os._exit = _exit  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = leave


def callers() -> frozenset[str]:
    """Return the files of the functions that run now: those of the command."""
    frame: FrameType | None = sys._getframe()
    files = set()
    while frame is not None:
        files.add(frame.f_code.co_filename)
        frame = frame.f_back
    return frozenset(files)


def without_callers(stack: Sequence[dict[str, Any]], files: Container[str]) -> list[dict[str, Any]]:
    """Return ``stack``, whose innermost frame is first, without the outermost frames that are in ``files``."""
    kept = list(stack)
    while kept and kept[-1]["filename"] in files:
        kept.pop()
    return kept


def _take_arguments(arguments: list[str]) -> None:
    sys.argv[:] = arguments


def _take_first_path(entry: str) -> None:
    """Put the folder of the program first on the path of imports, in the place of the folder of the command."""
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        return  # Python added no folder for the command, and would add none for the program
    sys.path[:1] = [entry]


def _run_script(path: str) -> None:
    loader: SourceFileLoader | SourcelessFileLoader = SourcelessFileLoader("__main__", path)
    with io.open_code(path) as file:
        content = file.read()
    code = pkgutil.read_code(io.BytesIO(content))
    if code is None:  # the file is no compiled one of this version of Python
        loader = SourceFileLoader("__main__", path)
        code = loader.source_to_code(content, path)
    main = _new_main(path)
    main.__loader__ = loader
    _execute(code, main)


def _run_text(code: str | bytes, name: str) -> None:
    main = _new_main(None)
    del main.__file__, main.__cached__
    main.__loader__ = BuiltinImporter
    _execute(compile(code, name, "exec", dont_inherit=True), main)


def _run_spec(spec: ModuleSpec, *, takes_name: bool = False) -> None:
    """Run a module; with ``takes_name``, the file of the module becomes the first argument."""
    loader: Any = spec.loader
    code = loader.get_code(spec.name)
    if code is None:
        raise ImportError(f"No code object available for {spec.name}")
    if takes_name and spec.origin is not None:
        sys.argv[0] = spec.origin
    main = _new_main(spec.origin)
    main.__loader__, main.__spec__, main.__package__ = loader, spec, spec.parent
    main.__dict__["__cached__"] = spec.cached
    _execute(code, main)


def _spec_of(name: str) -> ModuleSpec:
    """Return the spec of the module ``name``, or of the ``__main__`` of the package ``name``.

    Raises:
        ImportError: There is no such module, or the module has no Python code.
    """
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        package, name = name, f"{name}.__main__"
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ImportError(f"No module named {name}; {package!r} is a package and cannot be directly executed")
    if spec is None:
        raise ImportError(f"No module named {name}")
    if not hasattr(spec.loader, "get_code"):
        raise ImportError(f"{name!r} is no module of Python code")
    return spec


def _spec_in(importer: Any, path: str) -> ModuleSpec:
    spec: ModuleSpec | None = importer.find_spec("__main__")
    if spec is None:
        raise ImportError(f"can't find '__main__' module in {path!r}")
    return spec


def _new_main(file: str | None) -> ModuleType:
    main = ModuleType("__main__")
    main.__file__ = file
    main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={}, __cached__=None)
    sys.modules["__main__"] = main
    return main


def _execute(code: CodeType, main: ModuleType) -> None:
    exec(code, main.__dict__)


def _ending(run: Callable[[], None]) -> Ending:
    """Run a program to its end, threads included, and report an exception as Python does."""
    ended = _guarded(run)
    of_threads = _guarded(threading._shutdown)  # type: ignore[attr-defined]
    return of_threads if of_threads.status and not ended.status else ended


def _guarded(run: Callable[[], None]) -> Ending:
    try:
        run()
    except SystemExit as exit:
        return Ending(_status(exit.code))
    except BaseException as error:
        ending = Ending(
            _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1, _in_one_line(error), place_of_error(error)
        )
        _print_traceback(error)
        return ending
    return Ending(0)


def _status(code: object) -> int:
    """Return the exit status of ``SystemExit(code)``; a code that is no number is a message, which is printed."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    with contextlib.suppress(AttributeError, OSError, ValueError):  # stdout or stderr may be None or closed
        sys.stdout.flush()
        print(code, file=sys.stderr)
    return 1


def _in_one_line(error: BaseException) -> str:
    return traceback.format_exception_only(type(error), error)[-1].strip()


def _print_traceback(error: BaseException) -> None:
    """Print the traceback without the frames of this module and, unless TCUDA_LOG is debug, without those of tcuda."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()
    is_shortened = not log.is_for_debugging(os.environ) and end_at_program(error)
    shown = _of_program(error.__traceback__)
    try:
        if is_shortened and sys.stderr is not None:
            print(_SHORTENED, file=sys.stderr)  # first, because the last line is that of the error
        sys.excepthook(type(error), error.with_traceback(shown), shown)
    except SystemExit:
        pass
    except BaseException:  # the program may have set a hook of its own
        traceback.print_exc()


def _of_program(frames: TracebackType | None) -> TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith((__file__, _IMPORT)):
        frames = frames.tb_next
    return frames


__all__ = [
    "Ending",
    "before_abrupt_exit",
    "callers",
    "named_program",
    "require_program",
    "run_code",
    "run_file",
    "run_module",
    "run_stdin",
    "without_callers",
]
