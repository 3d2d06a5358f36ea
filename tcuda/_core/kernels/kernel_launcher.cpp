#include "kernels/kernel_launcher.hpp"

namespace tcuda {

KernelLauncher::~KernelLauncher() {
    const Loaded *loaded = first_.load(std::memory_order_acquire);
    while (loaded != nullptr) {
        const Loaded *const next = loaded->next;
        delete loaded;
        loaded = next;
    }
}

void KernelLauncher::add(libcuda::Function function, int device) {
    auto *const loaded = new Loaded{context_.get(), function, context_.is_only() ? -1 : device, nullptr};
    loaded->next = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(loaded->next, loaded, std::memory_order_release)) {
    }
}

const KernelLauncher::Loaded *KernelLauncher::current() const {
    const libcuda::Context context = context_.get();
    const Loaded *loaded = first_.load(std::memory_order_acquire);
    while (loaded != nullptr && loaded->context != context)
        loaded = loaded->next;
    return loaded;
}

} // namespace tcuda
