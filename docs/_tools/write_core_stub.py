"""Write ``tcuda/_core/__init__.pyi``, the types of the compiled core, with ``nanobind.stubgen``.

The types and the docstrings are those of the bindings. ``tcuda/_core/stub.pat`` has what the bindings cannot say. The
command needs a core with both wings, nanobind, and ruff::

    .venv/bin/python docs/_tools/write_core_stub.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nanobind
from nanobind.stubgen import StubGen, load_pattern_file

import tcuda._core

CORE = Path(__file__).parents[2] / "tcuda" / "_core"
STUB = CORE / "__init__.pyi"
_HEADER = "# Written by docs/_tools/write_core_stub.py with nanobind {}. Change the bindings or stub.pat instead.\n"


def generated() -> str:
    """Return the types of the core, as stubgen writes them."""
    vars(tcuda._core).pop("__getattr__", None)  # tcuda adds the function, for a core that is older than its sources
    patterns = load_pattern_file(str(CORE / "stub.pat"))
    generator = StubGen(module=tcuda._core, patterns=patterns, include_private=True, quiet=True)
    generator.put(tcuda._core)
    return _HEADER.format(nanobind.__version__) + generator.get()


def _with_first_lines(text: str) -> str:
    """Return ``text`` with the first line of each docstring behind its quotes."""
    text = re.sub(r'^( *)"""\n +', r'\1"""', text, flags=re.MULTILINE)
    return re.sub(r'^( *""".*)\n +"""$', r'\1"""', text, flags=re.MULTILINE)


def _ruff(*arguments: str, text: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(STUB), "-"]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> None:
    """Write the file."""
    text = _ruff("check", "--quiet", "--fix-only", "--select=I", text=_with_first_lines(generated()))
    STUB.write_text(_ruff("format", text=text))


if __name__ == "__main__":
    main()
