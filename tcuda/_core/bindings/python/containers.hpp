// Empty containers of Python. nanobind's own constructors of them do not say that there is no memory.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

inline nanobind::dict new_dict() {
    PyObject *const made = PyDict_New();
    if (made == nullptr)
        nanobind::raise_python_error();
    return nanobind::steal<nanobind::dict>(made);
}

inline nanobind::list new_list() {
    PyObject *const made = PyList_New(0);
    if (made == nullptr)
        nanobind::raise_python_error();
    return nanobind::steal<nanobind::list>(made);
}

} // namespace tcuda
