// Snapshots of the ledger as lists of Python dictionaries, with the keys of torch's snapshots.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "memory/ledger/ledger.hpp"

namespace tcuda {

// The segments of all devices, or those of `pool`, and the events of each device. The lists of events are empty unless
// `traces` is true.
nanobind::tuple snapshot_of(Ledger &ledger, std::optional<PoolId> pool, bool traces);

// The segments of page-locked host memory, and the list of their events. The dictionaries have the keys of those of a
// device. The device is -1.
nanobind::tuple host_snapshot_of(HostAllocator &host);

} // namespace tcuda
