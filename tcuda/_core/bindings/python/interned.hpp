// Strings of Python that are made once: the keys of dictionaries.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

inline nanobind::object interned(const char *text) {
    PyObject *const made = PyUnicode_InternFromString(text);
    if (made == nullptr)
        nanobind::raise_python_error();
    return nanobind::steal(made);
}

} // namespace tcuda
