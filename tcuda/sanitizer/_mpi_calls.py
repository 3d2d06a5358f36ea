"""The watch of the calls of MPI that mpi4py makes, for a race detector."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from tcuda import _core
from tcuda._base.extension_modules import listen, stop_listening

if TYPE_CHECKING:
    from collections.abc import Callable


class MpiCalls:
    """Reports to a race detector the calls of MPI from :meth:`begin` to :meth:`end`.

    mpi4py calls the MPI library by the import table of its extension module. During the watch, this table leads to the
    detector. If a program imports mpi4py during the watch, the watch of its calls begins at the import. A program
    without mpi4py is not changed.

    Args:
        detector: The detector.
    """

    def __init__(self, detector: _core.RaceDetector) -> None:
        self._detector = detector
        self._watch: _core.MpiWatch | None = None
        self._lock = threading.Lock()
        self._listener: Callable[[], object] | None = None

    def begin(self) -> None:
        """Watch the calls from now on."""
        self._listener = self._look
        listen(self._listener)
        self._look()

    def end(self) -> None:
        """End the watch; a second call does nothing."""
        if self._listener is not None:
            stop_listening(self._listener)
            self._listener = None
        with self._lock:
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.end()

    def _look(self) -> None:
        """Watch mpi4py if its extension module is loaded, which may not be in ``sys.modules`` yet."""
        if "mpi4py" not in sys.modules:
            return
        with self._lock:
            if self._watch is None and self._listener is not None:
                watch = _core.MpiWatch(self._detector)
                if _core.noticed_mpi_functions():
                    self._watch = watch
                else:  # only the package is imported so far
                    watch.end()
