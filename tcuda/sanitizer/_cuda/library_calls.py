"""The notes of the memory that calls of NVIDIA's libraries read and write."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tcuda import _core
from tcuda._base.extension_modules import listen, stop_listening

if TYPE_CHECKING:
    from collections.abc import Sequence

_lock = threading.Lock()


class LibraryCalls:
    """Notes the calls of NVIDIA's libraries from :meth:`begin` to :meth:`end`.

    The notes tell the race detector what the kernels of the libraries read and write. The import of an extension
    module, such as ``cupy_backends.cuda.libs.cusolver``, may load more modules that call the libraries. So each such
    import looks for new modules.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        """Prepare the notes.

        Args:
            modules: Parts of the paths of shared libraries whose calls are noted besides those of CuPy and torch.
        """
        self._modules = modules
        self._on = False

    def begin(self) -> None:
        """Note the calls from now on; a second call does nothing."""
        with _lock:
            if self._on:
                return
            _core.begin_library_calls(self._modules)
            self._on = True
            listen(_core.look_for_library_calls)
        _core.look_for_library_calls()  # for a module that was loaded between the two steps

    def end(self) -> None:
        """End the notes for this object; the last object that ends restores the import tables."""
        with _lock:
            if not self._on:
                return
            self._on = False
            stop_listening(_core.look_for_library_calls)
            _core.end_library_calls()
