// The kernels of a jiterator function for inputs of certain types, loaded in one context.
#pragma once

#include <cstdint>

#include "driver/libcuda.hpp"
#include "driver/status.hpp"

namespace tcuda {

class ElementwiseKernels {
public:
    // tcuda/jiterator/_source.py has the kernels and these numbers.
    static constexpr std::uint64_t block = 256, lanes = 4;

    // `contiguous` computes elements that lie side by side, `strided` has an ElementwiseLoop::Layout as its second
    // argument. The current context is that of the kernels, on `device`.
    // Throws std::runtime_error where there is no driver.
    ElementwiseKernels(libcuda::Function contiguous, libcuda::Function strided, int device)
        : contexts_(libcuda::calls<libcuda::ContextCalls>()), kernels_(libcuda::calls<libcuda::KernelCalls>()),
          contiguous_(contiguous), strided_(strided) {
        int devices = 0;
        if (contexts_.device_count(&devices) != success || devices != 1) {
            device_ = device;
            contexts_.get_current(&context_);
        }
    }

    // The device; -1 where there is only one.
    int device() const { return device_; }

    // Whether the current context of this thread is that of the kernels.
    bool are_current() const {
        libcuda::Context current = 0;
        return device_ < 0 || (contexts_.get_current(&current) == success && current == context_);
    }

    // Returns a status. `arguments` has the address of each argument.
    int launch(bool is_strided, std::uint64_t size, libcuda::Stream stream, void **arguments) const {
        const std::uint64_t blocks = (size + block * lanes - 1) / (block * lanes);
        if (blocks > most_blocks)
            return invalid_value;
        return kernels_.launch(is_strided ? strided_ : contiguous_, static_cast<unsigned>(blocks), 1, 1, block, 1, 1, 0,
                               stream, arguments, nullptr);
    }

private:
    static constexpr std::uint64_t most_blocks = 0x7FFFFFFF;

    const libcuda::ContextCalls &contexts_;
    const libcuda::KernelCalls &kernels_;
    const libcuda::Function contiguous_, strided_;
    libcuda::Context context_ = 0;
    int device_ = -1;
};

} // namespace tcuda
