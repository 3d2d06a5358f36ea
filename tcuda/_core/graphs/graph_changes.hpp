// Changes of an executable graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/libcuda.hpp"
#include "graphs/address_move.hpp"

namespace tcuda {

// Every call returns a status. The calls are allowed while any stream captures.
class GraphChanges {
public:
    // Throws std::runtime_error where there is no driver, or one older than that of CUDA 12.4.
    GraphChanges();

    // Why an executable graph cannot be updated.
    struct Reason {
        int result = 0;           // CUgraphExecUpdateResult; 0 if it was updated
        std::ptrdiff_t node = -1; // the place of the node in the graph; -1 if the node is not known
    };
    // Gives the executable graph the parameters of the nodes of `graph`, which has the same shape.
    int update(libcuda::GraphExec exec, libcuda::Graph graph, Reason *reason) const;

    struct Moved {
        std::size_t nodes = 0;        // the number of nodes that use the array
        std::ptrdiff_t doubtful = -1; // the first node that perhaps uses the array, counted over all graphs
        std::vector<std::uintptr_t> addresses; // as CudaGraphs::contents() gives them, after the move
        Reason reason;
    };
    // Moves the addresses of an array in the parameters of the nodes of all `graphs`, and updates `exec` from the first
    // of them. The others are bodies of conditional nodes. 0 stands for no executable graph. A failure, a doubtful
    // node, and an array that no node uses leave everything as it was.
    int move(const std::vector<libcuda::Graph> &graphs, libcuda::GraphExec exec, const AddressMove &move,
             Moved *moved) const;

    // The node is the one at `place` in `graph`, of which the executable graph was made.
    int set_enabled(libcuda::GraphExec exec, libcuda::Graph graph, std::size_t place, bool enabled) const;
    int is_enabled(libcuda::GraphExec exec, libcuda::Graph graph, std::size_t place, bool *enabled) const;

private:
    int node_at(libcuda::Graph graph, std::size_t place, libcuda::GraphNode *node) const;

    const libcuda::CaptureCalls &captures_;
    const libcuda::GraphCalls &graphs_;
    const libcuda::GraphChangeCalls &changes_;
};

} // namespace tcuda
