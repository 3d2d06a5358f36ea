#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the states of generators, and the kernels that draw from them, to the module.
void bind_random(nanobind::module_ &module);

} // namespace tcuda
