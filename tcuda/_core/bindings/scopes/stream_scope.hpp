#pragma once

#include <Python.h>

namespace tcuda {

// Adds the type StreamScope to the module: the base of `tcuda.StreamContext`, and the context manager of the current
// stream. False with a Python error set if that fails.
bool add_stream_scope(PyObject *module);

} // namespace tcuda
