// A reader of the nodes of a graph, and of the addresses in the parameters of the nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/libcuda.hpp"
#include "graphs/kernel_arguments.hpp"

namespace tcuda {

class GraphReader {
public:
    // The reader adds what it finds to `addresses`: every number that may be an address, some of them repeatedly.
    GraphReader(const libcuda::GraphCalls &graphs, std::vector<std::uintptr_t> &addresses)
        : graphs_(graphs), arguments_(graphs), addresses_(addresses) {}

    // Counts the nodes of `graph`, and reads them and the nodes of child graphs. Returns a status.
    int read(libcuda::Graph graph, std::size_t *count);

private:
    int read_node(libcuda::GraphNode node);
    void read_kernel(const libcuda::KernelNode &kernel);
    void add(std::uintptr_t word);

    const libcuda::GraphCalls &graphs_;
    KernelArguments arguments_;
    std::vector<std::uintptr_t> &addresses_;
};

} // namespace tcuda
