// A kernel that fills an array with random numbers, launched through the driver: by CuPy's way, and Python's arithmetic
// on the state, filling a small array takes longer than with torch.
#pragma once

#include <cstdint>

#include "random/captured_state.hpp"
#include "random/philox_state.hpp"

namespace tcuda {

class FillKernel {
public:
    // `function` is a CUfunction with the parameters of fill() in philox.cuh, or of fill_captured() there for capture(); it
    // makes `lanes` numbers of each draw.
    // Throws std::runtime_error where there is no driver.
    FillKernel(std::uintptr_t function, std::uint64_t itemsize, std::uint64_t lanes, std::uint64_t most_blocks);

    // Fills `size` elements at `out`. Returns a status, with the state as it was if that is a failure: 201 if this
    // thread has no current context, 900 if the stream is capturing.
    int fill(PhiloxState &state, std::uintptr_t stream, std::uintptr_t out, std::uint64_t size, std::uint64_t first,
             std::uint64_t second) const;

    // The same on a stream that is capturing.
    int capture(CapturedState &state, std::uintptr_t stream, std::uintptr_t out, std::uint64_t size, std::uint64_t first,
                std::uint64_t second) const;

private:
    // `state` is the seed, or the address of the words of a CapturedState, to whose offset `offset` is added.
    int launch(const PhiloxPass &pass, std::uint64_t state, std::uint64_t offset, std::uintptr_t stream,
               std::uintptr_t out, std::uint64_t first, std::uint64_t second) const;

    const std::uintptr_t function_;
    const std::uint64_t itemsize_;
    const PhiloxPasses passes_;
};

} // namespace tcuda
