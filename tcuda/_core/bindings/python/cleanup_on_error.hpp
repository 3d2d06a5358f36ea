// A method that leaves nothing half done: after an exception, another function restores order.
#pragma once

#include <Python.h>

namespace tcuda {

// Creates the type; null with a Python error set if that fails. Called once, when the module is made.
PyObject *make_cleanup_on_error_type();

// A method of `type` that calls `function`. If `function` raises, the method calls `mend` with the first argument,
// again and again until `mend` returns. New reference; null with a Python error set if that fails.
PyObject *make_cleanup_on_error(PyObject *type, PyObject *function, PyObject *mend);

} // namespace tcuda
