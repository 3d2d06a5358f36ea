#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the ledger, its sources and its driver tables to the module.
void bind_ledger(nanobind::module_ &module);

} // namespace tcuda
