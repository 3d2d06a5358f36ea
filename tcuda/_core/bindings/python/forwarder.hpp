// A function that calls another function, which can be replaced.
#pragma once

#include <Python.h>

namespace tcuda {

// The attribute `target` is the other function. Both functions return a new reference; null with a Python error set if
// that fails.
PyObject *make_forwarder_type();
PyObject *make_forwarder(PyObject *type, PyObject *target);

} // namespace tcuda
