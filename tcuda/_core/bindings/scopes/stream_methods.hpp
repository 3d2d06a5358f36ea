#pragma once

#include <Python.h>

namespace tcuda {

// Adds the type StreamMethods to the module: a base of `tcuda.Stream`, which lets a stream itself be a scope. False
// with a Python error set if that fails.
bool add_stream_methods(PyObject *module);

} // namespace tcuda
