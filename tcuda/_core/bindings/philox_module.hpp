// The Python face of what draws random numbers.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

void bind_philox(nanobind::module_ &module);

} // namespace tcuda
