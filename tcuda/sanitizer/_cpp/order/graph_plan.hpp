// The nodes of a graph, in chains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/order/access.hpp"
#include "sanitizer/_cpp/order/clock.hpp"

namespace tcuda::races {

// A node of a graph, as the caller describes it.
struct GraphNode {
    NameId name = 0;
    StackId stack = 0;
    std::vector<Use> uses;
    std::vector<std::size_t> dependencies; // places of earlier nodes
};

// Each chain has a slot of its own, and the nodes of a chain come one after another. So two nodes without an order are
// in different chains, and neither knows the epoch of the other.
class GraphPlan {
public:
    struct Node {
        NameId name;
        StackId stack;
        std::vector<Use> uses;
        std::size_t chain;
        Epoch place;                                        // in the chain, from 1
        std::vector<std::pair<std::size_t, Epoch>> after; // for each chain, the last place that comes before the node
    };

    // Throws std::out_of_range if a dependency is no earlier node.
    explicit GraphPlan(std::vector<GraphNode> nodes);

    const std::vector<Node> &nodes() const { return nodes_; }
    // Replaces the accesses of a node. Throws std::out_of_range if there is no such node.
    void set_uses(std::size_t place, std::vector<Use> uses) { nodes_.at(place).uses = std::move(uses); }
    const std::vector<Epoch> &lengths() const { return lengths_; } // of the chains

    std::vector<Slot> slots; // of the chains; the detector sets them
    Moment end;              // of the last launch

private:
    std::vector<Node> nodes_;
    std::vector<Epoch> lengths_;
};

} // namespace tcuda::races
