"""Another process that uses the same runtime, and that a test drives call by call."""

from __future__ import annotations

import ast
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from support.folders import TESTS
from tcuda._runtime.protocol import MEMCPY_DEVICE_TO_HOST, MEMCPY_HOST_TO_DEVICE

if TYPE_CHECKING:
    from typing_extensions import Self

    from tcuda._runtime.protocol import Runtime

_PROGRAM = """
import os
import socket
import sys
import tcuda
from support.peer import plain, read, write
from tcuda import AcceleratorError, _backend, _core
from tcuda._process.lazy import cuda as r, init
link = socket.socket(fileno=int(sys.argv[1]))
def take():
    return socket.recv_fds(link, 1, 1)[1][0]
class Refused(Exception):
    pass
def refuse(status, call):
    raise Refused(status)
def new_ledger():
    options = _core.Settings()
    options.expandable_segments = True
    return _core.Ledger(r.memoryDriver(), r.getDeviceCount(), options, print, refuse)
def give(descriptor):
    socket.send_fds(link, [b"x"], [descriptor])
    os.close(descriptor)
init()
backend = _backend.backend_of(r)
for line in sys.stdin:
    try:
        answer = 0, eval(line)
    except Refused as error:
        answer = error.args[0], None
    except AcceleratorError as error:
        answer = error.error_code, None
    print(repr((answer[0], plain(answer[1]))), flush=True)
"""


class Peer:
    """A process that evaluates expressions.

    In the expressions, ``r`` is the runtime of the process and ``backend`` its array library. ``take()`` returns the
    descriptor that :meth:`give` sends, and ``give()`` sends the descriptor that :meth:`take` returns.
    """

    def __init__(self) -> None:
        self._link, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(other.fileno())],
                cwd=TESTS,  # Python imports from there first, and the folder has tests/support but no sources of tcuda
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=[other.fileno()],
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._link.close()
        self._process.wait()

    def give(self, descriptor: int) -> None:
        """Send a copy of ``descriptor`` to the process."""
        socket.send_fds(self._link, [b"x"], [descriptor])

    def take(self) -> int:
        """Return a copy of the descriptor that the process has sent."""
        return socket.recv_fds(self._link, 1, 1)[1][0]

    def ask(self, expression: str) -> tuple[int, Any]:
        """Return the status and the value of ``expression``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(expression, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, f"the process has ended at {expression}"
        status, value = ast.literal_eval(answer)
        return status, value

    def value(self, expression: str) -> Any:
        """Return the value of ``expression``, which must not fail."""
        status, value = self.ask(expression)
        assert status == 0, expression
        return value

    def status(self, expression: str) -> int:
        """Return the CUDA status with which ``expression`` fails, 0 if ``expression`` succeeds."""
        return self.ask(expression)[0]

    def kill(self) -> None:
        """Kill the process, and wait for its end."""
        self._process.kill()
        self._process.wait()


def plain(value: Any) -> Any:
    """Return a status as a number, and any other value as it is."""
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def read(runtime: Runtime, ptr: int, size: int) -> bytes:
    """Return bytes of the device."""
    host = np.zeros(size, np.uint8)
    runtime.memcpy(host.ctypes.data, ptr, size, MEMCPY_DEVICE_TO_HOST)
    return host.tobytes()


def write(runtime: Runtime, ptr: int, content: bytes) -> None:
    """Write bytes to the device, so that other processes see them."""
    host = np.frombuffer(content, np.uint8)
    runtime.memcpy(ptr, host.ctypes.data, len(content), MEMCPY_HOST_TO_DEVICE)
    runtime.deviceSynchronize()  # a small copy from pageable memory may return before it has reached the device
