// A callable that takes the place of CuPy's allocator. The memory that the callable returns has the size of its block,
// and not the requested size: the memory of CuPy's own pool has that size too. The callable adds no Python frame to an
// allocation.
#pragma once

#include <Python.h>

#include <cstddef>

namespace tcuda {

// The size of the block that this thread got last, if the block is larger than requested. The function that CuPy's
// allocator calls sets the size. The callable reads the size, and so needs no look-up of the block.
std::size_t &larger_block();

// Creates the type; null with a Python error set if that fails. Called once, when the module is made.
PyObject *make_block_allocator_type();

// A callable of `type` that calls `allocate`. `memory` is the descriptor of the attribute `mem` of the object that
// `allocate` returns. `size` is the descriptor of the attribute `size` of that memory. New reference; null with a
// Python error set if that fails.
PyObject *make_block_allocator(PyObject *type, PyObject *allocate, PyObject *memory, PyObject *size);

} // namespace tcuda
