// The detector of races for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

void bind_races(nanobind::module_ &module);

} // namespace tcuda
