// The context that is current for this thread. The driver is asked only on machines with several devices.
#pragma once

#include "driver/libcuda.hpp"
#include "driver/status.hpp"

namespace tcuda {

class CurrentContext {
public:
    // Throws std::runtime_error where there is no driver.
    CurrentContext() : contexts_(libcuda::calls<libcuda::ContextCalls>()) {
        int devices = 0;
        is_only_ = contexts_.device_count(&devices) == success && devices == 1;
    }

    // Whether there is one device only, so that no other context can be current.
    bool is_only() const { return is_only_; }

    // The context; 0 if no context is current, or if the machine has one device only.
    libcuda::Context get() const {
        libcuda::Context context = 0;
        return is_only_ || contexts_.get_current(&context) == success ? context : 0;
    }

private:
    const libcuda::ContextCalls &contexts_;
    bool is_only_ = false;
};

} // namespace tcuda
