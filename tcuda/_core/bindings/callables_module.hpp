#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the functions that make callables without a Python frame to the module: block_allocator, translated and
// cleanup_on_error.
void bind_callables(nanobind::module_ &module);

} // namespace tcuda
