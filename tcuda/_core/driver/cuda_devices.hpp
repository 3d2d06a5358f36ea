// The devices of CUDA, each with its primary context and what the allocator has to know of the device.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "driver/libcuda.hpp"

namespace tcuda {

struct CudaDevice {
    libcuda::Device handle = 0;
    libcuda::Context context = 0; // the primary context
    libcuda::AllocationProperties properties{};
    std::vector<libcuda::AccessDescription> access; // of the device itself, and of every device that can access it
    bool virtual_memory = false;
    std::atomic<bool> exportable{false}; // whether physical memory can be exported as a file descriptor
};

// A device is looked up when it is first asked for. Contexts are retained until the end of the process.
class CudaDevices {
public:
    // Throws std::runtime_error if the driver cannot be used or finds no device.
    CudaDevices();

    // Throws std::runtime_error if the device has no context.
    CudaDevice &of(int index);

    int count() const { return static_cast<int>(devices_.size()); }

    // Lets `function` be called with each device that is looked up for the first time, before any caller gets the
    // device. The function may call libcuda only.
    void when_found(std::function<void(const CudaDevice &)> function) { when_found_ = std::move(function); }

    const libcuda::ContextCalls &contexts() const { return contexts_; }

private:
    std::unique_ptr<CudaDevice> found(int index) const;

    const libcuda::ContextCalls &contexts_;
    std::function<void(const CudaDevice &)> when_found_;
    std::mutex mutex_; // guards `devices_`; nothing is called under the mutex but libcuda
    std::vector<std::unique_ptr<CudaDevice>> devices_;
};

} // namespace tcuda
