// A reader of the nodes of a graph, and of the addresses in the parameters of the nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "driver/libcuda.hpp"

namespace tcuda {

class GraphReader {
public:
    // The reader adds what it finds to `addresses`: every number that may be an address, some of them repeatedly.
    GraphReader(const libcuda::GraphCalls &graphs, std::vector<std::uintptr_t> &addresses)
        : graphs_(graphs), addresses_(addresses) {}

    // Counts the nodes of `graph`, and reads them and the nodes of child graphs. Returns a status.
    int read(libcuda::Graph graph, std::size_t *count);

private:
    int read_node(libcuda::GraphNode node);
    void read_kernel(const libcuda::KernelNode &kernel);
    const std::vector<std::size_t> &parameter_sizes(libcuda::Function function);
    void add(std::uintptr_t word);

    const libcuda::GraphCalls &graphs_;
    std::vector<std::uintptr_t> &addresses_;
    // The sizes are kept for one graph only: a function may be unloaded, and another one loaded at its address.
    std::unordered_map<libcuda::Function, std::vector<std::size_t>> parameter_sizes_;
};

} // namespace tcuda
