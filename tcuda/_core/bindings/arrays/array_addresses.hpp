// The addresses of arrays of one type, read without a look-up of attributes by name.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "bindings/python/attribute.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"

namespace tcuda {

class ArrayAddresses {
public:
    // `data` and `ptr` are the descriptors of array.data and array.data.ptr. `device_id` is that of
    // array.data.device_id, or None if all arrays are on one device. `reach` is called with the current device and the
    // device of an array on another one, and raises an exception if a kernel cannot use the array.
    ArrayAddresses(nanobind::type_object type, nanobind::object data, nanobind::object ptr, nanobind::object device_id,
                   nanobind::object reach)
        : type_(std::move(type)), data_(std::move(data)), ptr_(std::move(ptr)), reach_(std::move(reach)) {
        if (!device_id.is_none())
            device_id_.emplace(std::move(device_id));
    }

    bool has(PyObject *object) const { return reinterpret_cast<PyObject *>(Py_TYPE(object)) == type_.ptr(); }
    PyObject *type() const { return type_.ptr(); }

    // Finds the address of `array`, which is of the type. `device` is the device of the kernel, or -1 if the device of
    // the array does not matter. False with a Python error set if the kernel cannot use the array.
    bool find(PyObject *array, int device, std::uint64_t *address) const {
        const Owned data(data_.of(array));
        if (!data)
            return false;
        const long long other = other_device(data.get(), device);
        if (other != none && (PyErr_Occurred() || !reached(device, other)))
            return false;
        return read(data.get(), address);
    }

    // Like find(), for a kernel that uses only arrays of its own device. False without a Python error if `array` is on
    // another device.
    bool find_on(int device, PyObject *array, std::uint64_t *address) const {
        const Owned data(data_.of(array));
        return data && other_device(data.get(), device) == none && read(data.get(), address);
    }

private:
    static constexpr long long none = -2;

    // The device of the memory `data`; `none` if this device is `device`, or if devices are not compared. The result is
    // not `none` if a Python error is set.
    long long other_device(PyObject *data, int device) const {
        if (!device_id_ || device < 0)
            return none;
        const long long found = taken_integer(device_id_->of(data));
        return found == device ? none : found;
    }

    bool read(PyObject *data, std::uint64_t *address) const {
        const Owned number(ptr_.of(data));
        if (!number)
            return false;
        *address = PyLong_AsUnsignedLongLongMask(number.get());
        return *address != static_cast<std::uint64_t>(-1) || !PyErr_Occurred();
    }

    bool reached(int device, long long other) const {
        const Owned first(PyLong_FromLong(device)), second(PyLong_FromLongLong(other));
        PyObject *const numbers[] = {first.get(), second.get()};
        return first && second && done(PyObject_Vectorcall(reach_.ptr(), numbers, 2, nullptr));
    }

    const nanobind::object type_;
    const Attribute data_, ptr_;
    std::optional<Attribute> device_id_;
    const nanobind::object reach_;
};

} // namespace tcuda
