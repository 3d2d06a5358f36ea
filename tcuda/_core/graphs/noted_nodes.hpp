// Notes of the nodes of a capture, taken while the capture is in progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "driver/libcuda.hpp"

namespace tcuda {

// The driver lists the nodes of a graph that is being captured, and does not say which of them are new. So the notes
// know the nodes from before. A look at a graph without new nodes costs two calls of the driver.
class NotedNodes {
public:
    // Throws std::runtime_error where there is no driver, or one older than that of CUDA 12.4.
    NotedNodes() : graphs_(libcuda::calls<libcuda::GraphCalls>()) {}

    // Gives `note`, which is not 0, to the nodes without a note in the graph that `stream` captures into. Returns the
    // number of these nodes; 0 if the stream does not capture, or the capture is invalid.
    std::size_t note(libcuda::Stream stream, std::uint64_t note);

    // The notes of the nodes of `graph`, in the order of the driver; 0 for a node without a note. Returns a status.
    int notes_of(libcuda::Graph graph, std::vector<std::uint64_t> *notes) const;

private:
    int nodes_of(libcuda::Graph graph, std::vector<libcuda::GraphNode> *nodes) const;

    const libcuda::GraphCalls &graphs_;
    std::unordered_map<libcuda::Graph, std::size_t> counts_; // of the nodes with notes
    std::unordered_map<libcuda::GraphNode, std::uint64_t> notes_;
};

} // namespace tcuda
