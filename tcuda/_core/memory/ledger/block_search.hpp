// The block around an address.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "driver/driver.hpp"
#include "memory/allocator/caching_allocator.hpp"
#include "memory/ledger/external_memory.hpp"
#include "memory/ledger/live_blocks.hpp"

namespace tcuda {

struct FoundBlock {
    Address address;
    std::size_t size, requested;
    bool allocated;
    bool is_private; // in a private pool
};

// Finds blocks by addresses that a kernel has used, or that lie in memory.
//
// A search for an address inside of a block follows the blocks of the segment, and remembers a few of them. The next
// search begins at the last remembered block below its address. So a search does not take longer beside more blocks:
// the blocks that a search passes and does not remember are few, and each other block is passed once. The memory of
// Block objects is never freed, and a removed object has no segment. So a remembered block needs no word of its end.
//
// An address outside of all segments is compared with every segment, and with every block if the program has an
// external source.
class BlockSearch {
public:
    BlockSearch(const CachingAllocator &native, const ExternalMemory &external, const LiveBlocks &live)
        : native_(native), external_(external), live_(live) {}
    BlockSearch(const BlockSearch &) = delete;
    BlockSearch &operator=(const BlockSearch &) = delete;

    // The block, allocated or free, that contains `address`. May throw std::bad_alloc.
    std::optional<FoundBlock> around(Address address);
    // The pool of that block; null if there is no block, or if the block belongs to no pool.
    const Pool *pool_around(Address address) {
        const Block *found = find(address);
        return found == nullptr ? nullptr : found->pool;
    }

private:
    const Block *find(Address address);
    const Block *in_segments(Address address);
    const Block *remembered_before(Address address);

    static constexpr unsigned stride = 32; // of the blocks that are remembered

    const CachingAllocator &native_;
    const ExternalMemory &external_;
    const LiveBlocks &live_;
    std::map<Address, const Block *> remembered_;
};

} // namespace tcuda
