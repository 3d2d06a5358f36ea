"""The notes of the memory that calls of NVIDIA's libraries read and write."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

CreateModule = Callable[[ExtensionFileLoader, ModuleSpec], ModuleType]


class _Imports:
    """A wrapper of the import of extension modules, which looks for new modules that call the libraries."""

    def __init__(self) -> None:
        self.users = 0
        self.lock = threading.Lock()
        self._before: CreateModule = ExtensionFileLoader.create_module
        self._ours: CreateModule | None = None

    def wrap(self) -> None:
        """Look for new modules after each import of an extension module."""
        before: CreateModule = ExtensionFileLoader.create_module

        def create_module(self: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
            module = before(self, spec)
            _core.look_for_library_calls()
            return module

        self._before, self._ours = before, create_module
        # mypy refuses each replacement of a method, by another error in each version of the stubs.
        ExtensionFileLoader.create_module = create_module  # type: ignore[assignment, method-assign, unused-ignore]

    def unwrap(self) -> None:
        """Take the wrapper away, unless the program has wrapped the method since."""
        if ExtensionFileLoader.create_module is self._ours:
            ExtensionFileLoader.create_module = self._before  # type: ignore[assignment, method-assign, unused-ignore]
        self._ours = None


_imports = _Imports()


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
        with _imports.lock:
            if self._on:
                return
            _core.begin_library_calls(self._modules)
            self._on = True
            _imports.users += 1
            if _imports.users == 1:
                _imports.wrap()
        _core.look_for_library_calls()  # for a module that was loaded between the two steps

    def end(self) -> None:
        """End the notes for this object; the last object that ends restores the import tables."""
        with _imports.lock:
            if not self._on:
                return
            self._on = False
            _imports.users -= 1
            if _imports.users == 0:
                _imports.unwrap()
            _core.end_library_calls()
