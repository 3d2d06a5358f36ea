// A callable that hands on its arguments, and turns one kind of exception into another, without a Python frame.
#pragma once

#include <Python.h>

namespace tcuda {

// Creates the type; null with a Python error set if that fails. Called once, when the module is made.
PyObject *make_translated_type();

// A callable of `type` that calls `function` and, if that raises `failure`, `raise_instead` with the exception and the
// arguments, which has to raise. New reference; null with a Python error set if that fails.
PyObject *make_translated(PyObject *type, PyObject *function, PyObject *failure, PyObject *raise_instead);

} // namespace tcuda
