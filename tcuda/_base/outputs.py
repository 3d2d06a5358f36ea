"""The files that commands write: which files a command may replace, and which it refuses to."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

from tcuda._base.files import require_writable
from tcuda._base.messages import in_one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from pathlib import Path

_BEGIN, _END = 4096, 64
"""The bytes at the start and at the end of a file in which a mark may stand."""


class Kind(NamedTuple):
    """A kind of files that a command writes.

    Attributes:
        noun: The name of the kind.
        begin: The first bytes of every such file.
        mark: Bytes near the start or the end of every such file, which other programs do not write.
    """

    noun: str
    begin: bytes
    mark: bytes

    def includes(self, path: Path) -> bool:
        """Return whether a file was written by a command as a file of this kind.

        Raises:
            OSError: The file cannot be read.
        """
        with path.open("rb") as file:
            begin = file.read(_BEGIN)
            file.seek(-min(_END, file.seek(0, os.SEEK_END)), os.SEEK_END)
            end = file.read()
        return begin.startswith(self.begin) and (self.mark in begin or self.mark in end)


class Taken(ValueError):
    """A file that an output would take the place of."""


PAGE = Kind("page", b"<!DOCTYPE html>", b'<meta name="generator" content="tcuda">')


def require_free(path: Path, kind: Kind, inputs: Iterable[Path] = ()) -> None:
    """Insist that a command may write ``path``, as far as that can be told without writing.

    An empty file may be replaced, and so may an earlier output of the same kind. Other files are kept, because the
    name of a program or of its data is easily given in the place of the name of an output.

    Args:
        path: The file to write.
        kind: The kind of the file.
        inputs: Files that the command or its program reads, or that the command writes, too. A file with another name
            is recognised.

    Raises:
        OSError: The file cannot be written.
        Taken: The file is one of ``inputs``, or has another content than an output of this kind.
    """
    if any(_is_same(path, other) for other in inputs):
        raise Taken(
            f"{str(path)!r} is also another file of this command line, and the {kind.noun} would take its place; give "
            "another name"
        )
    require_writable(path)
    if _has_content(path) and not kind.includes(path):
        raise Taken(
            f"{str(path)!r} is no {kind.noun} of tcuda, and the {kind.noun} would take its place; give another name, "
            "or remove the file"
        )


def check_output(options: argparse.Namespace, path: Path, kind: Kind, inputs: Iterable[Path] = ()) -> None:
    """End the command with a usage error if an output would take the place of another file.

    Args:
        options: The options of the command.
        path: The file to write.
        kind: The kind of the file.
        inputs: The other files of the command line.

    Raises:
        OSError: The file cannot be written.
    """
    try:
        require_free(path, kind, inputs)
    except Taken as error:
        options.usage_error(in_one_line(error))


def remove_earlier(path: Path) -> None:
    """Remove the output of an earlier run, so that the old output cannot be taken for that of this run.

    Args:
        path: A file that :func:`require_free` has accepted. The target of a link is removed, and the link stays.

    Raises:
        OSError: The file cannot be removed.
    """
    if _has_content(path):
        path.resolve().unlink()


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _is_same(path: Path, other: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):  # one of the two does not exist, or cannot exist
        if path.samefile(other):
            return True
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        return path.resolve() == other.resolve()
    return False


__all__ = ["PAGE", "Kind", "Taken", "check_output", "remove_earlier", "require_free"]
