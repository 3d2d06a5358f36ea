#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the interception of calls of NVIDIA's libraries to the module.
void bind_library_calls(nanobind::module_ &module);

} // namespace tcuda
