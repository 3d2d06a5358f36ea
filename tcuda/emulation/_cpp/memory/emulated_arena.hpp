// Small and large blocks in a file in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "emulation/_cpp/memory/shared_file.hpp"

namespace tcuda {

// The arena maps the file in chunks, and cuts the chunks into blocks. So many small blocks need few mappings and few
// pages. The pages of free blocks go back to the system when there are many of them.
//
// A gap lies behind each block. So an access right before or behind a block is in no other block, and the checks of
// kernels find the access.
//
// Sizes are multiples of `unit`. The owner holds a lock for every call.
class EmulatedArena {
public:
    // Without a file, the memory is private to the process. The arena uses the part of the file before `end`.
    explicit EmulatedArena(std::shared_ptr<SharedFile> file, std::size_t end) : file_(std::move(file)), end_(end) {}
    ~EmulatedArena();
    EmulatedArena(const EmulatedArena &) = delete;
    EmulatedArena &operator=(const EmulatedArena &) = delete;

    // The address of a new block; 0 if the system has no memory.
    std::uintptr_t allocate(std::size_t size);
    void release(std::uintptr_t address, std::size_t size) noexcept;

    // The place in the file of the memory at `address`, which is in a block.
    std::size_t offset_of(std::uintptr_t address) const;

    static constexpr std::size_t unit = 512;

private:
    static constexpr std::size_t gap = unit;

    struct Chunk {
        std::size_t size, offset;
    };
    using Chunks = std::map<std::uintptr_t, Chunk>;

    bool add_chunk(std::size_t size);
    void add_free(std::uintptr_t address, std::size_t size);
    void erase_free(std::uintptr_t address, std::size_t size);
    void discard(std::uintptr_t address, std::size_t size);
    void trim();
    Chunks::const_iterator chunk_of(std::uintptr_t address) const;

    const std::shared_ptr<SharedFile> file_;
    const std::size_t end_;
    Chunks chunks_;                                          // by address
    std::map<std::uintptr_t, std::size_t> free_;             // the sizes of the free ranges, by address
    std::set<std::pair<std::size_t, std::uintptr_t>> sizes_; // the free ranges, by size
    std::size_t next_offset_ = 0;                            // no part of the file is used twice
    std::size_t warm_ = 0; // bytes of free ranges that may still have pages
};

} // namespace tcuda
