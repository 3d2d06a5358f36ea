#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the classes of the arguments of a Ledger's methods to the module: settings, sources of memory, trackers, and the
// choice of the stacks that the history notes.
void bind_ledger_arguments(nanobind::module_ &module);

} // namespace tcuda
