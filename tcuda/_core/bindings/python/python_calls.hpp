// Calls of Python functions, and the conversion of their results for C++.
#pragma once

#include <Python.h>

namespace tcuda {

// Both return a new reference, or null with a Python error set.
inline PyObject *call(PyObject *function) { return PyObject_Vectorcall(function, nullptr, 0, nullptr); }

inline PyObject *call(PyObject *function, PyObject *argument) {
    PyObject *const arguments[] = {argument};
    return PyObject_Vectorcall(function, arguments, 1, nullptr);
}

// Drops `result`. False with a Python error set if `result` is null.
inline bool done(PyObject *result) {
    Py_XDECREF(result);
    return result != nullptr;
}

// Drops `result`, and returns its value as an integer. Returns -1 with a Python error set if `result` is null or not
// an integer.
inline long long taken_integer(PyObject *result) {
    if (result == nullptr)
        return -1;
    const long long value = PyLong_AsLongLong(result);
    Py_DECREF(result);
    return value;
}

} // namespace tcuda
