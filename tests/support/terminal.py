"""Programs whose messages go to a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from typing import TYPE_CHECKING, NamedTuple

from support.environments import environment

if TYPE_CHECKING:
    from pathlib import Path


class Done(NamedTuple):
    """The end of a program: its status, what it printed to a pipe, and what it said on the terminal."""

    status: int
    stdout: str
    said: str


def run_on_terminal(*arguments: str, folder: Path, columns: int = 80, **variables: str) -> Done:
    """Run Python with ``arguments`` and with a terminal of ``columns`` columns as stderr."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    said: list[bytes] = []
    reader = threading.Thread(target=_read, args=(controller, said))
    reader.start()
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=terminal,
            env=environment(**{"TERM": "xterm", **variables}),
            cwd=folder,
            text=True,
        )
    finally:
        os.close(terminal)
        reader.join()
        os.close(controller)
    return Done(done.returncode, done.stdout, b"".join(said).decode())


def without_colours(said: str) -> str:
    """Return what a program said on a terminal without colours and links."""
    return re.sub(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", said)


def _read(controller: int, said: list[bytes]) -> None:
    while True:
        try:
            part = os.read(controller, 10_000)
        except OSError:  # nobody has the terminal any more
            return
        if not part:
            return
        said.append(part)
