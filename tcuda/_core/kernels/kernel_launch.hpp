// The launch of a kernel through the driver.
#pragma once

#include <stdexcept>

#include "driver/libcuda.hpp"

namespace tcuda {

// The sizes of a launch.
struct LaunchShape {
    unsigned grid[3], block[3], shared;
};

// Calls cuLaunchKernelEx(), which takes less time, or cuLaunchKernel() with a driver from before CUDA 11.8.
class KernelLaunch {
public:
    // Throws std::runtime_error where there is no driver.
    KernelLaunch() : calls_(libcuda::calls<libcuda::KernelCalls>()), configured_(configured()) {}

    // Returns a status. `arguments` has the address of each argument.
    int operator()(libcuda::Function function, const LaunchShape &shape, libcuda::Stream stream,
                   void **arguments) const {
        const unsigned *const grid = shape.grid;
        const unsigned *const block = shape.block;
        if (configured_ == nullptr)
            return calls_.launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shape.shared,
                                 stream, arguments, nullptr);
        const libcuda::LaunchConfiguration configuration = {
            {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shape.shared, stream, nullptr, 0};
        return configured_->launch(&configuration, function, arguments, nullptr);
    }

private:
    static const libcuda::ConfiguredLaunchCalls *configured() {
        try {
            return &libcuda::calls<libcuda::ConfiguredLaunchCalls>();
        } catch (const std::runtime_error &) {
            return nullptr;
        }
    }

    const libcuda::KernelCalls &calls_;
    const libcuda::ConfiguredLaunchCalls *const configured_;
};

} // namespace tcuda
