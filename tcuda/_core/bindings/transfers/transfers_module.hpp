// The classes for work on the arrays of several devices.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

void bind_transfers(nanobind::module_ &module);

} // namespace tcuda
