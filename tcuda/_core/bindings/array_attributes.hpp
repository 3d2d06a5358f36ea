// The attributes of arrays of the array library, read without a look-up by name.
#pragma once

#include <nanobind/nanobind.h>

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

// An attribute that all objects of a type have.
class Attribute {
public:
    // Raises TypeError if the attribute is not a descriptor.
    Attribute(nanobind::handle type, const char *name) : type_(nanobind::borrow(type)), descriptor_(type.attr(name)) {
        get_ = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(descriptor_.ptr()), Py_tp_descr_get));
        if (get_ == nullptr)
            throw nanobind::type_error("an attribute of the arrays is not a descriptor");
    }

    // New reference to the attribute of `object`, which is of the type exactly; null with a Python error set if that
    // fails.
    PyObject *of(PyObject *object) const { return get_(descriptor_.ptr(), object, type_.ptr()); }

private:
    nanobind::object type_, descriptor_;
    descrgetfunc get_;
};

// The arrays of the array library.
struct ArrayAttributes {
    ArrayAttributes(nanobind::handle array_type, nanobind::handle pointer_type)
        : array(nanobind::borrow(array_type)), pointer(nanobind::borrow(pointer_type)), dtype(array_type, "dtype"),
          shape(array_type, "shape"), strides(array_type, "strides"), c_contiguous(array_type, "_c_contiguous"), data(array_type, "data"),
          address(pointer_type, "ptr"), device(pointer_type, "device_id") {}

    const nanobind::object array, pointer; // the types of arrays, and of their attribute `data`
    const Attribute dtype, shape, strides, c_contiguous, data, address, device;
};

} // namespace tcuda
