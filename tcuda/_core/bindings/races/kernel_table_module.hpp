// The functions by which Python describes kernels, and the readers of launches and of graphs for tests.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

void bind_kernel_table(nanobind::module_ &module);

} // namespace tcuda
