#include "memory/ledger/block_search.hpp"

namespace tcuda {
namespace {

bool contains(const Block *block, Address address) {
    return address >= block->address && address - block->address < block->size;
}

} // namespace

std::optional<FoundBlock> find_block_around(const CachingAllocator &native, const LiveBlocks &live, Address address) {
    const Block *found = nullptr;
    native.each_segment([&](const Segment *segment) {
        if (address < segment->address || address - segment->address >= segment->size)
            return;
        for (const Block *block = segment->first; block != nullptr; block = block->after)
            if (contains(block, address))
                found = block;
    });
    if (found == nullptr)
        live.each([&](const Block *block) {
            if (block->source != nullptr && contains(block, address))
                found = block;
        });
    if (found == nullptr || !found->is_here())
        return std::nullopt;
    const bool is_private = found->pool != nullptr && found->pool->id != common_pool;
    return FoundBlock{found->address, found->size, found->requested, found->state == Block::State::allocated,
                      is_private};
}

} // namespace tcuda
