// New arrays of emulated devices.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the function emulated_creation() to the module. The function returns a callable without a Python frame, which
// takes a shape and a dtype, and makes an array of uninitialised elements. The callable hands all calls that are not
// plain to `fallback`.
void bind_emulated_creation(nanobind::module_ &module);

} // namespace tcuda
