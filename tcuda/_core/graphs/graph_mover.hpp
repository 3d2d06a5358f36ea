// A change of all nodes of a graph that use an array, so that they use another array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/libcuda.hpp"
#include "graphs/address_move.hpp"
#include "graphs/kernel_arguments.hpp"

namespace tcuda {

// The mover first reads graphs, and changes nothing. Then it changes the nodes.
class GraphMover {
public:
    GraphMover(const libcuda::GraphCalls &graphs, const libcuda::GraphChangeCalls &changes, const AddressMove &move)
        : graphs_(graphs), changes_(changes), arguments_(graphs), move_(move) {}

    // Reads the nodes of `graph` and of its child graphs. Returns a status.
    int read(libcuda::Graph graph);

    // Changes the nodes that use the array. Returns a status. A failure leaves all nodes as they were.
    int apply();
    // Gives the nodes the parameters that they had before apply().
    void undo();

    std::size_t count() const { return kernels_.size() + copies_.size() + fills_.size(); }
    // The number of the first node, in the order of reading, of which it is not known whether it uses the array. The
    // nodes of child graphs count as their node. -1 if there is none.
    std::ptrdiff_t doubtful() const { return doubtful_; }
    // Every number in the parameters that may be an address, after the change, in ascending order.
    std::vector<std::uintptr_t> addresses();

private:
    struct Kernel {
        libcuda::GraphNode node;
        libcuda::KernelNode launch;
        std::size_t first_piece, pieces, first_word; // in sizes_ and words_
    };
    template <typename Parameters> struct Simple {
        libcuda::GraphNode node;
        Parameters before, after;
    };

    int read_nodes(libcuda::Graph graph, bool nested);
    int read_node(libcuda::GraphNode node);
    void read_kernel(libcuda::GraphNode node, const libcuda::KernelNode &launch);
    int read_copy(libcuda::GraphNode node);
    int read_fill(libcuda::GraphNode node);
    std::uintptr_t moved(std::uintptr_t word);
    bool move_end(libcuda::MemcpyEnd *end);
    void doubt();
    int set(const Kernel &kernel, bool moved);

    const libcuda::GraphCalls &graphs_;
    const libcuda::GraphChangeCalls &changes_;
    KernelArguments arguments_;
    const AddressMove move_;
    std::vector<Kernel> kernels_;
    std::vector<std::size_t> sizes_;           // of the pieces of the arguments of all kernels
    std::vector<std::uint64_t> words_;         // the arguments before the move; each piece begins in a new word
    std::vector<std::uint64_t> arguments_set_; // of the kernel that is set
    std::vector<void *> pieces_set_;
    std::vector<Simple<libcuda::MemcpyNode>> copies_;
    std::vector<Simple<libcuda::MemsetNode>> fills_;
    std::vector<std::uintptr_t> addresses_;
    std::size_t number_ = 0; // of the node that is read
    std::ptrdiff_t doubtful_ = -1;
};

} // namespace tcuda
