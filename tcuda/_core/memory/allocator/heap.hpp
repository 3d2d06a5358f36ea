#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/block.hpp"
#include "memory/allocator/block_tree.hpp"
#include "memory/allocator/free_blocks.hpp"
#include "memory/allocator/linked_list.hpp"
#include "memory/allocator/segment.hpp"
#include "memory/allocator/stream_lives.hpp"
#include "memory/allocator/window.hpp"
#include "memory/allocator/work.hpp"

namespace tcuda {

struct Pool;

// The free memory of one stream in one pool, for either small or large requests.
struct Heap {
    Pool *pool = nullptr;
    Stream stream = 0;
    bool is_large = false;
    FreeBlocks free;
    BlockTree<Block, ByAddress> holes; // unmapped ranges of the expandable segment
    Block *recent = nullptr;           // the block that was freed last; the next allocation may take it unmerged
    Segment *expandable = nullptr;
    std::size_t mapped = 0;    // bytes of the expandable segment that have physical memory
    std::vector<std::unique_ptr<Window>> windows; // in the order in which they were made
    std::uint64_t opened_windows = 0;             // how many windows were opened so far
    bool only_grows = true;    // no block was freed since the heap was last empty
    bool still_grows = true;   // the same since the heap grew last
    std::size_t segments = 0;  // the number of other segments
    std::size_t in_segments = 0; // the bytes of the other segments
    std::shared_ptr<Work> end; // the last work of a destroyed stream, whose handle may be that of another stream by now
    int pins = 0; // the number of threads that need the heap again once they have the lock back
    StreamLife *life = nullptr;
    Heap *before = nullptr, *after = nullptr; // links in StreamLife::heaps
    std::size_t place = 0; // the index in Pool::heaps
    Links<Heap> unmerged, maybe_unneeded; // in two lists of CachingAllocator
    Links<Heap> ownerless, adoptable, inherited; // in three lists of the pool
    // The allocator's count of frees when the stream adopted the heap. Memory that was freed before was not used since.
    std::uint64_t adopted_at = 0;

    // Whether all memory of the heap is free. Always false while a freed block is not merged.
    bool is_unused() const { return free.bytes() == mapped + in_segments; }
};

using UnmergedHeaps = LinkedList<Heap, &Heap::unmerged>;
using OwnerlessHeaps = LinkedList<Heap, &Heap::ownerless>;
using InheritedHeaps = LinkedList<Heap, &Heap::inherited>;
using AdoptableHeaps = LinkedList<Heap, &Heap::adoptable>;
using MaybeUnneededHeaps = LinkedList<Heap, &Heap::maybe_unneeded>;

// Whether the stream of a live block is destroyed. Its handle may be the handle of another stream by now.
inline bool stream_is_gone(const Block *block) {
    return (block->segment != nullptr ? block->segment->heap->end : block->life->end) != nullptr;
}

} // namespace tcuda
