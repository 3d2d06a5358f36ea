#pragma once

#include <Python.h>

namespace tcuda {

// Adds the type EventFinalizer to the module: a base of `tcuda.Event`. When an event dies that has a CUDA event, the
// finalizer calls `_release()` of the event. An event without a CUDA event enters no Python frame. False with a Python
// error set if that fails.
bool add_event_finalizer(PyObject *module);

} // namespace tcuda
