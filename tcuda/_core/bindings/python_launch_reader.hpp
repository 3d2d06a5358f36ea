// The readers of launches and of graphs, with functions of a test in the place of libcuda's. A program has them only
// behind a watch.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

void bind_launch_reader(nanobind::module_ &module);

} // namespace tcuda
