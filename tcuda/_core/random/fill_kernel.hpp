// A kernel that fills an array with random numbers. The core launches it through the driver: a launch by CuPy, with the
// arithmetic on the state in Python, makes the filling of a small array slower than torch's.
#pragma once

#include <cstdint>

#include "driver/libcuda.hpp"
#include "random/captured_state.hpp"
#include "random/philox_passes.hpp"
#include "random/philox_state.hpp"

namespace tcuda {

class FillKernel {
public:
    // `function` has the parameters of fill() in philox.cuh, or those of fill_captured() for calls of capture(). The
    // kernel makes `lanes` numbers of each draw.
    // Throws std::runtime_error where there is no driver.
    FillKernel(libcuda::Function function, std::uint64_t itemsize, std::uint64_t lanes, std::uint64_t most_blocks);

    std::uint64_t itemsize() const { return itemsize_; }

    // Fills `size` elements at `out`. Returns a status. A failure leaves the state unchanged. The status is
    // invalid_context if this thread has no current context, and capture_unsupported if the stream is capturing.
    int fill(PhiloxState &state, libcuda::Stream stream, std::uintptr_t out, std::uint64_t size, std::uint64_t first,
             std::uint64_t second) const;

    // Does the same on a stream that is capturing.
    int capture(CapturedState &state, libcuda::Stream stream, std::uintptr_t out, std::uint64_t size,
                std::uint64_t first, std::uint64_t second) const;

private:
    // `state` is the seed, or the address of the words of a CapturedState. In the second case the kernel adds `offset`
    // to the offset in those words.
    int launch(const PhiloxPass &pass, std::uint64_t state, std::uint64_t offset, libcuda::Stream stream,
               std::uintptr_t out, std::uint64_t first, std::uint64_t second) const;

    const libcuda::CaptureCalls &captures_;
    const libcuda::KernelCalls &kernels_;
    const libcuda::Function function_;
    const std::uint64_t itemsize_;
    const PhiloxPasses passes_;
};

} // namespace tcuda
