// What transfers need of each device: the context, events, and a side stream.
#pragma once

#include <atomic>
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

    // What is known of the access of `device` to the memory of `peer`, another device: -1 if nothing is known, 1 if the
    // device has access.
    std::atomic<signed char> &access(int device, int peer) {
        return access_[static_cast<std::size_t>(device) * spares_.size() + static_cast<std::size_t>(peer)];
    }

    // The stream on which transfers do the work of the legacy default stream; made in the current context, which is
    // that of the device, by the first call. Returns a status.
    int side_stream(int device, libcuda::Stream *stream);

    // Takes an event without timing for a short use, or makes one in the current context, which is that of the device.
    // Returns a status.
    int take_event(int device, libcuda::Event *event);

    // Gives an event back. The waits of streams for the event may still be under way: a later record does not change
    // them.
    void give_event(int device, libcuda::Event event);

private:
    struct Spares {
        std::mutex mutex; // a leaf; nothing is called under the mutex but libcuda
        std::vector<libcuda::Event> events;
        std::atomic<libcuda::Stream> side_stream{0};
    };

    CudaDevices devices_;
    const libcuda::StreamCalls &streams_;
    const libcuda::TransferCalls &calls_;
    const KernelLaunch launch_;
    std::vector<std::unique_ptr<Spares>> spares_;        // by device
    std::vector<std::atomic<signed char>> access_; // by pair of devices
};

} // namespace tcuda
