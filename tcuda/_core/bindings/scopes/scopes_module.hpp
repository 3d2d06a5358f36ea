// The context managers of the current device and of the current stream.
//
// Rule: no Python code runs between a change of what is current and the note of that change. The calls of an emulated
// runtime are the exception. Each of them either makes its change or raises. So an exception from a signal handler
// leaves nothing half done.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the types of scopes, and the functions that connect them with the runtime, to the module.
void bind_scopes(nanobind::module_ &module);

} // namespace tcuda
