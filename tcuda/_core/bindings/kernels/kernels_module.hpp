#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the parameters of kernels, and the callables that launch kernels, to the module.
void bind_kernels(nanobind::module_ &module);

} // namespace tcuda
