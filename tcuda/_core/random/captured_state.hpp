// The state of a generator for the kernels of one graph, which read it from two words in the memory of the device. The
// graph writes them itself, before anything in it draws, by a node whose parameters are set at every launch: launches of
// a graph follow each other, on whichever streams, so that none reads the words of another.
#pragma once

#include <cstdint>

#include "random/philox_state.hpp"

namespace tcuda {

class CapturedState {
public:
    // `function` is a CUfunction with the parameters of put() in philox.cuh; `words` the address of the two words, which
    // are allocated on the stream that draws first.
    CapturedState(PhiloxState &state, std::uintptr_t function, std::uintptr_t words)
        : state_(state), function_(function), words_(words) {}

    // Lets what comes next on a capturing stream wait for the words. Returns a status.
    int join(std::uintptr_t stream);

    // Where the next draw of the graph begins, counted from the offset at its launch.
    std::uint64_t take(std::uint64_t increment) {
        const std::uint64_t before = taken_;
        taken_ += increment;
        return before;
    }

    // Moves the generator past what the graph draws, and lets the next launch of `exec` draw that. Returns a status, with
    // the generator as it was if that is a failure.
    int prepare(std::uintptr_t exec);

    std::uintptr_t words() const { return words_; }

private:
    PhiloxState &state_;
    const std::uintptr_t function_, words_;
    std::uintptr_t node_ = 0;
    std::uint64_t taken_ = 0;
};

} // namespace tcuda
