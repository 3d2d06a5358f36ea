// Reads where the elements of an array are.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "bindings/attribute.hpp"
#include "bindings/owned.hpp"
#include "bindings/python_calls.hpp"

namespace tcuda {

// The memory of an array.
struct ArrayMemory {
    std::uint64_t address = 0, bytes = 0;
    int device = 0;
    bool is_c_contiguous = false;
};

class ArrayReader {
public:
    // The types of the arrays, of the pointers to their memory, and of the objects that own memory.
    ArrayReader(nanobind::type_object type, nanobind::type_object pointer, nanobind::type_object memory)
        : data_(type.attr("data")), bytes_(type.attr("nbytes")), c_contiguous_(type.attr("_c_contiguous")),
          ptr_(pointer.attr("ptr")), device_id_(pointer.attr("device_id")), mem_(pointer.attr("mem")),
          start_(memory.attr("ptr")) {}

    // Both return false with a Python error set if `array` is not an array.
    bool read_place(PyObject *array, ArrayMemory *memory) const {
        const Owned data(data_.of(array));
        if (!data)
            return false;
        const long long device = taken_integer(device_id_.of(data.get()));
        if (device == -1 && PyErr_Occurred())
            return false;
        memory->device = static_cast<int>(device);
        return read_address(ptr_, data.get(), &memory->address);
    }
    bool read(PyObject *array, ArrayMemory *memory) const {
        if (!read_place(array, memory))
            return false;
        const long long bytes = taken_integer(bytes_.of(array));
        if (bytes == -1 && PyErr_Occurred())
            return false;
        memory->bytes = static_cast<std::uint64_t>(bytes);
        const Owned flag(c_contiguous_.of(array));
        memory->is_c_contiguous = flag.get() == Py_True;
        return static_cast<bool>(flag);
    }

    // The object that owns the memory of `array`, and the address of its memory. New reference; null with a Python
    // error set if that fails.
    PyObject *owner_of(PyObject *array, std::uint64_t *start) const {
        const Owned data(data_.of(array));
        Owned owner(data ? mem_.of(data.get()) : nullptr);
        return owner && read_address(start_, owner.get(), start) ? owner.release() : nullptr;
    }

private:
    static bool read_address(const Attribute &attribute, PyObject *object, std::uint64_t *address) {
        const Owned number(attribute.of(object));
        if (!number)
            return false;
        *address = PyLong_AsUnsignedLongLongMask(number.get());
        return *address != static_cast<std::uint64_t>(-1) || !PyErr_Occurred();
    }

    const Attribute data_, bytes_, c_contiguous_, ptr_, device_id_, mem_, start_;
};

} // namespace tcuda
