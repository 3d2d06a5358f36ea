// The Python exception that is set, held while other Python code runs.
#pragma once

#include <Python.h>

namespace tcuda {

// The exception that is set, which is no longer set then. New reference.
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

class Raised {
public:
    Raised() = default;
    Raised(const Raised &) = delete;
    Raised &operator=(const Raised &) = delete;
    ~Raised() { Py_XDECREF(value_); }

    // Takes the exception that is set, which is no longer set then. What was taken before becomes its context.
    void take() {
        PyObject *value = taken_exception();
        if (value == value_)
            Py_XDECREF(value);
        else if (value_ != nullptr)
            PyException_SetContext(value, value_); // takes over the reference
        value_ = value;
    }

    // Sets the exception that was taken. Whether there is one.
    bool set_again() {
        if (value_ == nullptr)
            return false;
#if PY_VERSION_HEX >= 0x030C0000
        PyErr_SetRaisedException(value_);
#else
        PyObject *type = reinterpret_cast<PyObject *>(Py_TYPE(value_));
        Py_INCREF(type);
        PyErr_Restore(type, value_, PyException_GetTraceback(value_));
#endif
        value_ = nullptr;
        return true;
    }

private:
    PyObject *value_ = nullptr;
};

// How often a step that must not be left out is tried. A signal handler that raises can interrupt the Python code of a
// step; a step that fails this often fails for a reason of its own.
constexpr int most_tries = 16;

} // namespace tcuda
