#pragma once

#include <Python.h>

namespace tcuda {

// Adds the type DeviceScope to the module: the base of `tcuda.device`, and the context manager of the current device.
// False with a Python error set if that fails.
bool add_device_scope(PyObject *module);

} // namespace tcuda
