"""The C++ compiler of the machine."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NAMES = ("c++", "g++", "clang++")


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler.

    Attributes:
        command: The program and its first arguments, such as ``("/usr/bin/ccache", "g++")``.
        identity: A text that changes if another compiler or another version takes the place of the compiler.
    """

    command: tuple[str, ...]
    identity: str

    @property
    def version(self) -> str:
        """The first line that the compiler prints about its version."""
        return _version(self.command, self.identity)

    @property
    def is_clang(self) -> bool:
        """Whether the compiler takes the flags of clang, and not the flags of gcc."""
        return "clang" in self.version.lower()

    def run(
        self, arguments: Sequence[str], folder: Path, descriptors: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run the compiler in ``folder``, and return its exit status and its output.

        Args:
            arguments: The arguments.
            folder: The folder.
            descriptors: The open files of this process that the compiler gets under the same numbers.
        """
        # Other languages would change the messages, and a locale without UTF-8 would change their quotation marks.
        environment = {**os.environ, "LC_ALL": "C"}
        # Equal sources have equal libraries, so the lines of a library must not name the folder of one compile.
        unnamed = f"-fdebug-prefix-map={folder}=/tcuda-compile-"
        return subprocess.run(
            [*self.command, unnamed, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=descriptors,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )


def without_linking(flags: Sequence[str]) -> list[str]:
    """Return the flags that concern the compiler, and not the linker."""
    return [flag for flag in flags if flag != "-shared" and not flag.startswith("-Wl,")]


def find(environ: Mapping[str, str] = os.environ) -> Compiler:
    """Return the compiler in the variable ``CXX``, or else the first of ``c++``, ``g++`` and ``clang++``.

    Raises:
        RuntimeError: The machine has no compiler, or ``CXX`` names a program that does not exist.
    """
    chosen = environ.get("CXX", "").strip()
    path = environ.get("PATH")
    if chosen:
        try:
            words = shlex.split(chosen)
        except ValueError as error:
            raise RuntimeError(f"The environment variable CXX is {chosen!r}, which is no command: {error}.") from None
        program = shutil.which(words[0], path=path) if words else None
        if program is None:
            raise RuntimeError(
                f"The environment variable CXX is {chosen!r}, and there is no program {words[0]!r}. Set CXX to a C++ "
                "compiler, or remove the variable."
            )
        return _compiler((program, *words[1:]), path)
    for name in _NAMES:
        program = shutil.which(name, path=path)
        if program is not None:
            return _compiler((program,), path)
    raise RuntimeError(
        "Emulated devices compile kernels with the C++ compiler of the machine, and there is none: CXX is not set, and "
        f"none of {', '.join(_NAMES)} is on the PATH. Install a compiler (Debian and Ubuntu: apt install g++; Fedora: "
        "dnf install gcc-c++; macOS: xcode-select --install), or set CXX."
    )


def _compiler(command: tuple[str, ...], path: str | None) -> Compiler:
    # A replaced compiler has another time or another size. Reading them costs less than running the compiler.
    parts = []
    for word in command:
        found = None if word.startswith("-") else shutil.which(word, path=path)
        if found is None:
            parts.append(word)
        else:
            real = Path(found).resolve()
            state = real.stat()
            parts.append(f"{real}:{state.st_mtime_ns}:{state.st_size}")
    return Compiler(command, " ".join(parts))


@functools.cache
def _version(command: tuple[str, ...], identity: str) -> str:
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise RuntimeError(f"The C++ compiler {shlex.join(command)!r} cannot be started: {error}.") from None
    lines = done.stdout.splitlines()
    if done.returncode or not lines or not re.search(r"\d", lines[0]):
        raise RuntimeError(
            f"{shlex.join(command)!r} does not tell its version, so the program is no C++ compiler. Set CXX to gcc's "
            "g++ or to clang++."
        )
    return lines[0]
