#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the class DriverWatch to the module.
void bind_watch(nanobind::module_ &module);

} // namespace tcuda
