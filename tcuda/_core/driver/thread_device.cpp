#include "driver/thread_device.hpp"

#include <pthread.h>

#include <atomic>
#include <stdexcept>

#include "driver/status.hpp"

namespace tcuda {
namespace {

constexpr int unknown_device = -1;

thread_local int remembered = unknown_device;
thread_local bool has_had_context = false; // what the runtime says without a context may differ from then on

// In a child that was forked while the driver was in use, the runtime refuses the call, and the driver may not.
std::atomic<const libcuda::ContextCalls *> context_calls{nullptr};
std::atomic<bool> in_use_at_fork{false}, is_refused{false};

void before_fork() {
    libcuda::Context context = 0;
    const libcuda::ContextCalls *const calls = context_calls;
    in_use_at_fork = calls != nullptr && calls->get_current(&context) == success;
}

[[maybe_unused]] const int registered =
    pthread_atfork(before_fork, nullptr, [] { is_refused = is_refused || in_use_at_fork; });

} // namespace

const libcuda::ContextCalls *ThreadDevice::found() noexcept {
    try {
        context_calls = &libcuda::calls<libcuda::ContextCalls>();
        return context_calls;
    } catch (const std::exception &) {
        return nullptr;
    }
}

int ThreadDevice::index() const noexcept {
    libcuda::Context context = 0;
    if (contexts_ == nullptr || is_refused.load(std::memory_order_relaxed) ||
        contexts_->get_current(&context) != success)
        return unknown_device;
    if (context == 0)
        return remembered;
    has_had_context = true;
    remembered = unknown_device;
    libcuda::Device device = 0, known = 0;
    if (contexts_->current_device(&device) != success)
        return unknown_device;
    for (int ordinal = 0; contexts_->device_get(&known, ordinal) == success; ++ordinal)
        if (known == device)
            return ordinal;
    return unknown_device;
}

void ThreadDevice::remember(int index) noexcept {
    if (!has_had_context)
        remembered = index;
}

} // namespace tcuda
