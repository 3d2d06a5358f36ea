// The arguments of the kernels of a graph, as bytes.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "driver/libcuda.hpp"

namespace tcuda {

class KernelArguments {
public:
    explicit KernelArguments(const libcuda::GraphCalls &graphs) : graphs_(graphs) {}

    // The bytes of one argument, or of all arguments if the launch has passed them in one buffer. Pointers are aligned
    // to their size from the start.
    struct Piece {
        const char *bytes;
        std::size_t size;
    };
    // The driver's bytes, which stay until the node is changed. The list stays until the next call.
    const std::vector<Piece> &of(const libcuda::KernelNode &kernel);

private:
    const std::vector<std::size_t> &sizes(const libcuda::KernelNode &kernel);

    const libcuda::GraphCalls &graphs_;
    std::vector<Piece> pieces_;
    // The sizes are kept for one graph only: a function may be unloaded, and another one loaded at its address.
    std::unordered_map<std::uintptr_t, std::vector<std::size_t>> sizes_;
};

} // namespace tcuda
