// NumPy arrays in page-locked memory.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/arrays/numpy_functions.hpp"

namespace tcuda {

// Makes arrays in row-major order. An array keeps its memory, and the memory keeps the ledger.
class PageLockedArrays {
public:
    // `table` is the capsule `_ARRAY_API` of NumPy. `array` and `dtype` are the classes of NumPy. `ledger` is a Python
    // object Ledger.
    PageLockedArrays(nanobind::object ledger, nanobind::handle table, nanobind::object array, nanobind::object dtype)
        : ledger_(std::move(ledger)), numpy_(table, std::move(array)), dtype_(std::move(dtype)) {}

    // A new array. None if `shape` is neither an exact integer nor an exact tuple of them, or if the array has no
    // elements, too many bytes, or Python objects as elements: the caller finds the error. Raises Python errors.
    nanobind::object make(nanobind::handle shape, nanobind::handle dtype);

private:
    // A dtype, and the object that the program has passed for the dtype.
    struct Kind {
        nanobind::object passed, dtype;
        long long itemsize = 0; // 0 for elements that are Python objects
    };

    bool find(nanobind::handle passed);

    const nanobind::object ledger_;
    const NumpyFunctions numpy_;
    const nanobind::object dtype_;
    Kind last_; // programs often pass one object again and again
};

void bind_page_locked_arrays(nanobind::module_ &module);

} // namespace tcuda
