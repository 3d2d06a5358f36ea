// A jiterator function that Python can call without a Python frame.
#pragma once

#include <Python.h>

namespace tcuda {

// New reference; null with a Python error set if that fails.
PyObject *make_elementwise_call_type();

// The object computes a call if `state`, an ElementwiseState, has learned the kernels from an earlier call that was
// alike. All other calls go to `fallback`.
PyObject *make_elementwise_call(PyObject *type, PyObject *fallback, PyObject *state);

} // namespace tcuda
