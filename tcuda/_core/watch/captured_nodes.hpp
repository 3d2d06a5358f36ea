#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/libcuda_types.hpp"
#include "watch/graph_content.hpp"

namespace tcuda::watch {

// What was known of the nodes of graphs when they were captured. Any thread may call any function; the mutex is a leaf.
class CapturedNodes {
public:
    // A node was captured. The nodes of a child graph are `child`; null for other nodes, and for a child graph of which
    // nothing is known.
    struct Captured {
        KeptNode node;
        std::shared_ptr<const GraphContent> child;
    };
    using Known = std::shared_ptr<const Captured>;

    // Adds a node, unless the node is known already: a copy of no bytes makes no node. `capture` tells the captures
    // into one graph apart. A graph of a failed capture ends unseen, so the nodes of another capture are forgotten, and
    // so are the graphs that were captured first if there are too many.
    void add(libcuda::Graph graph, libcuda::CaptureId capture, libcuda::GraphNode node, Known captured);
    Known find(libcuda::GraphNode node);
    libcuda::CaptureId capture_of(libcuda::Graph graph); // the last one; 0 if there is none
    std::vector<std::pair<libcuda::GraphNode, Known>> nodes_of(libcuda::Graph graph);

    void forget_node(libcuda::GraphNode node);
    void forget(libcuda::Graph graph);

    std::size_t size();

private:
    static constexpr std::size_t most_graphs = 4096;

    struct Graph {
        libcuda::CaptureId capture = 0;
        std::uint64_t number = 0; // counts the graphs
        std::vector<libcuda::GraphNode> nodes;
    };

    void forget_nodes_of(Graph &graph); // with the mutex

    std::mutex mutex_;
    std::unordered_map<libcuda::GraphNode, Known> nodes_;
    std::unordered_map<libcuda::Graph, Graph> graphs_;
    std::map<std::uint64_t, libcuda::Graph> by_age_;
    std::uint64_t last_ = 0;
};

} // namespace tcuda::watch
