#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the watch of the host's memory to the module.
void bind_host_pages(nanobind::module_ &module);

} // namespace tcuda
