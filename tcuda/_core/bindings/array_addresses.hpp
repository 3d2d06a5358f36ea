// The addresses of arrays of one type, read without a look-up of attributes by name.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "bindings/python_calls.hpp"

namespace tcuda {

class ArrayAddresses {
public:
    // `data` and `ptr` are the descriptors of array.data and array.data.ptr. `device_id` is that of
    // array.data.device_id, or None if all arrays are on one device. `reach` is called with the current device and the
    // device of an array on another one, and raises an exception if a kernel cannot use the array.
    ArrayAddresses(nanobind::type_object type, nanobind::object data, nanobind::object ptr, nanobind::object device_id,
                   nanobind::object reach)
        : type_(std::move(type)), data_(std::move(data)), ptr_(std::move(ptr)), device_id_(std::move(device_id)),
          reach_(std::move(reach)), get_data_(getter(data_)), get_ptr_(getter(ptr_)),
          get_device_(device_id_.is_none() ? nullptr : getter(device_id_)) {}

    bool has(PyObject *object) const { return reinterpret_cast<PyObject *>(Py_TYPE(object)) == type_.ptr(); }

    // Finds the address of `array`, which is of the type. `device` is the device of the kernel, or -1 if any device
    // will do. False with a Python error set if the array cannot be used there.
    bool find(PyObject *array, int device, std::uint64_t *address) const {
        PyObject *const data = get(get_data_, data_, array);
        if (data == nullptr)
            return false;
        const bool found = reached(data, device) && read(get(get_ptr_, ptr_, data), address);
        Py_DECREF(data);
        return found;
    }

private:
    static descrgetfunc getter(nanobind::handle descriptor) {
        const auto found = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(descriptor.ptr()), Py_tp_descr_get));
        if (found == nullptr)
            throw nanobind::type_error("ArrayAddresses() takes the descriptors of attributes");
        return found;
    }

    static PyObject *get(descrgetfunc function, nanobind::handle descriptor, PyObject *object) {
        return function(descriptor.ptr(), object, reinterpret_cast<PyObject *>(Py_TYPE(object)));
    }

    static bool read(PyObject *number, std::uint64_t *address) {
        if (number == nullptr)
            return false;
        *address = PyLong_AsUnsignedLongLongMask(number);
        Py_DECREF(number);
        return *address != static_cast<std::uint64_t>(-1) || !PyErr_Occurred();
    }

    bool reached(PyObject *data, int device) const {
        if (get_device_ == nullptr || device < 0)
            return true;
        const long long other = taken_integer(get(get_device_, device_id_, data));
        if (other == device)
            return true;
        if (other == -1 && PyErr_Occurred())
            return false;
        PyObject *const numbers[] = {PyLong_FromLong(device), PyLong_FromLongLong(other)};
        const bool both = numbers[0] != nullptr && numbers[1] != nullptr;
        const bool reached = both && done(PyObject_Vectorcall(reach_.ptr(), numbers, 2, nullptr));
        Py_XDECREF(numbers[0]);
        Py_XDECREF(numbers[1]);
        return reached;
    }

    const nanobind::object type_, data_, ptr_, device_id_, reach_;
    const descrgetfunc get_data_, get_ptr_, get_device_;
};

} // namespace tcuda
