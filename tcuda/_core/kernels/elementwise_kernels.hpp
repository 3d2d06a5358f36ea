// The kernels of a jiterator function for inputs of certain types, loaded in one context.
#pragma once

#include <cstdint>

#include "kernels/current_context.hpp"
#include "kernels/kernel_launch.hpp"

namespace tcuda {

class ElementwiseKernels {
public:
    // tcuda/jiterator/_source.py has the kernels and these numbers.
    static constexpr unsigned block = 256, lanes = 4;

    // `contiguous` computes elements that lie side by side. `strided` has an ElementwiseLoop::Layout as its second
    // argument. The current context is the context of the kernels, on `device`.
    // Throws std::runtime_error where there is no driver.
    ElementwiseKernels(libcuda::Function contiguous, libcuda::Function strided, int device)
        : contiguous_(contiguous), strided_(strided), context_(current_.get()),
          device_(current_.is_only() ? -1 : device) {}

    // The device; -1 if the machine has one device only.
    int device() const { return device_; }

    // Whether the current context of this thread is the context of the kernels.
    bool are_current() const { return current_.get() == context_; }

    // Returns a status. `arguments` has the address of each argument.
    int launch(bool is_strided, std::uint64_t size, libcuda::Stream stream, void **arguments) const {
        const std::uint64_t blocks = (size + block * lanes - 1) / (block * lanes);
        if (blocks > most_blocks)
            return invalid_value;
        const LaunchShape shape = {{static_cast<unsigned>(blocks), 1, 1}, {block, 1, 1}, 0};
        return launch_(is_strided ? strided_ : contiguous_, shape, stream, arguments);
    }

private:
    static constexpr std::uint64_t most_blocks = 0x7FFFFFFF;

    const CurrentContext current_;
    const KernelLaunch launch_;
    const libcuda::Function contiguous_, strided_;
    const libcuda::Context context_;
    const int device_;
};

} // namespace tcuda
