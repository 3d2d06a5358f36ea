// The C functions through which CuPy's CFunctionAllocator calls the ledger.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/memory/python_ledger.hpp"

namespace tcuda {

// The addresses of the parameter, of the function that allocates, and of the function that frees. `current_stream` is a
// capsule with CuPy's function that returns the current stream of the thread. The ledger then lives for ever: arrays
// keep the addresses, and may outlive everything else. `begin` is called with the index of a device before the first
// allocation on the device.
nanobind::tuple cupy_functions(PythonLedger &ledger, nanobind::handle current_stream, nanobind::object begin);

// The same for the segments of a CuPy pool. `refuse` raises the exception that the pool takes for a lack of memory.
nanobind::tuple cupy_segment_functions(PythonLedger &ledger, nanobind::handle current_stream, nanobind::object refuse);

} // namespace tcuda
