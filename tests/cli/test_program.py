"""A program that runs inside the command: what it sees and how it ends is as with ``python PROGRAM``."""

from __future__ import annotations

import os
import py_compile
import re
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from support.environments import environment

if TYPE_CHECKING:
    from pathlib import Path

RUN = """
import os, sys
told = int(os.environ.pop("TOLD"))
from tcuda._base.program import run_file, run_module
first, *rest = sys.argv[1:]
ending = run_module(rest[0], rest[1:]) if first == "-m" else run_file(first, rest)
os.write(told, repr(ending).encode())
sys.exit(ending.status)
"""

SEES = """
import sys, os
print(__name__, sys.argv, sys.path[0], sys.modules["__main__"].__dict__ is globals())
print(__file__, __package__, __spec__ and __spec__.name, type(__loader__).__name__, __doc__, __builtins__)
print(sorted(name for name in globals() if name not in ("os", "sys")))
"""


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def ours(tmp_path: Path) -> Any:
    """Return a function that runs a program by ``tcuda._base.program``, and returns the process and the ending."""

    def ours(*arguments: str, **variables: str) -> tuple[subprocess.CompletedProcess[str], str]:
        reader, writer = os.pipe()
        with os.fdopen(reader) as told:
            done = subprocess.run(
                [sys.executable, "-c", RUN, *arguments],
                cwd=tmp_path,
                env=environment(TOLD=str(writer), **variables),
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
                pass_fds=(writer,),
            )
            os.close(writer)
            return done, told.read()

    return ours


def make(folder: Path) -> None:
    """Make programs of every kind."""
    (folder / "sees.py").write_text(SEES)
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(SEES)
    (package / "module.py").write_text(SEES)
    py_compile.compile(str(folder / "sees.py"), str(folder / "compiled.pyc"), doraise=True)
    (folder / "link.py").symlink_to(package / "module.py")
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", SEES)


@pytest.mark.parametrize(
    "arguments",
    [
        ["sees.py"],
        ["./sees.py", "-m", "--json", "--", "a b", ""],
        ["package"],
        ["package/module.py", "x"],
        ["link.py"],
        ["compiled.pyc", "x"],
        ["archive.zip", "--help"],
        ["-m", "sees", "-m", "x"],
        ["-m", "package", "x"],
        ["-m", "package.module"],
    ],
    ids=" ".join,
)
def test_a_program_sees_what_it_sees_with_python(arguments: list[str], tmp_path: Path, ours: Any) -> None:
    make(tmp_path)
    expected = run(tmp_path, *arguments)
    assert expected.returncode == 0, expected.stderr
    done, ending = ours(*arguments)
    assert (done.stdout, done.stderr, done.returncode) == (expected.stdout, "", 0)
    assert ending == "Ending(status=0, failure=None)"


def test_no_folder_joins_the_path_of_a_python_that_wants_none(tmp_path: Path, ours: Any) -> None:
    (tmp_path / "sees.py").write_text("import sys; print(sys.path)")
    variables = {"PYTHONSAFEPATH": "1"}
    if sys.version_info < (3, 11):
        pytest.skip("needs PYTHONSAFEPATH, which Python 3.11 has first")
    assert ours("sees.py", **variables)[0].stdout == run(tmp_path, "sees.py", **variables).stdout


PROGRAMS = {
    "returns": "print('done')",
    "status": "import sys; print('out'); sys.exit(7)",
    "status None": "import sys; sys.exit()",
    "status True": "import sys; sys.exit(True)",
    "status 256": "import sys; sys.exit(256)",
    "status -1": "import sys; sys.exit(-1)",
    "status text": "import sys; sys.stdout.write('out'); sys.exit('no luck')",
    "raise SystemExit": "raise SystemExit([1, 2])",
    "exception": "def f():\n    raise ValueError('no\\nluck')\nf()",
    "chain": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('x') from error",
    "group": "raise Exception() from ValueError('a')",
    "syntax": "x = (\n",
    "encoding": "# coding: latin-1\nprint(ascii('\xe4'))",
    "import": "import no_such_module",
    "hook": "import sys\nsys.excepthook = lambda *error: print('hook', error[0].__name__, error[2].tb_lineno)\n1 / 0",
    "thread": (
        "import threading\ngo = threading.Event()\n"
        "threading.Thread(target=lambda: go.wait() and print('in a thread')).start()\nprint('main')\ngo.set()"
    ),
    "pool": (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
        "print(pool.submit(int, '7').result())"
    ),
    "thread fails": (
        "import threading\nthread = threading.Thread(target=lambda: 1 / 0, name='t')\nthread.start()\nthread.join()"
    ),
    "atexit": "import atexit, sys\natexit.register(lambda: print(sys.argv, __name__))\nsys.exit(3)",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
    "annotations": "x: int = 1\nprint(__annotations__)" if sys.version_info < (3, 14) else "print()",
    "spawn": (
        "import multiprocessing\ndef work(x):\n    return x + 1\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        print(pool.map(work, [1, 2]))"
    ),
    "abort": "import os\nos._exit(9)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_as_with_python(name: str, tmp_path: Path, ours: Any) -> None:
    encoding = "latin-1" if name == "encoding" else "utf-8"
    (tmp_path / "program.py").write_text(PROGRAMS[name], encoding=encoding)
    expected = run(tmp_path, "program.py")
    done, _ = ours("program.py")
    assert done.stdout == expected.stdout
    assert done.stderr == expected.stderr
    assert done.returncode == expected.returncode


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("raise SystemExit(7)", "Ending(status=7, failure=None)"),
        ("raise SystemExit('x')", "Ending(status=1, failure=None)"),
        ("raise ValueError('a b')", "Ending(status=1, failure='ValueError: a b')"),
        ("x = (", "failure=\"SyntaxError: '(' was never closed\")"),
        ("raise KeyboardInterrupt", "Ending(status=130, failure='KeyboardInterrupt')"),
    ],
)
def test_the_ending_says_how_a_program_failed(code: str, ending: str, tmp_path: Path, ours: Any) -> None:
    (tmp_path / "program.py").write_text(code)
    _, told = ours("program.py")
    assert told.endswith(ending)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "absent"], "ImportError: No module named absent"),
        (["-m", "package.absent"], "ImportError: No module named package.absent"),
        (["-m", "package"], "ImportError: No module named package.__main__; 'package' is a package and cannot"),
        (["-m", "math"], "ImportError: "),
        (["package"], "ImportError: can't find '__main__' module in 'package'"),
    ],
    ids=" ".join,
)
def test_a_program_without_code_fails_in_one_line(
    arguments: list[str], message: str, tmp_path: Path, ours: Any
) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    done, _ = ours(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["exception", "chain", "import"])
def test_a_module_fails_without_frames_of_the_command(name: str, tmp_path: Path, ours: Any) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS[name])
    expected = run(tmp_path, "-m", "program")
    done, _ = ours("-m", "program")
    shown = re.sub(r'  File "[^"]*runpy[^"]*", .*\n(?:    .*\n)*', "", expected.stderr)
    assert shown != expected.stderr  # Python shows frames of the part that runs a module, and the command shows none
    assert without_marks(done.stderr) == without_marks(shown)


@pytest.mark.wings
@pytest.mark.parametrize("arguments", [["program.py"], ["-m", "program"]], ids=" ".join)
def test_an_error_in_tcuda_ends_at_the_line_of_the_program(arguments: list[str], tmp_path: Path, ours: Any) -> None:
    (tmp_path / "program.py").write_text("import tcuda.emulation\ntcuda.emulation.enable()\ntcuda.xp.ones(3)[7]\n")
    own = re.compile(r"[/\\]tcuda[/\\]emulation[/\\]")
    short, _ = ours(*arguments)
    assert short.returncode == 1
    assert not own.search(short.stderr)
    assert re.findall(r"line (\d+), in", short.stderr) == ["3"]
    assert short.stderr.splitlines()[-1].startswith("IndexError: index 7 is out of bounds")
    assert "TCUDA_LOG=debug shows the rest" in short.stderr
    whole, _ = ours(*arguments, TCUDA_LOG="debug")
    assert own.search(whole.stderr)
    assert "TCUDA_LOG=debug" not in whole.stderr


def without_marks(text: str) -> list[str]:
    """Return the lines of a traceback without the marks below the lines, which some versions of Python leave out."""
    return [line for line in text.splitlines() if "^" not in line]
