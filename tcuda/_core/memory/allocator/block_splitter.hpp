#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "memory/allocator/block.hpp"
#include "memory/allocator/block_store.hpp"
#include "memory/allocator/heap.hpp"
#include "memory/records/statistics.hpp"

namespace tcuda {

// Splits the blocks of a segment, merges them, and counts the free blocks that share their segment with other blocks:
// torch's inactive splits. Inline because every allocation and every free may split or merge.
class BlockSplitter {
public:
    // The inactive splits among some blocks.
    struct Splits {
        std::int64_t count = 0, bytes = 0;

        void add(const Block *block) {
            const bool shares = (block->before != nullptr && block->before->is_here()) ||
                                (block->after != nullptr && block->after->is_here());
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

    // Takes a part of a free block away from the free blocks, gives the part a state without memory, and returns it.
    // Needs two spare blocks in the store, unless the part is the whole block.
    Block *take_out(Heap &heap, Block *block, Address from, Address to, Block::State state) {
        Splits before, after;
        before.add(block);
        heap.free.erase(block);
        Block *part = from > block->address ? cut(block, from - block->address) : block;
        Block *rest = to < part->address + part->size ? cut(part, to - from) : nullptr;
        part->state = state;
        std::int64_t ranges = -1; // ranges of memory without a gap, each of which counts as a segment
        for (const Block *neighbour : {part->before, part->after})
            ranges += neighbour != nullptr && neighbour->is_here();
        for (Block *free : {part == block ? nullptr : block, rest})
            if (free != nullptr) {
                heap.free.insert(free);
                after.add(free);
            }
        count(heap, before, after);
        if (ranges != 0)
            statistics_.segment.add(heap.is_large, ranges);
        return part;
    }

    // Makes a block without memory free, after it has got memory. Merges the block with its free neighbours.
    void put_back(Heap &heap, Block *block) {
        Splits before, after;
        std::int64_t ranges = 1; // ranges of memory without a gap, each of which counts as a segment
        for (const Block *neighbour : {block->before, block->after})
            if (neighbour != nullptr && neighbour->is_here()) {
                before.add(neighbour);
                --ranges;
            }
        block->state = Block::State::free;
        after.add(merge(heap, block));
        count(heap, before, after);
        if (ranges != 0)
            statistics_.segment.add(heap.is_large, ranges);
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
