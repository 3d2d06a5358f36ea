// A callable that calls a function without a Python frame, and replaces one kind of exception by another.
#pragma once

#include <Python.h>

namespace tcuda {

// Creates the type; null with a Python error set if that fails. Called once, when the module is made.
PyObject *make_translated_type();

// A callable of `type` that calls `function` with its own arguments. If `function` raises `failure`, the callable calls
// `raise_instead` with the exception and the arguments. `raise_instead` has to raise. New reference; null with a Python
// error set if that fails.
PyObject *make_translated(PyObject *type, PyObject *function, PyObject *failure, PyObject *raise_instead);

} // namespace tcuda
