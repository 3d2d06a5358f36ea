// The block around an address.
#pragma once

#include <cstddef>
#include <optional>

#include "driver/driver.hpp"
#include "memory/allocator/caching_allocator.hpp"
#include "memory/ledger/live_blocks.hpp"

namespace tcuda {

struct FoundBlock {
    Address address;
    std::size_t size, requested;
    bool allocated;
    bool is_private; // in a private pool
};

// The block, allocated or free, that contains `address`. The search visits the segments, and then the blocks of one
// segment, or all blocks of external sources. The search is slow, and is for addresses that a kernel has used.
std::optional<FoundBlock> find_block_around(const CachingAllocator &native, const LiveBlocks &live, Address address);

} // namespace tcuda
