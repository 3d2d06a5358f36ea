// The launch of a compiled kernel through the driver.
#pragma once

#include <atomic>

#include "driver/libcuda.hpp"

namespace tcuda {

// The sizes of a launch.
struct LaunchShape {
    unsigned grid[3], block[3], shared;
};

// A kernel on the devices on which the kernel is loaded.
class KernelLauncher {
public:
    // The function of one device. `device` is -1 where there is one device only.
    struct Loaded {
        libcuda::Context context;
        libcuda::Function function;
        int device;
        const Loaded *next;
    };

    // Throws std::runtime_error where there is no driver.
    KernelLauncher();
    ~KernelLauncher();
    KernelLauncher(const KernelLauncher &) = delete;
    KernelLauncher &operator=(const KernelLauncher &) = delete;

    // Adds the function for the current context, which is that of `device`.
    void add(libcuda::Function function, int device);

    // The function for the current context; null if there is none.
    const Loaded *current() const;

    // Returns a status. `arguments` has the address of each argument.
    int launch(const Loaded &loaded, const LaunchShape &shape, libcuda::Stream stream, void **arguments) const {
        return kernels_.launch(loaded.function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
                               shape.block[1], shape.block[2], shape.shared, stream, arguments, nullptr);
    }

private:
    const libcuda::ContextCalls &contexts_;
    const libcuda::KernelCalls &kernels_;
    bool one_device_ = false; // no other context can be current
    std::atomic<const Loaded *> first_{nullptr};
};

} // namespace tcuda
