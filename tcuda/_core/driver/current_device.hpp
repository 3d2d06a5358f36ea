// A span of code in which the primary context of a device is current, and captures forbid no call of the thread.
#pragma once

#include <optional>
#include <stdexcept>

#include "driver/cuda_devices.hpp"
#include "driver/libcuda.hpp"
#include "driver/relaxed_captures.hpp"
#include "driver/status.hpp"

namespace tcuda {

class CurrentDevice {
public:
    CurrentDevice(CudaDevices &devices, const libcuda::CaptureCalls &captures, int index)
        : contexts_(devices.contexts()) {
        try {
            device = &devices.of(index);
        } catch (const std::runtime_error &) {
            status = invalid_device;
            return;
        }
        status = contexts_.push_current(device->context);
        if (status == success)
            relaxed_.emplace(captures);
    }
    ~CurrentDevice() {
        if (!relaxed_)
            return;
        relaxed_.reset();
        libcuda::Context popped;
        contexts_.pop_current(&popped);
    }
    CurrentDevice(const CurrentDevice &) = delete;
    CurrentDevice &operator=(const CurrentDevice &) = delete;

    int status = success; // if this is a failure, the context is not current
    CudaDevice *device = nullptr;

private:
    const libcuda::ContextCalls &contexts_;
    std::optional<RelaxedCaptures> relaxed_;
};

} // namespace tcuda
