// Calls for CUDA graphs and captures that CuPy lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

    int begin_capture(libcuda::Stream stream, int mode) const { return graphs_.begin_capture(stream, mode); }

    // The results of the end of a capture.
    struct Ended {
        libcuda::Graph graph = 0;    // 0 if the nodes are not kept
        libcuda::GraphExec exec = 0; // 0 if there is no executable graph yet
        std::size_t nodes = 0;
        std::vector<std::uintptr_t> addresses; // as those of contents(), in the bodies of conditional nodes too
    };
    // Ends the capture of `stream`. The executable graph has the flags; there is none without flags. The graph is kept
    // if `keep`. After a failure, `failed` names the call, the stream does not capture, and nothing is left behind.
    int end_capture(libcuda::Stream stream, const std::vector<libcuda::Graph> &bodies,
                    std::optional<std::uint64_t> flags, bool keep, Ended *ended, const char **failed) const;
    // Destroys what end_capture() has made.
    void destroy(const Ended &ended) const;

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
