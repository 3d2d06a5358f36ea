#pragma once

#include "driver/libcuda.hpp"

namespace tcuda {

// The device that is current in the calling thread. The CUDA runtime takes 1 us for the answer while the thread has no
// context, which is so until the program uses the device. The driver takes a few nanoseconds.
class ThreadDevice {
public:
    // The index of the device; -1 if only the runtime knows. With a context, the device is that of the context.
    int index() const noexcept;

    // Notes the answer of the runtime. The answer stays right while the thread has no context: every call that makes
    // another device current gives the thread a context of that device.
    static void remember(int index) noexcept;

private:
    static const libcuda::ContextCalls *found() noexcept;

    const libcuda::ContextCalls *const contexts_ = found(); // null without a driver
};

} // namespace tcuda
