// The members of CuPy's array objects, read and written in place.
//
// CuPy has no C functions for its arrays. Reading four attributes of an array takes longer than copying a small array,
// and CuPy's own initialisation of a view takes three times as long as this one. So transfers of hundreds of small
// arrays use the members themselves. CuPy promises no layout: the layout below is compared with sample arrays first, and
// is not used if anything differs.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bindings/owned.hpp"
#include "threads/unwinding.hpp"

namespace tcuda {

class ArrayLayout {
public:
    struct Pointer {
        PyObject head;
        const void *functions;
        std::intptr_t ptr;
        int device_id;
        PyObject *mem;
    };
    struct Array {
        PyObject head;
        const void *functions;
        PyObject *weak_references;
        Py_ssize_t size;
        std::vector<Py_ssize_t> shape, strides;
        int is_c_contiguous, is_f_contiguous, has_32_bit_indices;
        PyObject *dtype;
        Pointer *data;
        PyObject *base;
    };

    // `base` is the base of `type` that is written in C, and `pointer` is the type of array.data.
    ArrayLayout(nanobind::handle type, nanobind::handle base, nanobind::handle pointer)
        : type_(reinterpret_cast<PyTypeObject *>(type.ptr())),
          pointer_type_(reinterpret_cast<PyTypeObject *>(pointer.ptr())), no_arguments_(nanobind::steal(PyTuple_New(0))),
          new_array_(reinterpret_cast<newfunc>(PyType_GetSlot(reinterpret_cast<PyTypeObject *>(base.ptr()), Py_tp_new))),
          new_pointer_(reinterpret_cast<newfunc>(PyType_GetSlot(pointer_type_, Py_tp_new))) {}

    // Whether `array` is an array of exactly the type, with memory.
    bool has(PyObject *array) const {
        return Py_TYPE(array) == type_ && reinterpret_cast<PyObject *>(of(array).data) != Py_None;
    }
    static const Array &of(PyObject *array) { return *reinterpret_cast<const Array *>(array); }

    // Whether the object is a pointer to memory, of the type or of a subclass.
    bool is_pointer(PyObject *object) const { return PyObject_TypeCheck(object, pointer_type_) != 0; }
    static const Pointer &pointer_of(PyObject *object) { return *reinterpret_cast<const Pointer *>(object); }

    // The functions that make arrays return a new reference, or null with a Python error set. The arrays are in C
    // order, as `like` is.

    // A view of the memory of `flat`, at `address`, with the shape and the dtype of `like`.
    PyObject *view(const Pointer &flat, std::uint64_t address, const Array &like) const {
        Owned pointer(pointer_to(flat, address)), made(pointer ? created(new_array_, type_) : nullptr);
        if (!made)
            return nullptr;
        auto &array = *reinterpret_cast<Array *>(made.get());
        array.size = like.size;
        array.shape = like.shape;
        array.strides = like.strides;
        array.is_c_contiguous = like.is_c_contiguous;
        array.is_f_contiguous = like.is_f_contiguous;
        array.has_32_bit_indices = like.has_32_bit_indices;
        set(array.dtype, like.dtype);
        set(reinterpret_cast<PyObject *&>(array.data), pointer.get());
        return made.release();
    }

    // An array in the memory at `pointer`, with the dtype and the shape of `like`, which has elements, except for the
    // length of the first axis. A negative length means that of `like`.
    PyObject *array(PyObject *pointer, const Array &like, Py_ssize_t length, std::size_t itemsize) const {
        Owned made(created(new_array_, type_));
        if (!made)
            return nullptr;
        auto &array = *reinterpret_cast<Array *>(made.get());
        set_form(array, like, length, itemsize);
        const auto bytes = static_cast<std::uint64_t>(array.size) * itemsize;
        array.has_32_bit_indices = bytes <= std::uint64_t(1) << 31; // CuPy's own limit
        set(array.dtype, like.dtype);
        set(reinterpret_cast<PyObject *&>(array.data), pointer);
        return made.release();
    }

    // The view of `length` elements of the first axis of `source`, which has elements.
    PyObject *part(PyObject *source, Py_ssize_t begin, Py_ssize_t length, std::size_t itemsize) const {
        const Array &like = of(source);
        const auto row = static_cast<std::size_t>(like.size / like.shape[0]) * itemsize;
        const auto address = static_cast<std::uint64_t>(like.data->ptr) + static_cast<std::size_t>(begin) * row;
        const Owned pointer(pointer_to(*like.data, address));
        Owned made(pointer ? array(pointer.get(), like, length, itemsize) : nullptr);
        if (!made)
            return nullptr;
        auto &view = *reinterpret_cast<Array *>(made.get());
        view.has_32_bit_indices = like.has_32_bit_indices;
        set(view.base, like.base == Py_None ? source : like.base);
        return made.release();
    }

    // Whether the sample `array`, and a view that is made like the array, have this layout. `made` is a view that the
    // library has made of the same memory, with the same shape and dtype.
    bool fits(PyObject *array, PyObject *made) const {
        if (new_array_ == nullptr || new_pointer_ == nullptr || !has_size(type_, sizeof(Array)) ||
            !has_size(pointer_type_, sizeof(Pointer)) || !has(array) || !has(made))
            return false;
        const Array &sample = of(array);
        const nanobind::handle object(array);
        const auto data = object.attr("data");
        if (sample.data != reinterpret_cast<Pointer *>(data.ptr()) || Py_TYPE(data.ptr()) != pointer_type_ ||
            sample.data->mem != data.attr("mem").ptr() || sample.dtype != object.attr("dtype").ptr() ||
            sample.base != Py_None || sample.size != nanobind::cast<Py_ssize_t>(object.attr("size")) ||
            sample.data->ptr != nanobind::cast<std::intptr_t>(data.attr("ptr")) ||
            sample.data->device_id != nanobind::cast<int>(data.attr("device_id")) ||
            !equals(sample.shape, object.attr("shape")) || !equals(sample.strides, object.attr("strides")) ||
            (sample.is_c_contiguous != 0) != nanobind::cast<bool>(object.attr("_c_contiguous")) ||
            (sample.is_f_contiguous != 0) != nanobind::cast<bool>(object.attr("_f_contiguous")))
            return false;
        const auto itemsize = nanobind::cast<std::size_t>(object.attr("dtype").attr("itemsize"));
        const Owned view(this->view(*sample.data, static_cast<std::uint64_t>(sample.data->ptr), sample));
        const Owned array_of_pointer(view ? this->array(data.ptr(), sample, -1, itemsize) : nullptr);
        if (!array_of_pointer)
            nanobind::raise_python_error();
        return same_members(of(view.get()), of(made)) &&
               (sample.size == 0 || same_members(of(array_of_pointer.get()), of(made))) &&
               std::memcmp(&of(view.get()).data->functions, &of(made).data->functions,
                           sizeof(Pointer) - offsetof(Pointer, functions)) == 0;
    }

private:
    PyObject *created(newfunc create, PyTypeObject *type) const {
        Unwinding unwinding; // the linker cannot guard a call through a pointer
        PyObject *const made = create(type, no_arguments_.ptr(), nullptr);
        unwinding.dismiss();
        return made;
    }

    PyObject *pointer_to(const Pointer &memory, std::uint64_t address) const {
        PyObject *const pointer = created(new_pointer_, pointer_type_);
        if (pointer == nullptr)
            return nullptr;
        auto &data = *reinterpret_cast<Pointer *>(pointer);
        data.ptr = static_cast<std::intptr_t>(address);
        data.device_id = memory.device_id;
        set(data.mem, memory.mem);
        return pointer;
    }

    // Sets the members that follow from the shape.
    static void set_form(Array &array, const Array &like, Py_ssize_t length, std::size_t itemsize) {
        array.shape = like.shape;
        if (length >= 0)
            array.shape[0] = length;
        array.strides.resize(array.shape.size());
        array.size = 1;
        int long_axes = 0;
        for (std::size_t axis = array.shape.size(); axis-- > 0;) {
            array.strides[axis] = array.size * static_cast<Py_ssize_t>(itemsize);
            array.size *= array.shape[axis];
            long_axes += array.shape[axis] > 1;
        }
        array.is_c_contiguous = 1;
        array.is_f_contiguous = long_axes <= 1;
    }

    static void set(PyObject *&member, PyObject *object) {
        PyObject *const before = member;
        Py_INCREF(object);
        member = object;
        Py_XDECREF(before);
    }

    static bool has_size(PyTypeObject *type, std::size_t size) {
        const auto found = nanobind::handle(reinterpret_cast<PyObject *>(type)).attr("__basicsize__");
        return nanobind::cast<std::size_t>(found) == size;
    }

    static bool equals(const std::vector<Py_ssize_t> &numbers, nanobind::handle tuple) {
        if (static_cast<Py_ssize_t>(numbers.size()) != PyTuple_Size(tuple.ptr()))
            return false;
        for (std::size_t place = 0; place < numbers.size(); ++place)
            if (numbers[place] !=
                PyLong_AsLongLong(PyTuple_GetItem(tuple.ptr(), static_cast<Py_ssize_t>(place))))
                return false;
        return true;
    }

    // Compares the bytes between the members that own memory, so that a member that is not known here is noticed.
    static bool same_members(const Array &one, const Array &other) {
        const auto bytes = [](const Array &array, std::size_t place) {
            return reinterpret_cast<const char *>(&array) + place;
        };
        constexpr std::size_t head = offsetof(Array, functions), shape = offsetof(Array, shape),
                              flags = offsetof(Array, is_c_contiguous), data = offsetof(Array, data),
                              base = offsetof(Array, base);
        return one.shape == other.shape && one.strides == other.strides &&
               std::memcmp(bytes(one, head), bytes(other, head), shape - head) == 0 &&
               std::memcmp(bytes(one, flags), bytes(other, flags), data - flags) == 0 &&
               std::memcmp(bytes(one, base), bytes(other, base), sizeof(Array) - base) == 0;
    }

    PyTypeObject *const type_, *const pointer_type_; // the binding keeps the types alive
    const nanobind::object no_arguments_;
    const newfunc new_array_, new_pointer_;
};

} // namespace tcuda
