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
#include "sanitizer/_cpp/watch/graph_content.hpp"

namespace tcuda::watch {

// Keeps what was known of the nodes of graphs at their capture. Any thread may call any function; the mutex is a leaf.
class CapturedNodes {
public:
    // A captured node. `child` has the nodes of a child graph. Other nodes, and unknown child graphs, have no `child`.
    // `bodies` are the graphs of a conditional node.
    struct Captured {
        KeptNode node;
        std::shared_ptr<const GraphContent> child;
        std::vector<libcuda::Graph> bodies;
    };
    using Known = std::shared_ptr<const Captured>;

    // Adds a node, unless the node is known already: a copy of no bytes makes no node. `capture` tells the captures
    // into one graph apart. The end of a graph whose capture has failed is not seen. So the nodes of an earlier capture
    // are forgotten, and if there are too many graphs, the oldest graphs are forgotten.
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
