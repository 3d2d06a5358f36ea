#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the driver tables, the memory of emulated devices, and the calls of the driver that CuPy lacks to the module.
void bind_driver(nanobind::module_ &module);

} // namespace tcuda
