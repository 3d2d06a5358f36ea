// The parameters of the kernels of a graph: how many bytes each of them has.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "driver/libcuda.hpp"

namespace tcuda {

class KernelParameters {
public:
    explicit KernelParameters(const libcuda::GraphCalls &graphs) : graphs_(graphs) {}

    // The bytes of each parameter.
    const std::vector<std::size_t> &sizes(const libcuda::KernelNode &kernel);

private:
    const libcuda::GraphCalls &graphs_;
    // The sizes are kept for one graph only: a function may be unloaded, and another one loaded at its address.
    std::unordered_map<std::uintptr_t, std::vector<std::size_t>> known_;
};

} // namespace tcuda
