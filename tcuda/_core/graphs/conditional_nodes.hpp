// Conditional nodes in captures: nodes whose body a launch of the graph runs, or repeats, while a value is not zero.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "driver/libcuda.hpp"

namespace tcuda {

// The value of a conditional node is known to the driver by a handle. A kernel copies a flag in the memory of a device
// to the value.
//
// Any thread may call any function. Every call returns a status.
class ConditionalNodes {
public:
    // Throws std::runtime_error where there is no driver, or one older than that of CUDA 12.4.
    ConditionalNodes();

    // Captures, on `stream`, a kernel that reads the flag, and a conditional node. The work that `stream` captures
    // later comes after the node. The kind is a CUgraphConditionalNodeType. `body` becomes the graph of the body, which
    // belongs to the node. The flag has `size` bytes: 1 or 4.
    int add(libcuda::Stream stream, int kind, libcuda::DevicePointer flag, std::size_t size,
            libcuda::ConditionalHandle *handle, libcuda::Graph *body);

    // Captures, on `stream`, a kernel that copies the flag to the value of the handle.
    int set(libcuda::Stream stream, libcuda::ConditionalHandle handle, libcuda::DevicePointer flag, std::size_t size);

    // Lets the work of `stream` be captured into `graph`.
    int begin_capture_to_graph(libcuda::Stream stream, libcuda::Graph graph, int mode) const;

private:
    int function_for(std::size_t size, libcuda::Function *function);

    const libcuda::ContextCalls &contexts_;
    const libcuda::CaptureCalls &captures_;
    const libcuda::GraphCalls &graphs_;
    const libcuda::ConditionalCalls &conditionals_;
    const libcuda::ModuleCalls &modules_;
    const libcuda::KernelCalls &kernels_;
    std::mutex mutex_;
    std::map<libcuda::Context, libcuda::Module> loaded_; // never unloaded: a graph may run the kernels
};

} // namespace tcuda
