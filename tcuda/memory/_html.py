"""Pages of HTML that show a snapshot of the memory, under the names of torch's drawings."""

from __future__ import annotations

import os
import warnings
from typing import Any

from tcuda._base.warnings import stacklevel
from tcuda.memory._snapshots import _snapshot


class SnapshotPage:
    """The page of a snapshot, which a notebook shows below the cell. tcuda adds this class to torch's names.

    The page is that of ``tcuda memory-viz``: the memory over time, the blocks, and the lines that allocated them. The
    snapshot itself stays torch's dictionary, so that other programs can read its pickle.

    Args:
        snapshot: The result of :func:`_snapshot` or of :func:`tcuda.memory_snapshot`, of tcuda or of torch; a new
            snapshot if None.

    Raises:
        ValueError: ``snapshot`` is not a snapshot.

    Example:
        >>> x = xp.zeros(1000)
        >>> page = tcuda.memory.SnapshotPage()  # the last line of a cell shows the page
        >>> page
        <tcuda.memory.SnapshotPage>
        >>> "Snapshot of the memory" in page._repr_html_()
        True
    """

    def __init__(self, snapshot: dict[str, Any] | list[dict[str, Any]] | None = None) -> None:
        from tcuda._viz.memory import checked  # here, because few programs need the module

        self._snapshot = checked(_snapshot() if snapshot is None else snapshot)

    def __repr__(self) -> str:
        return "<tcuda.memory.SnapshotPage>"

    def _repr_html_(self) -> str:
        from tcuda._viz.memory import page  # here, because few programs need the modules
        from tcuda._viz.shared import notebook

        title = "Snapshot of the memory"
        return notebook.framed(page(self._snapshot, title), title)


def _save_memory_usage(
    filename: str | os.PathLike[str] = "output.svg",
    snapshot: dict[str, Any] | list[dict[str, Any]] | None = None,
) -> None:
    """Write a page that shows the memory over time and who allocated it (``torch.cuda.memory._save_memory_usage``).

    The page is that of ``tcuda memory-viz``, and needs no network. torch's function draws a picture, with a script that
    torch loads from the network.

    Args:
        filename: The path of the page. ``.html`` takes the place of the suffix ``.svg``, and a warning says so.
        snapshot: The result of :func:`_snapshot` or of :func:`tcuda.memory_snapshot`, of tcuda or of torch; a new
            snapshot if None.

    Raises:
        OSError: The file cannot be written.
        TypeError: ``filename`` is not a path.
        ValueError: ``snapshot`` is not a snapshot.

    Example:
        >>> import pathlib, tempfile
        >>> x = xp.zeros(1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "memory.html")
        ...     tcuda.memory._save_memory_usage(path)
        ...     print(path.read_text()[:15])
        <!DOCTYPE html>
    """
    _save(filename, snapshot, "Memory usage", with_history=True)


def _save_segment_usage(
    filename: str | os.PathLike[str] = "output.svg",
    snapshot: dict[str, Any] | list[dict[str, Any]] | None = None,
) -> None:
    """Write a page that shows the segments and the blocks in them (``torch.cuda.memory._save_segment_usage``).

    The page is that of ``tcuda memory-viz`` without the history. :func:`_save_memory_usage` shows the history too.

    Args:
        filename: The path of the page. ``.html`` takes the place of the suffix ``.svg``, and a warning says so.
        snapshot: The result of :func:`_snapshot` or of :func:`tcuda.memory_snapshot`, of tcuda or of torch; a new
            snapshot if None.

    Raises:
        OSError: The file cannot be written.
        TypeError: ``filename`` is not a path.
        ValueError: ``snapshot`` is not a snapshot.

    Example:
        >>> import pathlib, tempfile
        >>> x = xp.zeros(1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "segments.html")
        ...     tcuda.memory._save_segment_usage(path, tcuda.memory_snapshot())
        ...     print(path.read_text()[:15])
        <!DOCTYPE html>
    """
    _save(filename, snapshot, "Segment usage", with_history=False)


def _save(filename: str | os.PathLike[str], snapshot: object, title: str, *, with_history: bool) -> None:
    # These imports take long.
    from pathlib import Path

    from tcuda._base.files import require_writable, write_file
    from tcuda._viz.memory import checked, page

    path = Path(os.fsdecode(filename))
    is_picture = path.suffix.lower() == ".svg"
    if is_picture:
        path = path.with_suffix(".html")
    require_writable(path)
    content = checked(_snapshot() if snapshot is None else snapshot)
    if not with_history:
        content["device_traces"] = []
        content["host_trace"] = []
    write_file(path, page(content, title).encode())
    if is_picture:
        warnings.warn(f"tcuda writes a page of HTML instead of an SVG picture: {path}", stacklevel=stacklevel())
