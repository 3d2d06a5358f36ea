// A callable in the place of CuPy's allocator: the memory that it returns has the size of its block, not the size that
// was asked for, as memory of CuPy's own pool has. The callable adds no Python frame to an allocation.
#pragma once

#include <Python.h>

#include <cstddef>

namespace tcuda {

// How many bytes the block has that this thread was given last, if that is more than was asked for. The function that
// CuPy's allocator calls sets it, and the callable reads it, so that nothing has to be looked up.
std::size_t &larger_block();

// Creates the type; null with a Python error set if that fails. Called once, when the module is made.
PyObject *make_block_allocator_type();

// A callable of `type` that calls `allocate`. `memory` and `size` are the descriptors of the attributes of those names: of
// what `allocate` returns, and of its memory. New reference; null with a Python error set if that fails.
PyObject *make_block_allocator(PyObject *type, PyObject *allocate, PyObject *memory, PyObject *size);

} // namespace tcuda
