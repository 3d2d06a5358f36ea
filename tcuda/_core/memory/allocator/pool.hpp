#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "memory/allocator/address_map.hpp"
#include "memory/allocator/heap.hpp"
#include "memory/allocator/linked_list.hpp"
#include "memory/records/statistics.hpp"

namespace tcuda {

class ExternalSource;
class HostCopy;

using PoolId = std::pair<std::uint64_t, std::uint64_t>;
constexpr PoolId common_pool{0, 0}; // the pool of all allocations that no other pool takes

// A set of heaps that shares no memory with other pools.
struct Pool {
    PoolId id = common_pool;
    PoolId key = common_pool; // the number by which Pools finds the pool
    int uses = 0;          // the number of users; without users, unused segments may be given back
    int pins = 0;          // the number of threads that need the pool again once they have the lock back
    std::size_t live = 0;  // the number of blocks that are handed out
    bool captured = false; // graphs use the memory, also on streams that the ledger does not know
    std::uint64_t released = 0; // of a pool that graphs used: the request behind the last replay (Checkpoint)
    std::shared_ptr<ExternalSource> library; // gives the segments; null if the driver gives them
    bool split = true;
    bool use_on_oom = false; // an allocation outside the pool may take free memory of the pool before it fails
    bool owned = false;      // the program has an object of the pool; see Pools::sleepers()
    // Whether the addresses of the pool have memory. `moving`: a thread changes that, and the pool hands out no memory
    // and gives none back, as long as the lock is given back in the middle.
    enum class Rest : std::uint8_t { awake, moving, asleep };
    Rest rest = Rest::awake;
    std::shared_ptr<HostCopy> contents; // of a pool that is asleep; null if the contents are dropped
    std::vector<std::unique_ptr<Heap>> heaps;
    AddressMap<Heap> by_stream;
    OwnerlessHeaps ownerless; // the heaps of destroyed streams
    InheritedHeaps inherited; // adopted heaps that may have memory which was not used since the adoption
    AdoptableHeaps adoptable[2]; // ownerless heaps without live blocks, small and large requests, the oldest first
    Links<Pool> unused; // in a list of Pools
    std::shared_ptr<PooledCounter> reserved; // the reserved bytes of the pools of this number; null for the common pool
};

// Counts memory that a pool has taken, or given back if `bytes` is negative.
inline void count_reserved(Statistics &statistics, const Pool &pool, bool is_large, std::int64_t bytes) {
    statistics.reserved_bytes.add(is_large, bytes);
    if (pool.reserved != nullptr)
        pool.reserved->add(is_large, bytes);
}

// Keeps a pool from being removed while the lock is given back. Constructed and destroyed under the lock.
class PinnedPool {
public:
    explicit PinnedPool(Pool &pool) : pool_(pool) { ++pool_.pins; }
    ~PinnedPool() { --pool_.pins; }
    PinnedPool(const PinnedPool &) = delete;
    PinnedPool &operator=(const PinnedPool &) = delete;

private:
    Pool &pool_;
};

} // namespace tcuda
