#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the class and the functions by which Python notes the memory of calls.
void bind_notes(nanobind::module_ &module);

} // namespace tcuda
