"""The requirements of the package, which the import of this module checks before any other module is imported."""

from __future__ import annotations

import _thread
import importlib
import sys
from typing import TYPE_CHECKING

from tcuda._base.version import __version__

if TYPE_CHECKING:
    from typing import NoReturn


def _is_main_interpreter() -> bool:
    """Return whether this interpreter is the first interpreter of the process."""
    is_main = getattr(_thread, "_is_main_interpreter", None)  # since Python 3.12.1
    if is_main is not None:
        return bool(is_main())
    try:
        interpreters = importlib.import_module("_xxsubinterpreters")
    except ImportError:  # a Python that was built without the module gives no answer
        return True
    return bool(interpreters.get_current() == interpreters.get_main())


def _require_main_interpreter() -> None:
    """Raise an error in a subinterpreter.

    The core, NumPy and CuPy have one state for the whole process. A second interpreter that imports these modules takes
    objects of the first interpreter for its own, and the process crashes later.

    Raises:
        ImportError: The interpreter is a subinterpreter.
    """
    if not _is_main_interpreter():
        raise ImportError(
            "tcuda cannot be imported in a subinterpreter: its core, NumPy and CuPy keep one state for the whole "
            "process. Import tcuda in the main interpreter, or use processes (multiprocessing) instead of "
            "subinterpreters. mod_wsgi uses the main interpreter with: WSGIApplicationGroup %{GLOBAL}",
            name="tcuda",
        )


def _require_core() -> None:
    """Raise an error unless the package has a compiled core for this Python, of the version of the Python files.

    Raises:
        ImportError: The core is absent, cannot be loaded, or is of another version. A name that the core lacks raises
            this error later, if the core is older than its C++ files.
    """
    try:
        core = importlib.import_module("tcuda._core")
    except ImportError as error:
        raise _unusable(f"its compiled core cannot be loaded by {_python()}: {error}") from error
    # Without a compiled core, Python takes the folder of the core's C++ files for a package.
    path = getattr(core, "__file__", None)
    if path is None:
        del sys.modules["tcuda._core"]
        raise _unusable(f"that folder has no core compiled for {_python()}")
    version = getattr(core, "version", "unknown")
    if version != __version__:
        raise _unusable(f"its Python files are of version {__version__}, and its core {path!r} of version {version}")

    def lacking(name: str) -> NoReturn:
        """Raise an error for a name that the core lacks."""
        if name.startswith("__") or not _has_newer_sources(path):
            raise AttributeError(f"module 'tcuda._core' has no attribute {name!r}")
        raise _unusable(
            f"its core {path!r} is older than its C++ files, and lacks {name!r}, which the Python files use"
        )

    core.__getattr__ = lacking  # type: ignore[method-assign]


def _has_newer_sources(path: str) -> bool:
    """Return whether a C++ file of the package was changed after the core was compiled, as in an editable install."""
    from pathlib import Path

    compiled = Path(path).stat().st_mtime
    return any(file.stat().st_mtime > compiled for file in Path(__file__).parents[1].rglob("*.[ch]pp"))


def _unusable(reason: str) -> ImportError:
    # These imports are not at the top, so that `import tcuda` does not pay for them.
    import shlex
    from pathlib import Path

    package = Path(__file__).parents[1]
    root = package.parent
    cores = sorted(path.name for path in package.glob("_core.*.so"))
    found = f" The compiled cores there are: {', '.join(cores)}." if cores else ""
    message = f"tcuda was imported from {str(package)!r}, and {reason}.{found} "
    if (root / "pyproject.toml").exists():
        install = shlex.join([sys.executable or "python3", "-m", "pip", "install", "-e", str(root)])
        message += (
            f"Install that source tree with: {install}\n"
            f"Or start Python in another folder than {str(root)!r}, to import an installed tcuda instead."
        )
    else:
        message += f"Install tcuda again, with the pip of {sys.executable or 'this Python'}."
    return ImportError(message, name="tcuda", path=str(package))


def _python() -> str:
    """Return this Python by its tag, such as ``cpython-312``, which is in the file names of compiled modules."""
    return f"this Python ({sys.implementation.cache_tag})"


_require_main_interpreter()
_require_core()
