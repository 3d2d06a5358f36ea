// The memory of an emulated device: memory of the host up to a limit, with CUDA's rules for pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace tcuda {

// Lock rule: every member function holds `mutex_` for its own duration, and calls nothing that could come back here. No
// function of this class calls Python.
// Lifetime rule: the destructor releases the blocks that are still live.
class HostMemory {
public:
    struct Block {
        std::uintptr_t address;
        std::size_t size;
    };

    explicit HostMemory(std::size_t limit) : limit_(limit) {}
    ~HostMemory();
    HostMemory(const HostMemory &) = delete;
    HostMemory &operator=(const HostMemory &) = delete;

    // The address of a new block of `size` bytes, aligned as cudaMalloc aligns. The address is 0 if the limit or the
    // host refuses the block, and if the size is 0, as with cudaMalloc.
    std::uintptr_t allocate(std::size_t size);

    // Frees the block that begins at `address`. False, with nothing changed, if no live block begins there.
    bool release(std::uintptr_t address);

    // The live block, or the mapped range without a gap, that contains `address`.
    std::optional<Block> block_at(std::uintptr_t address) const;

    // Whether `address` is reserved and not mapped.
    bool is_unmapped(std::uintptr_t address) const;

    // Virtual memory, as with cuMemAddressReserve, cuMemCreate and cuMemMap. Sizes are multiples of `page`. Memory is
    // all zeros whenever it is mapped: physical memory keeps no contents while it is not mapped. Each function returns
    // whether it succeeded.
    bool reserve(std::size_t size, std::uintptr_t *address);
    bool unreserve(std::uintptr_t address, std::size_t size);
    bool create(std::size_t size, std::uint64_t *physical);
    bool destroy(std::uint64_t physical);
    bool map(std::uintptr_t address, std::size_t size, std::uint64_t physical);
    bool unmap(std::uintptr_t address, std::size_t size);

    std::size_t limit() const { return limit_; }
    std::size_t used() const;
    std::size_t live() const; // blocks, mappings and reservations

    static constexpr std::size_t alignment = 512;
    static constexpr std::size_t page = std::size_t(2) << 20;

private:
    static std::size_t rounded(std::size_t size) { return (size + alignment - 1) / alignment * alignment; }

    const std::size_t limit_;
    mutable std::mutex mutex_;
    std::map<std::uintptr_t, std::size_t> blocks_;       // address -> requested size
    std::map<std::uintptr_t, std::size_t> reservations_; // address -> size
    std::map<std::uintptr_t, std::size_t> mappings_;     // address -> size
    std::map<std::uint64_t, std::size_t> physical_;      // number -> size
    std::uint64_t next_physical_ = 1;
    std::size_t used_ = 0; // the sum of the rounded sizes
};

} // namespace tcuda
