// Statistics as a Python dictionary.
#pragma once

#include <nanobind/nanobind.h>

#include <map>

#include "memory/allocator/pool.hpp"
#include "memory/host_allocator/host_statistics.hpp"
#include "memory/records/statistics.hpp"

namespace tcuda {

// The dictionary has the keys of torch's memory_stats(), in alphabetical order. `pools` has the reserved bytes of each
// private pool.
nanobind::dict dict_of(const Statistics &statistics, const std::map<PoolId, PooledCounter> &pools);

// torch's host_memory_stats(): a dictionary with the keys in the order of the alphabet.
nanobind::dict dict_of(const HostStatistics &statistics);

} // namespace tcuda
