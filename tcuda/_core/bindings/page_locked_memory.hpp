// Page-locked memory of the host that a Python object owns.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the type PageLockedMemory and the function allocate_page_locked() to the module. An object frees its memory when
// the object dies, without a Python frame, and has the memory as its buffer.
void bind_page_locked_memory(nanobind::module_ &module);

} // namespace tcuda
