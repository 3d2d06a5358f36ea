// Operations on emulated devices that are done in the call that launches them.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Adds the function emulated_operation() to the module. The function returns a callable without a Python frame for a
// universal function of NumPy. The callable computes calls with arrays of one shape, small numbers and at most one
// output, whose types were seen before, and hands all other calls to `fallback`.
void bind_emulated_operation(nanobind::module_ &module);

} // namespace tcuda
