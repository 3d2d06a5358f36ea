// The part of the Python module that notes stacks.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

void bind_stacks(nanobind::module_ &module);

} // namespace tcuda
