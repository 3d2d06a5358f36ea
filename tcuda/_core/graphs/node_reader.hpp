// A reader of the nodes of a graph: what each node does, and the nodes that it waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "driver/libcuda.hpp"

namespace tcuda {

struct NodeFacts {
    int type;                  // CUgraphNodeType
    std::uint64_t number;      // by which profilers name the node; 0 if the driver has no numbers
    std::string kernel; // the name of the kernel; empty for other nodes, and if the driver does not know the name
    libcuda::Event event; // that the node records or waits for; 0 for other nodes
    std::vector<std::size_t> before; // the places of the nodes that the node waits for, in the order of the driver
};

class NodeReader {
public:
    // Throws std::runtime_error where there is no driver, or one older than that of CUDA 12.4.
    NodeReader();

    // Reads the nodes of `graph`, but no nodes of child graphs and bodies. Returns a status.
    int read(libcuda::Graph graph, std::vector<NodeFacts> *nodes) const;

    // The number by which profilers name an executable graph; 0 if the driver has no numbers. Returns a status.
    int number_of(libcuda::GraphExec executable, std::uint64_t *number) const;

private:
    int read_node(libcuda::GraphNode node, NodeFacts *facts) const;
    std::string name_of(const libcuda::KernelNode &kernel) const;

    const libcuda::GraphCalls &graphs_;
    const libcuda::GraphNodeCalls &nodes_;
    const libcuda::GraphNumberCalls *const numbers_; // null if the driver is older than that of CUDA 13.1
};

} // namespace tcuda
