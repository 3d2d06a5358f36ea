// Reads where the elements of an array are.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "bindings/python/attribute.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"

namespace tcuda {

// The memory of an array.
struct ArrayMemory {
    std::uint64_t address = 0, bytes = 0;
    int device = 0;
    bool is_c_contiguous = false;
};

class ArrayReader {
public:
    // The types of the arrays, and of the pointers to their memory.
    ArrayReader(nanobind::type_object type, nanobind::type_object pointer)
        : type_(type), data_(type.attr("data")), bytes_(type.attr("nbytes")), c_contiguous_(type.attr("_c_contiguous")),
          ptr_(pointer.attr("ptr")), device_id_(pointer.attr("device_id")) {}

    // Whether the object is an array of exactly the type.
    bool has(PyObject *object) const { return reinterpret_cast<PyObject *>(Py_TYPE(object)) == type_.ptr(); }

    // Whether the object is an array of the type or of a type that is derived from it.
    bool is_array(PyObject *object) const {
        return has(object) || PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject *>(type_.ptr())) != 0;
    }

    // The pointer to the memory of `array`. New reference; null with a Python error set if `array` is not an array.
    PyObject *pointer_of(PyObject *array) const { return data_.of(array); }

    // The functions below return false with a Python error set if the object is of another type.

    // Reads where `pointer` points to.
    bool read_pointer(PyObject *pointer, ArrayMemory *memory) const {
        const long long device = taken_integer(device_id_.of(pointer));
        if (device == -1 && PyErr_Occurred())
            return false;
        memory->device = static_cast<int>(device);
        const Owned address(ptr_.of(pointer));
        if (!address)
            return false;
        memory->address = PyLong_AsUnsignedLongLongMask(address.get());
        return memory->address != static_cast<std::uint64_t>(-1) || !PyErr_Occurred();
    }
    bool read_place(PyObject *array, ArrayMemory *memory) const {
        const Owned pointer(pointer_of(array));
        return pointer && read_pointer(pointer.get(), memory);
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

private:
    const nanobind::object type_;
    const Attribute data_, bytes_, c_contiguous_, ptr_, device_id_;
};

} // namespace tcuda
