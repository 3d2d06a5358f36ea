#include "kernels/kernel_launcher.hpp"

#include "driver/status.hpp"

namespace tcuda {

KernelLauncher::KernelLauncher()
    : contexts_(libcuda::calls<libcuda::ContextCalls>()), kernels_(libcuda::calls<libcuda::KernelCalls>()) {
    int devices = 0;
    one_device_ = contexts_.device_count(&devices) == success && devices == 1;
}

KernelLauncher::~KernelLauncher() {
    const Loaded *loaded = first_.load(std::memory_order_acquire);
    while (loaded != nullptr) {
        const Loaded *const next = loaded->next;
        delete loaded;
        loaded = next;
    }
}

void KernelLauncher::add(libcuda::Function function, int device) {
    libcuda::Context context = 0;
    contexts_.get_current(&context);
    auto *const loaded = new Loaded{context, function, one_device_ ? -1 : device, nullptr};
    loaded->next = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(loaded->next, loaded, std::memory_order_release)) {
    }
}

const KernelLauncher::Loaded *KernelLauncher::current() const {
    const Loaded *loaded = first_.load(std::memory_order_acquire);
    if (one_device_)
        return loaded;
    libcuda::Context context = 0;
    if (contexts_.get_current(&context) != success)
        return nullptr;
    while (loaded != nullptr && loaded->context != context)
        loaded = loaded->next;
    return loaded;
}

} // namespace tcuda
