#include "memory/ledger/block_search.hpp"

#include <iterator>

namespace tcuda {
namespace {

bool contains(const Block *block, Address address) {
    return address >= block->address && address - block->address < block->size;
}

bool contains(const Segment *segment, Address address) {
    return address >= segment->address && address - segment->address < segment->size;
}

} // namespace

std::optional<FoundBlock> BlockSearch::around(Address address) {
    const Block *found = find(address);
    if (found == nullptr || !found->is_here())
        return std::nullopt;
    const bool is_private = found->pool != nullptr && found->pool->id != common_pool;
    return FoundBlock{found->address, found->size, found->requested, found->state == Block::State::allocated,
                      is_private};
}

const Block *BlockSearch::find(Address address) {
    const Block *found = live_.find(address);
    if (found == nullptr)
        found = in_segments(address);
    if (found == nullptr && external_.was_used())
        live_.each([&](const Block *block) {
            if (block->source != nullptr && contains(block, address))
                found = block;
        });
    return found;
}

const Block *BlockSearch::in_segments(Address address) {
    const Block *block = remembered_before(address);
    if (block == nullptr || !contains(block->segment, address)) {
        block = nullptr;
        native_.each_segment([&](const Segment *segment) {
            if (contains(segment, address))
                block = segment->first;
        });
        if (block != nullptr)
            remembered_[block->address] = block;
    }
    for (unsigned passed = 1; block != nullptr && !contains(block, address); ++passed) {
        block = block->after;
        if (block != nullptr && passed % stride == 0)
            remembered_[block->address] = block;
    }
    return block;
}

// The last remembered block that still begins at or below the address; null if there is none.
const Block *BlockSearch::remembered_before(Address address) {
    for (auto after = remembered_.upper_bound(address); after != remembered_.begin();) {
        const auto before = std::prev(after);
        const auto [begin, block] = *before;
        if (block->address == begin && block->segment != nullptr)
            return block;
        after = remembered_.erase(before);
    }
    return nullptr;
}

} // namespace tcuda
