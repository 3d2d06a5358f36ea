// The way into a stream: the stream and its device become current.
#pragma once

#include <Python.h>

namespace tcuda {

// The streams that were current before, as borrowed references.
struct PreviousStreams {
    PyObject *source; // on the device that was current
    PyObject *target; // on the device of the entered stream
    long long device; // the device that was current
};

// Makes `stream` current in a scope of `owner`. False with a Python error set, and nothing changed, if that fails.
bool enter_stream(PyObject *owner, PyObject *stream, PreviousStreams *previous);

// Called once, when the module is made. False with a Python error set if that fails.
bool prepare_stream_entry();

} // namespace tcuda
