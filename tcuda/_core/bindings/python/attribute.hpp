// An attribute that all objects of a type have. The attribute is read and set without a look-up by name.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "threads/unwinding.hpp"

namespace tcuda {

class Attribute {
public:
    // Raises TypeError if the object is not a descriptor.
    explicit Attribute(nanobind::object descriptor)
        : descriptor_(std::move(descriptor)),
          get_(reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(descriptor_.ptr()), Py_tp_descr_get))),
          set_(reinterpret_cast<descrsetfunc>(PyType_GetSlot(Py_TYPE(descriptor_.ptr()), Py_tp_descr_set))) {
        if (get_ == nullptr)
            throw nanobind::type_error("an attribute of the arrays must be a descriptor");
    }

    // New reference to the attribute of `object`; null with a Python error set if that fails.
    PyObject *of(PyObject *object) const {
        Unwinding unwinding; // the linker cannot guard a call through a pointer
        PyObject *const found = get_(descriptor_.ptr(), object, reinterpret_cast<PyObject *>(Py_TYPE(object)));
        unwinding.dismiss();
        return found;
    }

    // Sets the attribute of `object`, which must not be read-only. False with a Python error set if that fails.
    bool set(PyObject *object, PyObject *value) const {
        Unwinding unwinding;
        const int status = set_(descriptor_.ptr(), object, value);
        unwinding.dismiss();
        return status == 0;
    }

private:
    nanobind::object descriptor_;
    descrgetfunc get_;
    descrsetfunc set_;
};

} // namespace tcuda
