// Statistics as a Python dictionary.
#pragma once

#include <nanobind/nanobind.h>

#include "records/statistics.hpp"

namespace tcuda {

// The dictionary has the keys of torch's memory_stats(), in alphabetical order.
nanobind::dict dict_of(const Statistics &statistics);

} // namespace tcuda
