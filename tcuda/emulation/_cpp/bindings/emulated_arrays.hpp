// The arrays of emulated devices.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/arrays/numpy_functions.hpp"
#include "bindings/memory/owned_memory.hpp"
#include "bindings/python/owned.hpp"
#include "emulation/_cpp/bindings/emulated_work.hpp"

namespace tcuda {

// The layout of an object of the Python type EmulatedArray, the base of the arrays. Null are the members of an object
// that was never initialised.
struct EmulatedArray {
    PyObject_HEAD PyObject *host; // the NumPy array over the memory
    PyObject *block; // the memory, an OwnedMemory
    PyObject *base; // the array of which this array is a view; null or None if there is none

    static EmulatedArray *of(PyObject *object) { return reinterpret_cast<EmulatedArray *>(object); }
    const OwnedMemory &memory() const { return *OwnedMemory::of(block); }
};

// Makes arrays. The functions return a new reference, or null with a Python error set; make() returns false instead of
// null.
class EmulatedArrays {
public:
    // `memory` is the class of the memory, `array` that of NumPy's arrays, and `functions` has NumPy's C functions.
    // `dtypes` has the dtypes by the objects that name them, and None for a dtype itself.
    EmulatedArrays(nanobind::object memory, nanobind::object array, nanobind::object functions, nanobind::dict dtypes)
        : memory_(std::move(memory)), numpy_(functions, std::move(array)), dtypes_(std::move(dtypes)),
          type_(nanobind::none()) {}

    // Sets the class of the arrays, a subclass of EmulatedArray.
    void use(nanobind::object type) { type_ = std::move(type); }

    bool has(PyObject *object) const { return reinterpret_cast<PyObject *>(Py_TYPE(object)) == type_.ptr(); }

    // A new array with its NumPy array and its size in bytes.
    struct Made {
        Owned array, host;
        long long bytes = 0;
    };

    // Makes an array in row-major order. Returns false without an error if Python must read the shape, or if the array
    // has no elements, or more bytes than there are addresses.
    bool make(Made *made, PyObject *shape, PyObject *dtype, PythonLedger &ledger, int device, Stream stream) const;

    // Makes an array as make(), on the current stream. `find_ledger` returns the ledger. Returns null without an error
    // even if `dtypes` does not have `dtype`, or if work is not done at once.
    PyObject *create(PyObject *shape, PyObject *dtype, PyObject *find_ledger, const EmulatedWork &work) const;

    // Makes the view array[slice]. Returns null without an error if an end of the slice does not fit into 64 bits.
    PyObject *slice(PyObject *array, PyObject *slice) const;

private:
    const nanobind::object memory_;
    const NumpyFunctions numpy_;
    const nanobind::dict dtypes_;
    nanobind::object type_;
};

// Adds the type and the class to the module.
void bind_emulated_arrays(nanobind::module_ &module);

} // namespace tcuda
