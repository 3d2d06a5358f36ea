// The functions of NumPy's C interface that the core calls. The core is built without NumPy.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

#include "threads/unwinding.hpp"

namespace tcuda {

class NumpyFunctions {
public:
    // `table` is the capsule `_ARRAY_API` of NumPy, and `array` is the class of its arrays. Raises the Python error if
    // the capsule is another one.
    NumpyFunctions(nanobind::handle table, nanobind::object array) : array_(std::move(array)) {
        auto *const functions = static_cast<void **>(PyCapsule_GetPointer(table.ptr(), nullptr));
        if (functions == nullptr)
            nanobind::raise_python_error();
        new_array_ = reinterpret_cast<NewArray *>(functions[new_array_place]);
        set_base_ = reinterpret_cast<SetBase *>(functions[set_base_place]);
    }

    // An array in row-major order over the memory at `data`, which belongs to `owner`. New reference; null with a
    // Python error set if that fails.
    PyObject *array_over(void *data, PyObject *owner, PyObject *dtype, int axes, const Py_ssize_t *lengths) const {
        Unwinding unwinding; // the linker cannot guard calls through pointers
        Py_INCREF(dtype); // NumPy takes over this reference, and that to the owner
        auto *const type = reinterpret_cast<PyTypeObject *>(array_.ptr());
        PyObject *made = new_array_(type, dtype, axes, lengths, nullptr, data, row_major_and_writable, nullptr);
        if (made != nullptr) {
            Py_INCREF(owner);
            if (set_base_(made, owner) != 0)
                Py_CLEAR(made);
        }
        unwinding.dismiss();
        return made;
    }

private:
    // The places in the table are a part of NumPy's binary interface.
    using NewArray = PyObject *(PyTypeObject *type, PyObject *dtype, int axes, const Py_ssize_t *lengths,
                                const Py_ssize_t *strides, void *data, int flags, PyObject *like);
    using SetBase = int(PyObject *array, PyObject *base);
    static constexpr std::size_t new_array_place = 94; // PyArray_NewFromDescr
    static constexpr std::size_t set_base_place = 282; // PyArray_SetBaseObject
    static constexpr int row_major_and_writable = 0x0001 | 0x0100 | 0x0400; // NPY_ARRAY_CARRAY

    nanobind::object array_;
    NewArray *new_array_ = nullptr;
    SetBase *set_base_ = nullptr;
};

} // namespace tcuda
