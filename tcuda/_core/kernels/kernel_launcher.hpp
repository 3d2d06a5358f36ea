// A compiled kernel on the devices on which the kernel is loaded.
#pragma once

#include <atomic>

#include "kernels/current_context.hpp"
#include "kernels/kernel_launch.hpp"

namespace tcuda {

class KernelLauncher {
public:
    // The function of one device. `device` is -1 if the machine has one device only.
    struct Loaded {
        libcuda::Context context;
        libcuda::Function function;
        int device;
        const Loaded *next;
    };

    // Throws std::runtime_error where there is no driver.
    KernelLauncher() = default;
    ~KernelLauncher();
    KernelLauncher(const KernelLauncher &) = delete;
    KernelLauncher &operator=(const KernelLauncher &) = delete;

    // Adds the function for the current context, which is the context of `device`.
    void add(libcuda::Function function, int device);

    // The function for the current context; null if the kernel is not loaded there.
    const Loaded *current() const;

    // Returns a status. `arguments` has the address of each argument.
    int launch(const Loaded &loaded, const LaunchShape &shape, libcuda::Stream stream, void **arguments) const {
        return launch_(loaded.function, shape, stream, arguments);
    }

private:
    const CurrentContext context_;
    const KernelLaunch launch_;
    std::atomic<const Loaded *> first_{nullptr}; // the latest comes first
};

} // namespace tcuda
