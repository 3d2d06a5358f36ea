// Classes for tests: the readers of launches and of graphs, with functions of a test in place of libcuda's functions. A
// program uses these readers only through a DriverWatch.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

void bind_launch_reader(nanobind::module_ &module);

} // namespace tcuda
