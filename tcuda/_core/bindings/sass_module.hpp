#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the readers of cubins and of their listings to the module.
void bind_sass(nanobind::module_ &module);

} // namespace tcuda
