// What transfers need of each device: the context, and events.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "driver/cuda_devices.hpp"
#include "driver/libcuda.hpp"
#include "kernels/kernel_launch.hpp"

namespace tcuda {

class TransferDevices {
public:
    // Throws std::runtime_error where there is no driver.
    TransferDevices();

    int count() const { return static_cast<int>(spares_.size()); }
    const libcuda::ContextCalls &contexts() const { return devices_.contexts(); }
    const KernelLaunch &launch() const { return launch_; }

    // Finds the primary context of the device. Returns a status.
    int context(int device, libcuda::Context *context);

    // The number of multiprocessors; 1 if the driver does not tell.
    int multiprocessors(int device);

    // Takes an event without timing for a short use, or makes one in the current context, which is that of the device.
    // Returns a status.
    int take_event(int device, libcuda::Event *event);

    // Gives an event back. The waits of streams for the event may still be under way: a later record does not change
    // them.
    void give_event(int device, libcuda::Event event);

private:
    struct Spares {
        std::mutex mutex; // a leaf; nothing is called under the mutex
        std::vector<libcuda::Event> events;
    };

    CudaDevices devices_;
    const libcuda::StreamCalls &streams_;
    const KernelLaunch launch_;
    std::vector<std::unique_ptr<Spares>> spares_; // by device
};

} // namespace tcuda
