// The state of a generator for the kernels of one graph. The kernels read the seed and the offset from two words in the
// memory of the device. A node of the graph writes the words before any kernel of the graph reads them. The parameters
// of that node are set at every launch. Launches of a graph follow each other, also on different streams, so that no
// launch reads the words of another launch.
#pragma once

#include <cstdint>

#include "driver/libcuda.hpp"
#include "random/philox_state.hpp"

namespace tcuda {

class CapturedState {
public:
    // `function` has the parameters of put() in philox.cuh. `words` is the address of the two words, which are
    // allocated on the stream that draws first. Throws std::runtime_error where there is no driver, or one older than
    // that of CUDA 12.4.
    CapturedState(PhiloxState &state, libcuda::Function function, std::uintptr_t words);

    // Lets the work that follows on a capturing stream wait for the words. Returns a status.
    int join(libcuda::Stream stream);

    // Reserves a part of the sequence for a kernel of the graph. Returns where that part begins, counted from the
    // offset at the launch of the graph.
    std::uint64_t take(std::uint64_t increment) {
        const std::uint64_t before = taken_;
        taken_ += increment;
        return before;
    }

    // Where the next part begins. A graph that goes back draws the same numbers again. A graph that ends behind its
    // last draw moves the generator to that place only, as the same calls outside of a graph do.
    std::uint64_t position() const { return taken_; }
    void move_to(std::uint64_t position) { taken_ = position; }

    // Moves the generator by what the graph draws, and gives that part of the sequence to the next launch of `exec`.
    // Returns a status. A failure leaves the generator unchanged.
    int prepare(libcuda::GraphExec exec);

    // Moves the generator by what the graph draws, and gives that part of the sequence to the own node, of which the
    // next copies are made. Returns a status. A failure leaves the generator unchanged.
    int prepare_node();

    // Lets prepare() set the node of `before`: an executable graph that was updated keeps the nodes of the graph of
    // which it was made. With null, prepare() sets the own node again.
    void follow(const CapturedState *before) { target_ = before == nullptr ? node_ : before->target_; }

    std::uintptr_t words() const { return words_; }

private:
    const libcuda::GraphCalls &graphs_;
    PhiloxState &state_;
    const libcuda::Function function_;
    const std::uintptr_t words_;
    libcuda::GraphNode node_ = 0, target_ = 0; // the own node, and the node that prepare() sets
    std::uint64_t taken_ = 0;
};

} // namespace tcuda
