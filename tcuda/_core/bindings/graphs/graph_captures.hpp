// The begin and the end of the captures of graphs, for the driver and for the ledger in one call. Between two calls, a
// signal handler could raise, and a capture that only the driver knows would stay.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>
#include <vector>

#include "bindings/memory/python_ledger.hpp"
#include "graphs/cuda_graphs.hpp"

namespace tcuda {

// Lets `stream` capture, and the allocations of the capture come from a pool. Sets `capture.number`. Returns a status,
// and has changed nothing if that is a failure. Raises the errors of the ledger, with nothing changed.
int begin_graph(const CudaGraphs &graphs, PythonLedger &ledger, PoolId pool, nanobind::handle capture,
                libcuda::Stream stream, int device, int mode);

// Ends the capture of `stream` and of the ledger, and keeps the older memory that the graph uses. Sets `capture.ended`
// to the graph, the executable graph, the number of nodes and the kept memory. Returns a status and the call that
// failed; the capture of the ledger goes on then. Raises the errors of the ledger.
std::pair<int, const char *> end_graph(const CudaGraphs &graphs, PythonLedger &ledger, nanobind::handle capture,
                                       CaptureId number, libcuda::Stream stream, int device,
                                       const std::vector<libcuda::Graph> &bodies, std::optional<std::uint64_t> flags,
                                       bool keep);

} // namespace tcuda
