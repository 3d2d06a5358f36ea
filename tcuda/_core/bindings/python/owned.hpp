// A reference to a Python object that ends with its scope.
#pragma once

#include <Python.h>

namespace tcuda {

// An owned reference; null if there is none.
class Owned {
public:
    explicit Owned(PyObject *object = nullptr) : object_(object) {}
    ~Owned() { Py_XDECREF(object_); }
    Owned(const Owned &) = delete;
    Owned &operator=(const Owned &) = delete;

    explicit operator bool() const { return object_ != nullptr; }
    PyObject *get() const { return object_; }
    void set(PyObject *object) {
        PyObject *const before = object_;
        object_ = object;
        Py_XDECREF(before);
    }
    PyObject *release() {
        PyObject *const released = object_;
        object_ = nullptr;
        return released;
    }

private:
    PyObject *object_;
};

} // namespace tcuda
