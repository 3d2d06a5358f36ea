#include "bindings/memory/page_locked_arrays.hpp"

#include "bindings/memory/page_locked_memory.hpp"
#include "bindings/python/checked.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

constexpr Py_ssize_t most_axes = 32; // each version of NumPy takes as many
constexpr long long most_bytes = 1ll << 62;

// Multiplies `bytes` by a length. False if `length` is no exact integer, or if the product is not between 1 and
// most_bytes.
bool multiply(PyObject *length, Py_ssize_t *value, long long *bytes) {
    if (!PyLong_CheckExact(length))
        return false;
    *value = PyLong_AsSsize_t(length);
    if (*value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return !__builtin_mul_overflow(*bytes, *value, bytes) && *bytes > 0 && *bytes < most_bytes;
}

// Whether the same object always means the same dtype.
bool is_constant(PyObject *passed, PyObject *dtype) {
    if (PyUnicode_CheckExact(passed) || passed == dtype || passed == reinterpret_cast<PyObject *>(&PyFloat_Type))
        return true;
    const Owned type(PyObject_GetAttrString(dtype, "type"));
    return type.get() == passed;
}

} // namespace

// Finds the dtype that `passed` means. False with a Python error set if there is none.
bool PageLockedArrays::find(nb::handle passed) {
    if (last_.passed.is(passed))
        return true;
    Kind found;
    PyObject *const arguments[] = {passed.ptr()};
    found.dtype = nb::steal(PyObject_Vectorcall(dtype_.ptr(), arguments, 1, nullptr));
    if (!found.dtype.is_valid())
        return false;
    const Owned objects(PyObject_GetAttrString(found.dtype.ptr(), "hasobject"));
    if (!objects)
        return false;
    found.itemsize =
        objects.get() == Py_False ? taken_integer(PyObject_GetAttrString(found.dtype.ptr(), "itemsize")) : 0;
    if (found.itemsize < 0)
        return false;
    if (is_constant(passed.ptr(), found.dtype.ptr()))
        found.passed = nb::borrow(passed);
    PyErr_Clear();
    std::swap(last_, found);
    return true;
}

nb::object PageLockedArrays::make(nb::handle shape, nb::handle passed) {
    if (!find(passed))
        nb::raise_python_error();
    const nb::object dtype = last_.dtype; // a finalizer may make another array meanwhile
    long long bytes = last_.itemsize;
    Py_ssize_t lengths[most_axes];
    int axes = 0;
    if (PyTuple_CheckExact(shape.ptr())) {
        const Py_ssize_t count = PyTuple_Size(shape.ptr());
        if (count > most_axes)
            return nb::none();
        for (; axes < count; ++axes)
            if (!multiply(PyTuple_GetItem(shape.ptr(), axes), &lengths[axes], &bytes))
                return nb::none();
    } else if (!multiply(shape.ptr(), &lengths[axes++], &bytes)) {
        return nb::none();
    }
    if (bytes <= 0)
        return nb::none();
    void *address;
    const Owned memory(make_page_locked(ledger_.ptr(), static_cast<std::size_t>(bytes), &address));
    return checked(memory ? numpy_.array_over(address, memory.get(), dtype.ptr(), axes, lengths) : nullptr);
}

void bind_page_locked_arrays(nb::module_ &module) {
    nb::class_<PageLockedArrays>(module, "PageLockedArrays", R"(
    Makes NumPy arrays in page-locked memory, without a Python frame.

    Args:
        ledger: The ledger that gives the memory.
        functions: The capsule ``_ARRAY_API`` of NumPy.
        array: ``numpy.ndarray``.
        dtype: ``numpy.dtype``.)")
        .def(nb::init<nb::object, nb::handle, nb::object, nb::object>(), nb::arg("ledger"), nb::arg("functions"),
             nb::arg("array"), nb::arg("dtype"),
             nb::sig("def __init__(self, ledger: Ledger, functions: object, array: type, dtype: type) -> None"))
        .def("make", &PageLockedArrays::make, nb::arg("shape").none(), nb::arg("dtype").none(), nb::lock_self(),
             nb::sig("def make(self, shape: object, dtype: object) -> Any"), R"(
        Return a new array in row-major order with uninitialised elements.

        Returns:
            The array; None if the array would have no elements, too many bytes, or Python objects as elements, and if
            ``shape`` is neither an exact integer nor an exact tuple of them.

        Raises:
            TypeError: ``dtype`` is no dtype.
            AcceleratorError: The driver has no more page-locked memory.)");
}

} // namespace tcuda
