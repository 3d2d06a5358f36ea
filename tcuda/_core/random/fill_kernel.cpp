#include "random/fill_kernel.hpp"

#include "driver/status.hpp"

namespace tcuda {

FillKernel::FillKernel(libcuda::Function function, std::uint64_t itemsize, std::uint64_t lanes,
                       std::uint64_t most_blocks)
    : captures_(libcuda::calls<libcuda::CaptureCalls>()), kernels_(libcuda::calls<libcuda::KernelCalls>()),
      function_(function), itemsize_(itemsize), passes_(itemsize, lanes, most_blocks) {}

int FillKernel::fill(PhiloxState &state, libcuda::Stream stream, std::uintptr_t out, std::uint64_t size,
                     std::uint64_t first, std::uint64_t second) const {
    int capturing = 0;
    if (const int status = captures_.is_capturing(stream, &capturing))
        return status;
    if (capturing != 0)
        return capture_unsupported;
    return state.draw([&](std::uint64_t seed, std::uint64_t &offset) {
        return passes_.each(size, [&](const PhiloxPass &pass) {
            const int status = launch(pass, seed, offset, stream, out, first, second);
            offset += pass.increment;
            return status;
        });
    });
}

int FillKernel::capture(CapturedState &state, libcuda::Stream stream, std::uintptr_t out, std::uint64_t size,
                        std::uint64_t first, std::uint64_t second) const {
    if (const int status = state.join(stream))
        return status;
    return passes_.each(size, [&](const PhiloxPass &pass) {
        return launch(pass, state.words(), state.take(pass.increment), stream, out, first, second);
    });
}

int FillKernel::launch(const PhiloxPass &pass, std::uint64_t state, std::uint64_t offset, libcuda::Stream stream,
                       std::uintptr_t out, std::uint64_t first, std::uint64_t second) const {
    if (pass.size == 0)
        return success;
    std::uintptr_t part = out + pass.start * itemsize_;
    std::uint64_t elements = pass.size;
    void *arguments[] = {&part, &elements, &state, &offset, &first, &second};
    return kernels_.launch(function_, static_cast<unsigned>(pass.blocks), 1, 1, philox_block, 1, 1, 0, stream,
                           arguments, nullptr);
}

} // namespace tcuda
