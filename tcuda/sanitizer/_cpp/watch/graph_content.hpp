// The nodes of a graph, as a race detector knows them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "driver/libcuda_types.hpp"
#include "sanitizer/_cpp/order/race_detector.hpp"

namespace tcuda::watch {

// The uses of an operation, which own their labels.
struct KeptUses {
    struct Labelled {
        races::Use use;
        std::string label;
    };
    std::vector<Labelled> uses;

    KeptUses() = default;
    explicit KeptUses(const races::RaceDetector::NamedUses &named);
    // The labels live as long as this object.
    std::vector<races::RaceDetector::NamedUse> named() const;
};

// What is known of a node.
struct KeptNode {
    std::string name;
    StackId stack = 0;
    KeptUses uses;
};

// The nodes of a graph and of its child graphs. Nodes that another node depends on come before that node.
struct GraphContent {
    struct Node {
        KeptNode kept;
        std::vector<std::size_t> dependencies; // places of earlier nodes
        libcuda::GraphNode handle = 0;         // in the graph that was read
        int type = -1;
        libcuda::Event event = 0; // of a node that records an event, or waits for the record of an event, outside
    };
    // The nodes of a child graph are next to each other.
    struct Child {
        libcuda::GraphNode handle = 0;
        std::size_t first = 0, count = 0;
    };
    std::vector<Node> nodes;
    std::vector<Child> children; // also those in other child graphs
};

} // namespace tcuda::watch
