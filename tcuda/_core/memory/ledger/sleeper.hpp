#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/caching_allocator.hpp"
#include "memory/allocator/pool.hpp"
#include "memory/ledger/captures.hpp"
#include "memory/ledger/external_memory.hpp"
#include "memory/ledger/host_copy.hpp"
#include "memory/ledger/live_blocks.hpp"
#include "memory/ledger/memory_limit.hpp"
#include "memory/ledger/pools.hpp"
#include "memory/ledger/reclaimer.hpp"
#include "memory/ledger/shutdown.hpp"
#include "memory/ledger/stream_progress.hpp"
#include "memory/records/statistics.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// Takes the memory of pools away, and keeps their addresses and, in memory of the host, their contents. The blocks of a
// pool stay as they are. A pool that is not awake hands out no memory, and its blocks may be freed.
//
// The functions give the lock back for waits and copies. Meanwhile the pools are `moving`: so nothing else maps or
// unmaps their memory.
class Sleeper {
public:
    // Why pools do not fall asleep. `shared`: other processes may use the memory. `other_source`: a library gives the
    // memory. `segments`: the driver gives memory and addresses together.
    enum class Refusal { none, moving, capture, shared, other_source, segments };

    // Why pools do not wake: the bytes that they need, the bytes that the device or the limit has, and whether that is
    // the limit.
    struct Lack {
        std::size_t needed = 0, available = 0;
        bool limited = false;
    };

    Sleeper(int device, Driver &driver, const Shutdown &shutdown, CachingAllocator &native, Pools &pools,
            ExternalMemory &external, LiveBlocks &live, MemoryLimit &limit, Captures &captures,
            StreamProgress &progress, Reclaimer &reclaimer, Statistics &statistics)
        : device_(device), driver_(driver), shutdown_(shutdown), native_(native), pools_(pools), external_(external),
          live_(live), limit_(limit), captures_(captures), progress_(progress), reclaimer_(reclaimer),
          statistics_(statistics) {}
    Sleeper(const Sleeper &) = delete;
    Sleeper &operator=(const Sleeper &) = delete;

    // Puts the pool, or the pools that sleep with it, to sleep, after all work of the device. Drops the contents unless
    // `keep`. Blocks at the addresses `shared` are in use by other processes. Pools that are asleep stay so. After a
    // refusal nothing has changed. Throws DriverError and HostMemoryError; the pools are then awake, unless the driver
    // has failed twice.
    Refusal sleep(Lock &lock, PoolId id, bool keep, const std::vector<Address> &shared);

    // Gives the pools memory and their contents. Pools that are awake stay so. False if the memory is missing: then the
    // pools are asleep, and `*lack` says how much is missing. Refuses as sleep() does, for `moving` only. Throws
    // DriverError; the pools are then asleep.
    bool wake(Lock &lock, PoolId id, Lack *lack, Refusal *refusal);

    // False for a pool that has ended.
    bool is_asleep(PoolId id) const {
        const Pool *pool = pools_.find(id);
        return pool != nullptr && pool->rest == Pool::Rest::asleep;
    }

private:
    class Move;

    Refusal refusal(const std::vector<Pool *> &pools, const std::vector<Address> &shared) const;
    void release_free(const std::vector<Pool *> &pools, std::uint64_t settled);
    std::vector<HostCopy::Range> contents(const Pool &pool) const;
    int map(Lock &lock, const std::vector<Heap *> &heaps, Lack *lack);

    const int device_;
    Driver &driver_;
    const Shutdown &shutdown_;
    CachingAllocator &native_;
    Pools &pools_;
    ExternalMemory &external_;
    LiveBlocks &live_;
    MemoryLimit &limit_;
    Captures &captures_;
    StreamProgress &progress_;
    Reclaimer &reclaimer_;
    Statistics &statistics_;
};

} // namespace tcuda
