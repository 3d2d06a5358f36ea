// Memory of a ledger that a Python object owns.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

#include "bindings/memory/python_ledger.hpp"

namespace tcuda {

// The layout of an object of the Python type OwnedMemory, a base of the blocks of emulated devices. The object frees
// its memory when the object dies, without a Python frame, and has the memory as its buffer. Zeros are an object
// without memory.
struct OwnedMemory {
    PyObject_HEAD PyObject *owner; // the ledger that gets the memory back; null if the memory is not the ledger's
    PythonLedger *ledger;
    unsigned long long ptr, size, requested;
    int device;

    static OwnedMemory *of(PyObject *object) { return reinterpret_cast<OwnedMemory *>(object); }

    // Makes an object of `type`, a subclass, with memory of `size` bytes. The object has no memory if the size is 0.
    // New reference; null with a Python error set if that fails.
    static PyObject *make(PyObject *type, PythonLedger &ledger, int device, std::size_t size, Stream stream);

    void free();
};

// Adds the type and the function allocate_memory() to the module.
void bind_owned_memory(nanobind::module_ &module);

} // namespace tcuda
