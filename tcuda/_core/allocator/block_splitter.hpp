#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/block.hpp"
#include "allocator/block_store.hpp"
#include "allocator/heap.hpp"
#include "records/statistics.hpp"

namespace tcuda {

// Splits the blocks of a segment, merges them, and counts the free blocks that share their segment with other blocks:
// torch's inactive splits. Inline because every allocation and every free may split or merge.
class BlockSplitter {
public:
    // The inactive splits among some blocks.
    struct Splits {
        std::int64_t count = 0, bytes = 0;

        void add(const Block *block) {
            const bool shares = (block->before != nullptr && block->before->is_mapped()) ||
                                (block->after != nullptr && block->after->is_mapped());
            if (block->is_free() && shares) {
                ++count;
                bytes += static_cast<std::int64_t>(block->size);
            }
        }
    };

    BlockSplitter(BlockStore &store, Statistics &statistics) : store_(store), statistics_(statistics) {}
    BlockSplitter(const BlockSplitter &) = delete;
    BlockSplitter &operator=(const BlockSplitter &) = delete;

    // Makes the part of a block beyond `size` a block of its own, in the same state, which no list has. May throw
    // std::bad_alloc.
    Block *cut(Block *block, std::size_t size) {
        Block *rest = store_.make();
        rest->address = block->address + size;
        rest->size = block->size - size;
        rest->segment = block->segment;
        rest->state = block->state;
        rest->is_large = block->is_large;
        rest->freed_at = block->freed_at;
        rest->stream = block->stream;
        rest->pool = block->pool;
        rest->before = block;
        rest->after = block->after;
        if (rest->after != nullptr)
            rest->after->before = rest;
        block->after = rest;
        block->size = size;
        return rest;
    }

    // Adds the next block of the segment to a block. No list has the next block.
    void absorb_after(Block *block) {
        Block *gone = block->after;
        block->size += gone->size;
        block->freed_at = std::max(block->freed_at, gone->freed_at);
        block->after = gone->after;
        if (block->after != nullptr)
            block->after->before = block;
        store_.remove(gone);
    }

    // Merges a block that has become free with its free neighbours, and adds the result to the free blocks of the heap.
    Block *merge(Heap &heap, Block *block) {
        if (block->after != nullptr && block->after->is_free()) {
            heap.free.erase(block->after);
            absorb_after(block);
        }
        if (block->before != nullptr && block->before->is_free()) {
            block = block->before;
            heap.free.erase(block);
            absorb_after(block);
        }
        heap.free.insert(block);
        return block;
    }

    // Counts a change of the inactive splits.
    void count(const Heap &heap, Splits before, Splits after) {
        if (before.count != after.count)
            statistics_.inactive_split.add(heap.is_large, after.count - before.count);
        if (before.bytes != after.bytes)
            statistics_.inactive_split_bytes.add(heap.is_large, after.bytes - before.bytes);
    }

private:
    BlockStore &store_;
    Statistics &statistics_;
};

} // namespace tcuda
