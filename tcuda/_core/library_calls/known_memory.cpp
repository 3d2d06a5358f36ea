#include "library_calls/known_memory.hpp"

namespace tcuda::library_calls {

KnownMemory &KnownMemory::instance() {
    static auto *memory = new KnownMemory; // threads may be in a library when the process ends
    return *memory;
}

void KnownMemory::forget(std::uint64_t object) {
    const std::lock_guard lock(mutex_);
    objects_.erase(object);
}

void KnownMemory::clear() {
    const std::lock_guard lock(mutex_);
    objects_.clear();
}

} // namespace tcuda::library_calls
