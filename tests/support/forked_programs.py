"""Programs that run in copies of a process that has imported tcuda but not used it.

A copy is as fresh as a process of its own for a program that uses tcuda, and starts in a tenth of the time, most of
which the imports take.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

_LIMIT = 120  # seconds for each program

_SERVER = """
import json, os, signal, sys, warnings
import numpy, tcuda
import tcuda._process.captures, tcuda._runtime.emulated.runtime, tcuda.emulation.functions, tcuda.emulation.random
import tcuda.jiterator, tcuda.testing

for line in sys.stdin:
    request = json.loads(line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns about the idle threads of NumPy
        process = os.fork()
    if process == 0:
        break
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    print(status, flush=True)
else:
    os._exit(0)

# The rest runs in the copy, which ends as every Python process does.
signal.alarm(request["limit"])
for descriptor, path, flags in (
    (0, os.devnull, os.O_RDONLY),
    (1, request["output"], os.O_WRONLY),
    (2, request["errors"], os.O_WRONLY),
):
    opened = os.open(path, flags)
    os.dup2(opened, descriptor)
    os.close(opened)
os.chdir(request["folder"])
os.environ.clear()
os.environ.update(request["environment"])
code = compile(request["code"], "<string>", "exec")
for used in ("descriptor", "flags", "json", "line", "numpy", "opened", "os", "path", "process", "request", "signal"):
    del globals()[used]
del sys, tcuda, used, warnings
exec(globals().pop("code"))
"""


class ForkedPrograms:
    """A process that has imported tcuda, and runs programs in copies of itself."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, code: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run ``code`` in ``folder`` with the variables of ``environment``, of which imports do not depend."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.TemporaryDirectory() as results:
            output, errors = Path(results, "output"), Path(results, "errors")
            output.touch()
            errors.touch()
            request = {
                "code": code,
                "folder": str(folder),
                "environment": environment,
                "output": str(output),
                "errors": str(errors),
                "limit": _LIMIT,
            }
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            status = int(self._server.stdout.readline())
            return subprocess.CompletedProcess(["python", "-c", code], status, output.read_text(), errors.read_text())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.communicate()
