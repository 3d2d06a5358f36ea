#include "emulation/_cpp/memory/emulated_arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "emulation/_cpp/memory/pointer.hpp"
#include "threads/published.hpp"

namespace tcuda {
namespace {

constexpr std::size_t page = std::size_t(64) << 10; // a multiple of the page size of every system
constexpr std::size_t chunk_size = std::size_t(64) << 20;
constexpr std::size_t own_chunk = std::size_t(32) << 20; // a block of this size or more gets a chunk for itself
constexpr std::size_t most_warm = std::size_t(64) << 20; // bytes of free memory that keep their pages

std::size_t rounded(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

// Pages take memory once they are written, so a mapping may be larger than the memory of the machine. A block may not.
std::size_t memory_of_machine() {
    static Published<const std::size_t> bytes;
    return bytes.get([] {
        return new std::size_t(static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                               static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
    });
}

} // namespace

EmulatedArena::~EmulatedArena() {
    for (const auto &[address, chunk] : chunks_)
        munmap(host_pointer(address), chunk.size);
}

std::uintptr_t EmulatedArena::allocate(std::size_t size) {
    size += gap;
    auto best = sizes_.lower_bound({size, 0});
    if (best == sizes_.end()) {
        if (!add_chunk(size))
            return 0;
        best = sizes_.lower_bound({size, 0});
    }
    const auto [length, address] = *best;
    if (length == size) {
        erase_free(address, length);
    } else { // the rest takes the places of the range in the maps, so nothing can fail
        auto by_address = free_.extract(address);
        auto by_size = sizes_.extract(best);
        by_address.key() = address + size;
        by_address.mapped() = length - size;
        by_size.value() = {length - size, address + size};
        free_.insert(std::move(by_address));
        sizes_.insert(std::move(by_size));
    }
    warm_ -= std::min(warm_, size);
    return address;
}

void EmulatedArena::release(std::uintptr_t address, std::size_t size) noexcept {
    const auto chunk = chunk_of(address);
    const std::uintptr_t begin = chunk->first, end = begin + chunk->second.size;
    size += gap;
    warm_ += size;
    auto next = free_.lower_bound(address);
    if (next != free_.end() && next->first == address + size && next->first < end) {
        size += next->second;
        next = std::next(next);
        erase_free(std::prev(next)->first, std::prev(next)->second);
    }
    if (next != free_.begin()) {
        const auto [before, length] = *std::prev(next);
        if (before >= begin && before + length == address) {
            erase_free(before, length);
            address = before;
            size += length;
        }
    }
    try {
        add_free(address, size);
    } catch (const std::bad_alloc &) { // a free must not fail: without host memory, the addresses are lost
        discard(address, size);
    }
    if (warm_ > most_warm)
        trim();
}

std::size_t EmulatedArena::offset_of(std::uintptr_t address) const {
    const auto chunk = chunk_of(address);
    return chunk->second.offset + (address - chunk->first);
}

bool EmulatedArena::add_chunk(std::size_t size) {
    const std::size_t length = size >= own_chunk ? rounded(size, page) : chunk_size;
    if (size > memory_of_machine() || length > end_ - next_offset_)
        return false;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    std::uintptr_t address = 0;
    if (file_ != nullptr) {
        address = file_->map(0, next_offset_, length);
    } else if (void *memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, flags, -1, 0); memory != MAP_FAILED) {
        address = reinterpret_cast<std::uintptr_t>(memory);
    }
    if (address == 0)
        return false;
    try {
        chunks_.emplace(address, Chunk{length, next_offset_});
        add_free(address, length);
    } catch (...) {
        chunks_.erase(address);
        munmap(host_pointer(address), length);
        throw;
    }
    next_offset_ += length;
    return true;
}

void EmulatedArena::add_free(std::uintptr_t address, std::size_t size) {
    const auto added = free_.emplace(address, size).first;
    try {
        sizes_.emplace(size, address);
    } catch (...) {
        free_.erase(added);
        throw;
    }
}

void EmulatedArena::erase_free(std::uintptr_t address, std::size_t size) {
    free_.erase(address);
    sizes_.erase({size, address});
}

// Gives the whole pages of a range back.
void EmulatedArena::discard(std::uintptr_t address, std::size_t size) {
    const std::uintptr_t begin = rounded(address, page), end = (address + size) / page * page;
    if (begin >= end)
        return;
    if (file_ != nullptr)
        file_->discard(offset_of(begin), end - begin);
    else
        madvise(host_pointer(begin), end - begin, MADV_DONTNEED);
}

// Gives the pages of all free ranges back, and unmaps the chunks without blocks.
void EmulatedArena::trim() {
    warm_ = 0;
    for (auto range = free_.begin(); range != free_.end();) {
        const auto [address, size] = *range++;
        discard(address, size);
        const auto chunk = chunks_.find(address);
        if (chunk != chunks_.end() && chunk->second.size == size) {
            erase_free(address, size);
            munmap(host_pointer(address), size);
            chunks_.erase(chunk);
        }
    }
}

EmulatedArena::Chunks::const_iterator EmulatedArena::chunk_of(std::uintptr_t address) const {
    return std::prev(chunks_.upper_bound(address));
}

} // namespace tcuda
