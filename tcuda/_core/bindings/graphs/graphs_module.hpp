#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the calls for graphs, and the launcher of a graph, to the module.
void bind_graphs(nanobind::module_ &module);

} // namespace tcuda
