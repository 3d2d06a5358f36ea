// Memory of an emulated device: host memory behind a limit, with CUDA's rules for pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace tcuda {

// Lock rule: every member function takes `mutex_` for its own duration and calls nothing that could
// come back here; no function of this class calls Python.
// Lifetime rule: blocks that are still live when the object dies are released by the destructor.
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

    // Address of a new block of `size` bytes, aligned as cudaMalloc aligns; 0 when the limit or the
    // host refuses it. A size of 0 yields 0, as with cudaMalloc.
    std::uintptr_t allocate(std::size_t size);

    // False, with nothing changed, unless `address` starts a live block.
    bool release(std::uintptr_t address);

    // The live block that holds `address`.
    std::optional<Block> block_at(std::uintptr_t address) const;

    std::size_t limit() const { return limit_; }
    std::size_t used() const;
    std::size_t live() const;

    static constexpr std::size_t alignment = 512;

private:
    static std::size_t rounded(std::size_t size) { return (size + alignment - 1) / alignment * alignment; }

    const std::size_t limit_;
    mutable std::mutex mutex_;
    std::map<std::uintptr_t, std::size_t> blocks_; // address -> size asked for
    std::size_t used_ = 0;                         // sum of the rounded sizes
};

} // namespace tcuda
