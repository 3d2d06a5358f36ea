#pragma once

#include <cstddef>
#include <deque>
#include <new>

#include "memory/allocator/block.hpp"

namespace tcuda {

// The Block objects of a device. Deleted objects are used again, and their host memory is never freed.
class BlockStore {
public:
    // May throw std::bad_alloc, unless has_spare() has made room.
    Block *make() {
        if (spare_ == nullptr) {
            store_.emplace_back();
            return &store_.back();
        }
        Block *block = spare_;
        spare_ = block->after;
        --spare_count_;
        block->before = block->after = nullptr;
        return block;
    }

    void remove(Block *block) {
        *block = Block{};
        block->after = spare_;
        spare_ = block;
        ++spare_count_;
    }

    // Whether the next `count` calls of make() need no host memory. Takes host memory to make that so.
    bool has_spare(std::size_t count) {
        try {
            while (spare_count_ < count) {
                store_.emplace_back();
                remove(&store_.back());
            }
            return true;
        } catch (const std::bad_alloc &) {
            return false;
        }
    }

private:
    std::deque<Block> store_;
    Block *spare_ = nullptr; // linked by `after`
    std::size_t spare_count_ = 0;
};

} // namespace tcuda
