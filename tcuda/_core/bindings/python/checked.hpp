// Results of Python's C functions.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Takes over a new reference. Raises the Python error that is set if the reference is null.
template <typename Object = nanobind::object> Object checked(PyObject *made) {
    if (made == nullptr)
        nanobind::raise_python_error();
    return nanobind::steal<Object>(made);
}

} // namespace tcuda
