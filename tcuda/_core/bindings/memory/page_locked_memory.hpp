// Page-locked memory of the host that a Python object owns.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace tcuda {

// New memory of at least `size` bytes, and its address. `ledger` is a Python object Ledger, which the memory keeps
// alive. New reference; null with a Python error set if that fails.
PyObject *make_page_locked(PyObject *ledger, std::size_t size, void **address);

// Adds the type PageLockedMemory and the function allocate_page_locked() to the module. An object frees its memory when
// the object dies, without a Python frame, and has the memory as its buffer.
void bind_page_locked_memory(nanobind::module_ &module);

} // namespace tcuda
