#include "memory/ledger/snapshot.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "memory/allocator/sizes.hpp"

namespace tcuda {
namespace {

BlockView view_of(const Block *block) {
    const Scope *const scope = block->state >= Block::State::allocated ? block->scope : nullptr;
    return {block->address, block->size, block->requested, block->state, block->stack, scope};
}

void add_native_segments(const CachingAllocator &native, const PoolId *only, std::vector<SegmentView> &views) {
    native.each_segment([&](const Segment *segment) {
        const Heap &heap = *segment->heap;
        if (only != nullptr && heap.pool->id != *only)
            return;
        bool open = false; // a range without memory separates two views
        for (const Block *block = segment->first; block != nullptr; block = block->after) {
            if (!block->is_here()) {
                open = false;
                continue;
            }
            if (!open)
                views.push_back({block->address,
                                 0,
                                 heap.stream,
                                 heap.is_large,
                                 segment->expandable,
                                 heap.pool->id,
                                 segment->stack,
                                 {},
                                 heap.pool->rest == Pool::Rest::asleep});
            open = true;
            views.back().size += block->size;
            views.back().blocks.push_back(view_of(block));
        }
    });
}

// Shows the ranges between the blocks of a segment as free blocks.
void fill_gaps(SegmentView &segment) {
    std::vector<BlockView> filled;
    Address at = segment.address;
    const auto add_gap = [&](Address to) {
        if (to > at)
            filled.push_back({at, to - at, 0, Block::State::free, 0});
    };
    for (const BlockView &block : segment.blocks) {
        add_gap(block.address);
        filled.push_back(block);
        at = block.address + block.size;
    }
    add_gap(segment.address + segment.size);
    segment.blocks = std::move(filled);
}

// A block of an external source is in a segment that the source has reported, or is a segment of its own.
void add_external_segments(const LiveBlocks &live, const ReportedSegments &reported, std::vector<SegmentView> &views) {
    std::map<Address, SegmentView> external;
    reported.each([&](Address address, std::size_t size, StackId stack) {
        external.emplace(address, SegmentView{address, size, 0, is_large_request(size), false, common_pool, stack, {}});
    });
    std::vector<const Block *> blocks;
    live.each([&](const Block *block) {
        if (block->source != nullptr)
            blocks.push_back(block);
    });
    std::sort(blocks.begin(), blocks.end(), ByAddress{});
    for (const Block *block : blocks) {
        const auto after = external.upper_bound(block->address);
        const bool within =
            after != external.begin() && block->address < std::prev(after)->first + std::prev(after)->second.size;
        if (within) {
            std::prev(after)->second.stream = block->stream;
            std::prev(after)->second.blocks.push_back(view_of(block));
        } else {
            external.emplace(block->address, SegmentView{block->address,
                                                         block->size,
                                                         block->stream,
                                                         block->is_large,
                                                         false,
                                                         common_pool,
                                                         block->stack,
                                                         {view_of(block)}});
        }
    }
    for (auto &[address, segment] : external) {
        fill_gaps(segment);
        views.push_back(std::move(segment));
    }
}

} // namespace

std::vector<SegmentView> view_segments(const CachingAllocator &native, const LiveBlocks &live,
                                       const ReportedSegments &reported, const PoolId *only) {
    std::vector<SegmentView> views;
    add_native_segments(native, only, views);
    if (only == nullptr || *only == common_pool)
        add_external_segments(live, reported, views);
    std::sort(views.begin(), views.end(),
              [](const auto &left, const auto &right) { return left.address < right.address; });
    return views;
}

std::size_t active_bytes(const std::vector<SegmentView> &segments) {
    std::size_t bytes = 0;
    for (const SegmentView &segment : segments)
        for (const BlockView &block : segment.blocks)
            if (block.state == Block::State::allocated || block.state == Block::State::awaiting_free)
                bytes += block.size;
    return bytes;
}

} // namespace tcuda
