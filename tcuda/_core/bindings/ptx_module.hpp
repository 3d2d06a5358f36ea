#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the reader of PTX to the module.
void bind_ptx(nanobind::module_ &module);

} // namespace tcuda
