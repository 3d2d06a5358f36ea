// A method that leaves nothing half done: after an exception, another function puts things in order.
#pragma once

#include <Python.h>

namespace tcuda {

// Creates the type; null with a Python error set if that fails. Called once, when the module is made.
PyObject *make_mended_type();

// A method of `type` that calls `function` and, if that raises, `mend` with the first argument, again and again until
// that returns. New reference; null with a Python error set if that fails.
PyObject *make_mended(PyObject *type, PyObject *function, PyObject *mend);

} // namespace tcuda
