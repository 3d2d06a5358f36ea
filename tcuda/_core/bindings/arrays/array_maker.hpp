// Makes the arrays of the array library.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"
#include "threads/unwinding.hpp"

namespace tcuda {

class ArrayMaker {
public:
    // An array is made by type(shape, dtype, memory). If `initialize` is not None, `base`, a base of the type, makes
    // the object, and initialize(array, shape, dtype, memory, None, None), without strides and order, makes the object
    // an array. This way leaves out the functions of the library that are written in Python.
    ArrayMaker(nanobind::object type, nanobind::object base, nanobind::object initialize)
        : type_(std::move(type)), initialize_(std::move(initialize)), no_arguments_(nanobind::steal(PyTuple_New(0))) {
        if (!initialize_.is_none())
            new_ = reinterpret_cast<newfunc>(PyType_GetSlot(reinterpret_cast<PyTypeObject *>(base.ptr()), Py_tp_new));
    }

    // Makes an array in `memory`, or in new memory. New reference; null with a Python error set if that fails.
    PyObject *make(PyObject *shape, PyObject *dtype, PyObject *memory = Py_None) const {
        if (new_ == nullptr) {
            PyObject *const arguments[] = {shape, dtype, memory};
            return PyObject_Vectorcall(type_.ptr(), arguments, 3, nullptr);
        }
        Owned array(new_array());
        // With an order, the library would read the name of the order.
        PyObject *const arguments[] = {array.get(), shape, dtype, memory, Py_None, Py_None};
        if (!array || !done(PyObject_Vectorcall(initialize_.ptr(), arguments, 6, nullptr)))
            return nullptr;
        return array.release();
    }

private:
    PyObject *new_array() const {
        Unwinding unwinding; // the linker cannot guard a call through a pointer
        PyObject *const array = new_(reinterpret_cast<PyTypeObject *>(type_.ptr()), no_arguments_.ptr(), nullptr);
        unwinding.dismiss();
        return array;
    }

    const nanobind::object type_, initialize_, no_arguments_;
    newfunc new_ = nullptr;
};

} // namespace tcuda
