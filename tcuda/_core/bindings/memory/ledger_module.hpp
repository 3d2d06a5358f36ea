#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the class Ledger to the module, and connects the ledger with Python's lock and Python's stacks.
void bind_ledger(nanobind::module_ &module);

} // namespace tcuda
