#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/block_store.hpp"
#include "memory/allocator/caching_allocator.hpp"
#include "memory/allocator/external_source.hpp"
#include "memory/allocator/pool.hpp"
#include "memory/allocator/stream_lives.hpp"
#include "memory/ledger/live_blocks.hpp"
#include "memory/ledger/memory_limit.hpp"
#include "memory/ledger/shutdown.hpp"
#include "memory/records/history.hpp"
#include "memory/records/statistics.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// Memory from external sources: blocks for allocations, and segments for the pools of a library. A source is called
// with the lock given back.
class ExternalMemory {
public:
    ExternalMemory(int device, Driver &driver, const Shutdown &shutdown, StreamLives &lives, BlockStore &blocks,
                   CachingAllocator &native, LiveBlocks &live, MemoryLimit &limit, Statistics &statistics,
                   History &history)
        : device_(device), driver_(driver), shutdown_(shutdown), lives_(lives), blocks_(blocks), native_(native),
          live_(live), limit_(limit), statistics_(statistics), history_(history) {}
    ExternalMemory(const ExternalMemory &) = delete;
    ExternalMemory &operator=(const ExternalMemory &) = delete;

    // A block of at least `size` bytes; null if the source has none, or the limit forbids it. There is room for the
    // block in LiveBlocks. Throws DuplicatePointer, DriverError, and the exceptions of the source.
    Block *allocate(Lock &lock, const std::shared_ptr<ExternalSource> &source, std::size_t size, Stream stream);
    void free(Lock &lock, Block *block);

    // Takes a segment for a request of `size` bytes from the library of a pool. False if the library has none, or the
    // limit forbids it. Throws as allocate() does.
    bool grow(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId stack);
    // Gives segments back to their libraries, and lets go of pools, which may be the last users of a library.
    void give_back(Lock &lock, std::vector<ReturnedSegment> &segments, std::vector<std::unique_ptr<Pool>> &pools);

    // Whether a block of a source may exist.
    bool was_used() const { return !sources_.empty(); }

    // Makes every source give back the memory that it keeps for later allocations.
    void empty_caches(Lock &lock);

    // Frees the blocks of all sources. Called when the ledger ends.
    void free_everything();

private:
    void check_unknown(Address address, std::size_t size) const;
    Block *adopt(const std::shared_ptr<ExternalSource> &source, Address address, std::size_t size, Stream stream,
                 void *token);

    const int device_;
    Driver &driver_;
    const Shutdown &shutdown_;
    StreamLives &lives_;
    BlockStore &blocks_;
    CachingAllocator &native_;
    LiveBlocks &live_;
    MemoryLimit &limit_;
    Statistics &statistics_;
    History &history_;
    std::vector<std::shared_ptr<ExternalSource>> sources_; // every source that was ever asked
};

} // namespace tcuda
