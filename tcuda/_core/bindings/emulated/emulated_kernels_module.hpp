#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the modules and the launches of kernels on the processor to the module.
void bind_emulated_kernels(nanobind::module_ &module);

} // namespace tcuda
