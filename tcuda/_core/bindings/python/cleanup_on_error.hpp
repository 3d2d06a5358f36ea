// Methods that mind the exceptions of signal handlers: after an exception, another function restores order, or the
// exception is raised where Python does not drop it.
#pragma once

#include <Python.h>

namespace tcuda {

// Creates the type; null with a Python error set if that fails. Called once, when the module is made.
PyObject *make_cleanup_on_error_type();

// A method of `type` that calls `function`. If `function` raises, the method calls `mend` with the first argument,
// again and again until `mend` returns. New reference; null with a Python error set if that fails.
PyObject *make_cleanup_on_error(PyObject *type, PyObject *function, PyObject *mend);

// A destructor of `type` that calls `function`. Python drops the exceptions of a destructor. If `function` raises an
// exception that is no error of its own, such as KeyboardInterrupt, the code that runs next raises the exception. New
// reference; null with a Python error set if that fails.
PyObject *make_finalizing(PyObject *type, PyObject *function);

} // namespace tcuda
