#include "driver/host_memory.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <iterator>

namespace tcuda {
namespace {

void *pointer(std::uintptr_t address) { return reinterpret_cast<void *>(address); }

// Replaces pages by new pages, which have no contents.
bool replace(std::uintptr_t address, std::size_t size, int protection) {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    return mmap(pointer(address), size, protection, flags, -1, 0) != MAP_FAILED;
}

} // namespace

HostMemory::~HostMemory() {
    for (const auto &[address, size] : blocks_)
        std::free(pointer(address));
    for (const auto &[address, size] : reservations_)
        munmap(pointer(address), size);
}

std::uintptr_t HostMemory::allocate(std::size_t size) {
    const std::lock_guard lock(mutex_);
    // The size is compared before it is rounded: rounding the largest sizes would overflow.
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
    std::free(pointer(address));
    return true;
}

std::optional<HostMemory::Block> HostMemory::block_at(std::uintptr_t address) const {
    const std::lock_guard lock(mutex_);
    const auto after = blocks_.upper_bound(address);
    if (after != blocks_.begin()) {
        const auto &[start, size] = *std::prev(after);
        if (address - start < size)
            return Block{start, size};
    }
    auto next = mappings_.upper_bound(address);
    if (next == mappings_.begin() || address - std::prev(next)->first >= std::prev(next)->second)
        return std::nullopt;
    auto first = std::prev(next);
    while (first != mappings_.begin() && std::prev(first)->first + std::prev(first)->second == first->first)
        --first;
    std::uintptr_t end = std::prev(next)->first + std::prev(next)->second;
    for (; next != mappings_.end() && next->first == end; ++next)
        end += next->second;
    return Block{first->first, end - first->first};
}

bool HostMemory::is_unmapped(std::uintptr_t address) const {
    {
        const std::lock_guard lock(mutex_);
        const auto after = reservations_.upper_bound(address);
        if (after == reservations_.begin() || address - std::prev(after)->first >= std::prev(after)->second)
            return false;
    }
    return !block_at(address).has_value();
}

bool HostMemory::reserve(std::size_t size, std::uintptr_t *address) {
    const std::lock_guard lock(mutex_);
    // One page more than requested, so that the reservation can begin at a page.
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = size == 0 ? MAP_FAILED : mmap(nullptr, size + page, PROT_NONE, flags, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    const auto start = reinterpret_cast<std::uintptr_t>(memory);
    *address = (start + page - 1) / page * page;
    if (*address > start)
        munmap(memory, *address - start);
    munmap(pointer(*address + size), start + page - *address);
    try {
        reservations_.emplace(*address, size);
    } catch (...) {
        munmap(pointer(*address), size);
        throw;
    }
    return true;
}

bool HostMemory::unreserve(std::uintptr_t address, std::size_t size) {
    const std::lock_guard lock(mutex_);
    const auto found = reservations_.find(address);
    const auto mapping = mappings_.lower_bound(address);
    const bool mapped = mapping != mappings_.end() && mapping->first < address + size;
    if (found == reservations_.end() || found->second != size || mapped)
        return false;
    munmap(pointer(address), size);
    reservations_.erase(found);
    return true;
}

bool HostMemory::create(std::size_t size, std::uint64_t *physical) {
    const std::lock_guard lock(mutex_);
    if (size == 0 || size % page != 0 || size > limit_ - used_)
        return false;
    physical_.emplace(next_physical_, size);
    *physical = next_physical_++;
    used_ += size;
    return true;
}

bool HostMemory::destroy(std::uint64_t physical) {
    const std::lock_guard lock(mutex_);
    const auto found = physical_.find(physical);
    if (found == physical_.end())
        return false;
    used_ -= found->second;
    physical_.erase(found);
    return true;
}

bool HostMemory::map(std::uintptr_t address, std::size_t size, std::uint64_t physical) {
    const std::lock_guard lock(mutex_);
    const auto found = physical_.find(physical);
    const auto reservation = reservations_.upper_bound(address);
    const auto next = mappings_.lower_bound(address);
    if (found == physical_.end() || found->second != size || reservation == reservations_.begin())
        return false;
    const auto &[start, reserved] = *std::prev(reservation);
    const bool within = address % page == 0 && address - start <= reserved - size && size <= reserved;
    const bool overlaps = (next != mappings_.end() && next->first < address + size) ||
                          (next != mappings_.begin() && std::prev(next)->first + std::prev(next)->second > address);
    if (!within || overlaps)
        return false;
    const auto added = mappings_.emplace(address, size).first;
    if (replace(address, size, PROT_READ | PROT_WRITE))
        return true;
    mappings_.erase(added);
    return false;
}

bool HostMemory::unmap(std::uintptr_t address, std::size_t size) {
    const std::lock_guard lock(mutex_);
    const auto found = mappings_.find(address);
    if (found == mappings_.end() || found->second != size || !replace(address, size, PROT_NONE))
        return false;
    mappings_.erase(found);
    return true;
}

std::size_t HostMemory::used() const {
    const std::lock_guard lock(mutex_);
    return used_;
}

std::size_t HostMemory::live() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size() + mappings_.size() + reservations_.size();
}

} // namespace tcuda
