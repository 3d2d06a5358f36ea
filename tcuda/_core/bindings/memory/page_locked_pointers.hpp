// CuPy's pointers to page-locked memory.
#pragma once

#include <Python.h>

namespace tcuda {

// An allocator for CuPy: takes a number of bytes, and returns `pointer(memory, 0)`. `ledger` is a Python object Ledger.
// Both functions return a new reference; null with a Python error set if that fails.
PyObject *make_page_locked_pointers_type();
PyObject *make_page_locked_pointers(PyObject *type, PyObject *ledger, PyObject *pointer);

} // namespace tcuda
