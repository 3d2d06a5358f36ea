// CUDA graphs, as far as CuPy has no call for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tcuda {

struct GraphSymbols;

// Handles and statuses are those of the driver, which are the runtime's.
class CudaGraphs {
public:
    CudaGraphs(); // throws std::runtime_error where there is no driver

    struct CaptureInfo {
        int status; // 0: no capture, 1: active, 2: invalidated
        std::uint64_t id;
    };
    int capture_info(std::uintptr_t stream, CaptureInfo *info) const;

    // These two are allowed while a stream captures, in any mode: a graph may die in a garbage collection.
    int instantiate(std::uintptr_t graph, std::uint64_t flags, std::uintptr_t *exec) const;
    int destroy_exec(std::uintptr_t exec) const;

    // The number of nodes, and every number in their parameters that may be an address, without order.
    int contents(std::uintptr_t graph, std::size_t *nodes, std::vector<std::uintptr_t> *addresses) const;

private:
    const GraphSymbols &driver_;
};

// Launches a graph, on the fast path of a replay, while the context is current that was so when it was made.
class GraphLauncher {
public:
    explicit GraphLauncher(std::uintptr_t exec);

    // Returns a status: 201, with nothing done, if another context is current; 900 if the stream is capturing.
    int launch(std::uintptr_t stream) const;

private:
    const GraphSymbols &driver_;
    const std::uintptr_t exec_;
    std::uintptr_t context_ = 0; // where there is one device, no other can be current
};

} // namespace tcuda
