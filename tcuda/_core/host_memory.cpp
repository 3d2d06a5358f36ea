#include "host_memory.hpp"

#include <cstdlib>

namespace tcuda {

HostMemory::~HostMemory() {
    for (const auto &[address, size] : blocks_)
        std::free(reinterpret_cast<void *>(address));
}

std::uintptr_t HostMemory::allocate(std::size_t size) {
    const std::lock_guard lock(mutex_);
    // Compared before rounding: the largest sizes would wrap around in it.
    if (size == 0 || size > limit_ || rounded(size) > limit_ - used_)
        return 0;
    void *memory = std::aligned_alloc(alignment, rounded(size));
    if (memory == nullptr)
        return 0;
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    try {
        blocks_.emplace(address, size);
    } catch (...) {
        std::free(memory);
        throw;
    }
    used_ += rounded(size);
    return address;
}

bool HostMemory::release(std::uintptr_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end())
        return false;
    used_ -= rounded(found->second);
    blocks_.erase(found);
    std::free(reinterpret_cast<void *>(address));
    return true;
}

std::optional<HostMemory::Block> HostMemory::block_at(std::uintptr_t address) const {
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin())
        return std::nullopt;
    const auto &[start, size] = *--after;
    if (address - start >= size)
        return std::nullopt;
    return Block{start, size};
}

std::size_t HostMemory::used() const {
    const std::lock_guard lock(mutex_);
    return used_;
}

std::size_t HostMemory::live() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size();
}

} // namespace tcuda
