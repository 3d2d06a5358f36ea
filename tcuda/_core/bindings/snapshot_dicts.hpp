// Snapshots of the ledger as lists of Python dictionaries, with the keys of torch's snapshots.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "ledger/ledger.hpp"

namespace tcuda {

// The segments of all devices, or those of `pool`, and the events of each device. The lists of events are empty unless
// `traces` is true.
nanobind::tuple snapshot_of(Ledger &ledger, std::optional<PoolId> pool, bool traces);

} // namespace tcuda
