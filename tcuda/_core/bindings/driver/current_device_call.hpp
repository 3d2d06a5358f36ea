// A callable that returns the index of the current device without a Python frame.
#pragma once

#include <Python.h>

namespace tcuda {

// Creates the type; null with a Python error set if that fails. Called once, when the module is made.
PyObject *make_current_device_call_type();

// A callable of `type` that asks the driver, and calls `ask`, a function of the CUDA runtime, where only the runtime
// knows. New reference; null with a Python error set if that fails.
PyObject *make_current_device_call(PyObject *type, PyObject *ask);

} // namespace tcuda
