#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/caching_allocator.hpp"
#include "memory/allocator/settings.hpp"
#include "memory/ledger/announced_streams.hpp"
#include "memory/ledger/checkpoint.hpp"
#include "memory/ledger/external_memory.hpp"
#include "memory/ledger/memory_limit.hpp"
#include "memory/ledger/pools.hpp"
#include "memory/ledger/reported_segments.hpp"
#include "memory/ledger/shutdown.hpp"
#include "memory/ledger/stream_progress.hpp"
#include "memory/records/statistics.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// Gives free memory back to the driver and to the libraries of pools. Every function gives the lock back, to ask the
// driver which streams still work on the memory.
class Reclaimer {
public:
    Reclaimer(const Settings &settings, const Shutdown &shutdown, CachingAllocator &native, Pools &pools,
              ExternalMemory &external, ReportedSegments &reported, MemoryLimit &limit, AnnouncedStreams &streams,
              StreamProgress &progress, const Checkpoint &checkpoint, Statistics &statistics)
        : settings_(settings), shutdown_(shutdown), native_(native), pools_(pools), external_(external),
          reported_(reported), limit_(limit), streams_(streams), progress_(progress), checkpoint_(checkpoint),
          statistics_(statistics) {}
    Reclaimer(const Reclaimer &) = delete;
    Reclaimer &operator=(const Reclaimer &) = delete;

    // Gives back up to `enough` bytes that no stream works on, before an allocation on `current` that needs new memory:
    // the memory of destroyed streams, even if another stream has adopted and not used the memory; free memory of all
    // streams if `is_short`, because the limit forbids to take more; and the same with trim:always. Waits for nothing.
    // Throws DriverError.
    void give_back_idle(Lock &lock, std::size_t enough, Stream current, bool is_short);

    // Unmaps windows of the heap that were not opened for long, if the stream of the heap has nothing to do. Waits for
    // nothing.
    void unmap_idle_windows(Lock &lock, Heap &heap);

    // Gives back memory that was not used for long if an allocation of `size` bytes would exceed the threshold of
    // garbage_collection_threshold. Waits for streams. Throws DriverError.
    void collect_garbage(Lock &lock, std::size_t size, Stream current);

    // Gives back all free memory, of every source, but not the spare pool if `keep_spare`. Waits for streams. `current`
    // is the stream of the caller, or null. Throws DriverError.
    void give_back_everything(Lock &lock, const Stream *current, bool keep_spare = false);

    // Gives back all free memory of the pools that have no users, except one spare pool. Waits for streams. Throws
    // DriverError. The memory that graphs have used goes back as far as the checkpoint has passed: to wait for the
    // device may end a capture.
    void give_back_unused_pools(Lock &lock);

    // The same without waiting, and without a failure. Memory that streams still work on is given back by a later call.
    void give_back_idle_pools(Lock &lock) noexcept;

private:
    struct Candidate {
        Heap *heap;
        bool usable_handle;    // the stream may be asked, and waited for, by its handle
        std::uint64_t settled; // only memory that was freed up to this count is given back
        bool ready = false;    // no stream works on this memory
    };
    enum class From { everywhere, destroyed_streams, unused_pools };

    void keep_spare() noexcept;
    void recycle(Lock &lock, std::size_t enough, bool wait, const Stream *current, From from);
    std::vector<Candidate> candidates(const Stream *current, From from, bool wait);
    void find_ready(Lock &lock, std::vector<Candidate> &heaps, bool wait, const Stream *current);

    const Settings &settings_;
    const Shutdown &shutdown_;
    CachingAllocator &native_;
    Pools &pools_;
    ExternalMemory &external_;
    ReportedSegments &reported_;
    MemoryLimit &limit_;
    AnnouncedStreams &streams_;
    StreamProgress &progress_;
    const Checkpoint &checkpoint_;
    Statistics &statistics_;
    std::uint64_t given_back_early_ = 0; // bytes that give_back_idle() has given back
};

} // namespace tcuda
