// Calls for CUDA graphs and captures that CuPy lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/libcuda.hpp"

namespace tcuda {

// Every call returns a status. The driver's handles and statuses are those of the CUDA runtime.
class CudaGraphs {
public:
    // Throws std::runtime_error where there is no driver, or one older than that of CUDA 12.4.
    CudaGraphs();

    struct CaptureInfo {
        int status; // 0: no capture, 1: active, 2: invalidated
        libcuda::CaptureId id;
    };
    int capture_info(libcuda::Stream stream, CaptureInfo *info) const;

    // These two calls are allowed while any stream captures, in any mode: a garbage collection may destroy a graph.
    int instantiate(libcuda::Graph graph, std::uint64_t flags, libcuda::GraphExec *exec) const;
    int destroy_exec(libcuda::GraphExec exec) const;

    // The number of nodes, and every number in the parameters of the nodes that may be an address, in ascending order.
    int contents(libcuda::Graph graph, std::size_t *nodes, std::vector<std::uintptr_t> *addresses) const;

private:
    const libcuda::CaptureCalls &captures_;
    const libcuda::GraphCalls &graphs_;
};

} // namespace tcuda
