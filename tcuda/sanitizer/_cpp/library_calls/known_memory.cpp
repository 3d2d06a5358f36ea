#include "sanitizer/_cpp/library_calls/known_memory.hpp"

#include "threads/published.hpp"

namespace tcuda::library_calls {

KnownMemory &KnownMemory::instance() {
    static Published<KnownMemory> memory;
    return memory.get();
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
