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

constexpr int most_contexts = 1000; // a program can make a circle of contexts

// Whether `exception` is `context` or has `context` in its chain of contexts.
inline bool has_context(PyObject *exception, PyObject *context) {
    for (int i = 0; exception != nullptr && i < most_contexts; ++i) {
        if (exception == context)
            return true;
        PyObject *const next = PyException_GetContext(exception);
        Py_XDECREF(next); // `exception` keeps its context
        exception = next;
    }
    return false;
}

// Returns the exception that has both in its chain of contexts: `later`, except if `later` is a context of `earlier`.
// Takes over the references.
inline PyObject *with_context(PyObject *later, PyObject *earlier) {
    if (has_context(earlier, later)) {
        Py_DECREF(later);
        return earlier;
    }
    PyObject *last = later;
    for (int i = 0; i < most_contexts; ++i) {
        PyObject *const next = PyException_GetContext(last);
        Py_XDECREF(next);
        if (next == nullptr || has_context(earlier, next))
            break;
        last = next;
    }
    PyException_SetContext(last, earlier);
    return later;
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
        if (value != nullptr)
            value_ = value_ == nullptr ? value : with_context(value, value_);
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
