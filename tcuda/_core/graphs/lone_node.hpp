// Copies of single nodes: graphs with one node, which a program launches without the rest of a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/libcuda.hpp"

namespace tcuda {

// Every call returns a status.
class LoneNodes {
public:
    // Throws std::runtime_error where there is no driver, or one older than that of CUDA 12.4.
    LoneNodes();

    // Makes a graph with a copy of the node at `place` of `graph`. Copies and fills use the current context. A node of
    // a type that belongs to its graph is refused (801): an allocation, a conditional node, a child graph.
    int copy(libcuda::Graph graph, std::size_t place, libcuda::Graph *alone) const;

    // The graph of the child graph at `place` of `graph`, which belongs to its node.
    int child(libcuda::Graph graph, std::size_t place, libcuda::Graph *child) const;

    // Every number in the parameters of the nodes that may be an address, in the order of the parameters. The address
    // of a copy's target is the last one.
    int addresses(libcuda::Graph graph, std::vector<std::uintptr_t> *addresses) const;

private:
    int node_at(libcuda::Graph graph, std::size_t place, libcuda::GraphNode *node) const;
    int add_copy(libcuda::GraphNode node, libcuda::Graph alone) const;
    int add_kernel(libcuda::GraphNode node, libcuda::Graph alone) const;

    const libcuda::ContextCalls &contexts_;
    const libcuda::GraphCalls &graphs_;
    const libcuda::GraphNodeCalls &nodes_;
    const libcuda::LoneNodeCalls &lone_;
};

} // namespace tcuda
