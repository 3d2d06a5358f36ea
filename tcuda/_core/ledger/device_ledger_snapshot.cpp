// What the ledger shows of its segments and blocks.
#include <algorithm>
#include <iterator>

#include "ledger/device_ledger.hpp"

namespace tcuda {

std::vector<SegmentView> DeviceLedger::snapshot(const PoolId *only) {
    const Lock lock(mutex_);
    merge_recent();
    std::vector<SegmentView> views;
    const auto view = [](const Block *block) {
        return BlockView{block->address, block->size, block->requested, block->state, block->stack};
    };
    for (const Segment *segment : native_.segments()) {
        const Heap &heap = *segment->heap;
        if (only != nullptr && heap.pool->id != *only)
            continue;
        bool open = false; // a range without physical memory ends what is shown as a segment
        for (const Block *block = segment->first; block != nullptr; block = block->after) {
            if (!block->is_mapped()) {
                open = false;
                continue;
            }
            if (!open)
                views.push_back({block->address, 0, heap.stream, heap.is_large, segment->expandable, heap.pool->id,
                                 segment->stack, {}});
            open = true;
            views.back().size += block->size;
            views.back().blocks.push_back(view(block));
        }
    }
    if (only == nullptr || *only == PoolId{0, 0}) {
        std::map<Address, SegmentView> external;
        for (const auto &[address, segment] : reported_segments_)
            external.emplace(address, SegmentView{address, segment.size, 0, native_.is_large(segment.size), false,
                                                  {0, 0}, segment.stack, {}});
        std::vector<const Block *> blocks;
        live_.each([&](const Block *block) {
            if (block->source != nullptr)
                blocks.push_back(block);
        });
        std::sort(blocks.begin(), blocks.end(), [](auto *left, auto *right) { return left->address < right->address; });
        for (const Block *block : blocks) {
            auto after = external.upper_bound(block->address);
            const bool within = after != external.begin() &&
                                block->address < std::prev(after)->first + std::prev(after)->second.size;
            if (within) {
                std::prev(after)->second.stream = block->stream;
                std::prev(after)->second.blocks.push_back(view(block));
            } else {
                external.emplace(block->address, SegmentView{block->address, block->size, block->stream, block->is_large,
                                                             false, {0, 0}, block->stack, {view(block)}});
            }
        }
        for (auto &[address, segment] : external) {
            std::vector<BlockView> filled; // what lies between the blocks is free
            Address at = address;
            const auto gap = [&](Address to) {
                if (to > at)
                    filled.push_back({at, to - at, 0, Block::State::free, 0});
            };
            for (const BlockView &block : segment.blocks) {
                gap(block.address);
                filled.push_back(block);
                at = block.address + block.size;
            }
            gap(address + segment.size);
            segment.blocks = std::move(filled);
            views.push_back(std::move(segment));
        }
    }
    std::sort(views.begin(), views.end(), [](const auto &left, const auto &right) { return left.address < right.address; });
    std::size_t active = 0;
    for (const SegmentView &segment : views)
        for (const BlockView &block : segment.blocks)
            if (block.state == Block::State::allocated || block.state == Block::State::awaiting_free)
                active += block.size;
    history_.record(Action::snapshot, 0, active, 0, 0);
    return views;
}

} // namespace tcuda
