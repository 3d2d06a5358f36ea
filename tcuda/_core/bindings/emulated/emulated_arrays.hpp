// The arrays of emulated devices.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/arrays/numpy_functions.hpp"
#include "bindings/memory/python_ledger.hpp"
#include "bindings/python/attribute.hpp"
#include "bindings/python/owned.hpp"

namespace tcuda {

// Reads and makes arrays. An array has a NumPy array over its memory (`_host`), the memory (`_block`, an OwnedMemory),
// and the array of which it is a view (`_base`). The functions return a new reference, or null with a Python error set;
// make() returns false instead of null.
class EmulatedArrays {
public:
    // `base` is the class that has the three members. `memory` is the class of the memory, `array` that of NumPy's
    // arrays, and `functions` has NumPy's C functions.
    EmulatedArrays(nanobind::object base, nanobind::object memory, nanobind::object array, nanobind::object functions);

    // Sets the class of the arrays, a subclass of `base`.
    void use(nanobind::object type) { type_ = std::move(type); }

    bool has(PyObject *object) const { return reinterpret_cast<PyObject *>(Py_TYPE(object)) == type_.ptr(); }

    // A new array with its NumPy array and its size in bytes.
    struct Made {
        Owned array, host;
        long long bytes = 0;
    };

    // Makes an array in row-major order. Returns false without an error if the array has no elements, many axes, or
    // more bytes than there are addresses.
    bool make(Made *made, PyObject *shape, PyObject *dtype, PythonLedger &ledger, int device, Stream stream) const;

    // Makes a view of `base`, an array. `host` is the NumPy array over the elements of the view.
    PyObject *part(PyObject *base, PyObject *host) const;

    // Makes the view array[slice]. Returns null without an error if an end of the slice does not fit into 64 bits.
    PyObject *slice(PyObject *array, PyObject *slice) const;

    const Attribute host, block, base;

private:
    PyObject *array(PyObject *host, PyObject *block, PyObject *base) const;

    const nanobind::object memory_;
    const NumpyFunctions numpy_;
    nanobind::object type_;
};

// Adds the class to the module.
void bind_emulated_arrays(nanobind::module_ &module);

} // namespace tcuda
