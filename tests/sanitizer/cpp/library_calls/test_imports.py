"""Modules that are imported while the calls of libraries are noted."""

from __future__ import annotations

import subprocess
import sysconfig
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING

from support.core import for_tests
from tcuda.sanitizer._cuda.library_calls import LibraryCalls

if TYPE_CHECKING:
    from pathlib import Path

    from support.stand_in_library import StandIn

MODULE = r"""
#include <Python.h>
int cublasDscal_v2(void *handle, int n, const double *alpha, double *x, int incx);
static PyObject *scale(PyObject *self, PyObject *none) { return PyLong_FromLong(cublasDscal_v2(0, 1, 0, 0, 1)); }
static PyMethodDef methods[] = {{"scale", scale, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "NAME", "", 0, methods};
PyMODINIT_FUNC PyInit_NAME(void) { return PyModuleDef_Init(&module); }
"""


def build(stand_in: StandIn, folder: Path, name: str) -> ExtensionFileLoader:
    """Build an extension module that calls the library."""
    source, path = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(MODULE.replace("NAME", name))
    include = [f"-I{sysconfig.get_path('include')}"]
    runpath = [f"-Wl,-rpath,{stand_in.folder}"]
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-w", *include, "-o", str(path), str(source), str(stand_in.path), *runpath],
        check=True,
        capture_output=True,
    )
    return ExtensionFileLoader(name, str(path))


def scaled(loader: ExtensionFileLoader) -> int:
    """Import the module, and return how many of its two calls were noted."""
    spec = spec_from_file_location(loader.name, loader.path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    before = for_tests.counted_library_calls().get("cublasDscal_v2", 0)
    loader.exec_module(module)
    assert module.scale() == 0
    assert module.scale() == 0
    return for_tests.counted_library_calls().get("cublasDscal_v2", 0) - before


def test_an_imported_module_is_found(stand_in: StandIn, tmp_path: Path) -> None:
    """The first call after the import is noted; after the end, imports are as before."""
    before = ExtensionFileLoader.create_module
    calls, others = LibraryCalls(["imported_"]), LibraryCalls()
    calls.begin()
    calls.begin()
    others.begin()
    assert scaled(build(stand_in, tmp_path, "imported_first")) == 2
    others.end()
    assert scaled(build(stand_in, tmp_path, "imported_second")) == 2
    calls.end()
    calls.end()
    assert ExtensionFileLoader.create_module is before
    assert scaled(build(stand_in, tmp_path, "imported_third")) == 0
    assert for_tests.intercepted_library_calls() == []


def test_a_wrapper_of_somebody_else_stays(stand_in: StandIn, tmp_path: Path) -> None:
    """A program may wrap the import machinery while the calls are noted."""
    before = ExtensionFileLoader.create_module
    calls = LibraryCalls(["wrapped_"])
    calls.begin()
    ours = ExtensionFileLoader.create_module

    def wrapper(loader, spec):  # type: ignore[no-untyped-def]
        return ours(loader, spec)

    ExtensionFileLoader.create_module = wrapper  # type: ignore[method-assign]
    try:
        assert scaled(build(stand_in, tmp_path, "wrapped_first")) == 2
        calls.end()
        assert ExtensionFileLoader.create_module is wrapper
        assert scaled(build(stand_in, tmp_path, "wrapped_second")) == 0
        calls.begin()
        assert scaled(build(stand_in, tmp_path, "wrapped_third")) == 2
        calls.end()
        assert ExtensionFileLoader.create_module is wrapper
    finally:
        ExtensionFileLoader.create_module = before  # type: ignore[method-assign]
