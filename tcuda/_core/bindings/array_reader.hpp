// Reads where the elements of an array are.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "bindings/array_layout.hpp"
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

    // Reads the members of arrays of the type in place, from now on.
    void use(ArrayLayout layout) { layout_.emplace(std::move(layout)); }
    // The layout of `array`; null if it is not known.
    const ArrayLayout *layout_of(PyObject *array) const {
        return layout_ && layout_->has(array) ? &*layout_ : nullptr;
    }

    // The layout of arrays of the type; null if it is not known.
    const ArrayLayout *layout() const { return layout_ ? &*layout_ : nullptr; }
    // The bytes of an element of `array`, whose layout is known; 0 with a Python error set if that fails.
    std::uint64_t itemsize_of(PyObject *array) const {
        std::uint64_t bytes = 0;
        return read_bytes(ArrayLayout::of(array), &bytes) ? last_itemsize_ : 0;
    }

    // Both return false with a Python error set if `array` is not an array.
    bool read_place(PyObject *array, ArrayMemory *memory) const {
        if (layout_of(array) != nullptr) {
            const ArrayLayout::Pointer &data = *ArrayLayout::of(array).data;
            memory->address = static_cast<std::uint64_t>(data.ptr);
            memory->device = data.device_id;
            return true;
        }
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
        if (layout_of(array) != nullptr) {
            const ArrayLayout::Array &members = ArrayLayout::of(array);
            memory->is_c_contiguous = members.is_c_contiguous != 0;
            return read_bytes(members, &memory->bytes);
        }
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
    bool read_bytes(const ArrayLayout::Array &members, std::uint64_t *bytes) const {
        if (members.dtype != last_dtype_.ptr()) {
            const long long size = taken_integer(PyObject_GetAttr(members.dtype, name_itemsize_.ptr()));
            if (size == -1 && PyErr_Occurred())
                return false;
            last_itemsize_ = static_cast<std::uint64_t>(size);
            last_dtype_ = nanobind::borrow(members.dtype);
        }
        *bytes = static_cast<std::uint64_t>(members.size) * last_itemsize_;
        return true;
    }

    static bool read_address(const Attribute &attribute, PyObject *object, std::uint64_t *address) {
        const Owned number(attribute.of(object));
        if (!number)
            return false;
        *address = PyLong_AsUnsignedLongLongMask(number.get());
        return *address != static_cast<std::uint64_t>(-1) || !PyErr_Occurred();
    }

    std::optional<ArrayLayout> layout_;
    const nanobind::str name_itemsize_{"itemsize"};
    mutable nanobind::object last_dtype_; // most arrays of a call have the dtype of the array before
    mutable std::uint64_t last_itemsize_ = 0;
    const Attribute data_, bytes_, c_contiguous_, ptr_, device_id_, mem_, start_;
};

} // namespace tcuda
