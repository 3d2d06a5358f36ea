// The Python exception that is set, kept while other Python code runs.
#pragma once

#include <Python.h>

#include <utility>

namespace tcuda {

// Takes the exception that is set: it is no longer set. New reference; null if no exception is set.
inline PyObject *taken_exception() {
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != nullptr)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

// Sets `exception`, and takes over the reference.
inline void set_exception(PyObject *exception) {
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(exception);
#else
    auto *const type = reinterpret_cast<PyObject *>(Py_TYPE(exception));
    Py_INCREF(type);
    PyErr_Restore(type, exception, PyException_GetTraceback(exception));
#endif
}

class Raised {
public:
    Raised() = default;
    Raised(const Raised &) = delete;
    Raised &operator=(const Raised &) = delete;
    ~Raised() { Py_XDECREF(value_); }

    // Takes the exception that is set. An exception that was taken before becomes the context of this one.
    void take() {
        PyObject *const value = taken_exception();
        if (value == value_)
            Py_XDECREF(value);
        else if (value_ != nullptr)
            PyException_SetContext(value, value_); // takes over the reference
        value_ = value;
    }

    // Sets the exception that was taken. False if none was taken.
    bool set_again() {
        if (value_ == nullptr)
            return false;
        set_exception(std::exchange(value_, nullptr));
        return true;
    }

private:
    PyObject *value_ = nullptr;
};

} // namespace tcuda
