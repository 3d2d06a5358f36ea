#pragma once

#include "memory/allocator/block.hpp"
#include "memory/ledger/external_memory.hpp"
#include "memory/ledger/live_blocks.hpp"
#include "memory/ledger/poison.hpp"
#include "memory/ledger/pools.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// The end of every free: the block goes back to its pool, or its memory to its external source.
class BlockReturns {
public:
    BlockReturns(Poison &poison, LiveBlocks &live, Pools &pools, ExternalMemory &external)
        : poison_(poison), live_(live), pools_(pools), external_(external) {}
    BlockReturns(const BlockReturns &) = delete;
    BlockReturns &operator=(const BlockReturns &) = delete;

    // Completes the free of a block that has no users any more. May give the lock back. Inline because most frees call
    // this function.
    void complete(Lock &lock, Block *block) {
        if (poison_.is_on()) {
            block->state = Block::State::awaiting_free; // no other thread frees the block meanwhile
            poison_.fill(lock, block);
        }
        live_.remove(block);
        if (block->source == nullptr)
            pools_.give(block);
        else
            external_.free(lock, block);
    }

private:
    Poison &poison_;
    LiveBlocks &live_;
    Pools &pools_;
    ExternalMemory &external_;
};

} // namespace tcuda
