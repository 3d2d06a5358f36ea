"""Programs that run in copies of a process that has imported tcuda but not used it.

A copy is as fresh as a process of its own for a program that uses tcuda, and needs a tenth of the time, because the
imports take most of the time of a process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

_LIMIT = 120  # seconds for each program

_SERVER = """
import gc, json, os, signal, sys, warnings
import numpy, tcuda
import tcuda._process.captures, tcuda.emulation.runtime.runtime, tcuda.emulation.arrays.functions
import tcuda.emulation.backend.backend, tcuda.emulation.random, tcuda.emulation.xp, tcuda.jiterator, tcuda.testing

gc.collect()
gc.freeze()  # The collector of a copy would write to the memory of every object, which copies the memory.
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
found = os.environ.get("PYTHONPATH", "").split(os.pathsep)
sys.path[1:1] = [entry for entry in found if entry and entry not in sys.path]
code = compile(request["code"], "<string>", "exec")
del descriptor, flags, found, gc, json, line, numpy, opened, os, path, process, request, signal, sys, tcuda, warnings
exec(globals().pop("code"))
"""


class ForkedPrograms:
    """Processes that have imported tcuda, and run programs in copies of themselves.

    Only the start of a process reads ``LD_LIBRARY_PATH``, so there is a process for each value of this variable.
    """

    def __init__(self) -> None:
        self._servers: dict[str | None, subprocess.Popen[str]] = {}

    def run(self, code: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run ``code`` in ``folder`` with the variables of ``environment``, on which imports do not depend."""
        server = self._server(environment.get("LD_LIBRARY_PATH"))
        assert server.stdin is not None
        assert server.stdout is not None
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
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            status = int(server.stdout.readline())
            return subprocess.CompletedProcess(["python", "-c", code], status, output.read_text(), errors.read_text())

    def _server(self, libraries: str | None) -> subprocess.Popen[str]:
        """Return the process that searches shared libraries in ``libraries`` first."""
        if libraries not in self._servers:
            environment = os.environ if libraries is None else {**os.environ, "LD_LIBRARY_PATH": libraries}
            command = [sys.executable, "-W", "error", "-c", _SERVER]
            # Python finds modules in the current folder. In the folder of the sources, the sources would hide an
            # installed tcuda.
            self._servers[libraries] = subprocess.Popen(
                command, cwd=os.sep, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        return self._servers[libraries]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for server in self._servers.values():
            server.communicate()
