#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the functions to the module that read what kernels do with memory.
void bind_kernel_uses(nanobind::module_ &module);

} // namespace tcuda
