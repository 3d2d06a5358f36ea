#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "memory/allocator/caching_allocator.hpp"
#include "memory/allocator/pool.hpp"
#include "memory/ledger/announced_streams.hpp"

namespace tcuda {

// The pools of a device. A pool stays until it has no users and none of its blocks is live; then its memory is given
// back.
class Pools {
public:
    explicit Pools(CachingAllocator &native) : native_(native) { common_.uses = 1; }
    Pools(const Pools &) = delete;
    Pools &operator=(const Pools &) = delete;

    // The pool of all allocations that no other pool takes. The other pools are private.
    Pool &common() { return common_; }

    // The pools that sleep together: the pool of this number; or the common pool, and all pools that are in use and of
    // which the program has no object, such as those of graphs. Throws std::out_of_range if there is none.
    std::vector<Pool *> sleepers(PoolId id);

    // The pool of this number. Throws std::out_of_range if there is none.
    Pool &at(PoolId id) { return id == common_pool ? common_ : *private_.at(id); }

    // The same; null if there is none.
    const Pool *find(PoolId id) const {
        if (id == common_pool)
            return &common_;
        const auto known = private_.find(id);
        return known == private_.end() ? nullptr : known->second.get();
    }

    // Adds a user to a pool. The pool is made, with these properties, if there is none of this number. A device may
    // still run the graphs of a pool that graphs have used and released. So such a pool loses its number to a new pool.
    Pool &open(PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom);
    // The same for a capture. The spare pool takes the place of a new pool.
    Pool &open_for_capture(PoolId id);

    // Makes a pool without users the spare pool: a small pool that graphs used, whose memory no work uses, so that a
    // program that captures again and again takes no memory from the driver. False, with nothing changed, if there is a
    // spare pool, or if memory of this pool was freed after the count `settled` of frees.
    bool keep_spare(Pool &pool, std::uint64_t settled);
    // Makes the spare pool a pool without users again.
    void drop_spare() {
        if (spare_ != nullptr)
            unused_.add(*std::exchange(spare_, nullptr));
    }

    // Takes a user from a pool. Returns whether that was the last user. Throws std::out_of_range, with nothing changed,
    // if the pool has no user.
    bool release(PoolId id);

    // Makes a block of a pool free again.
    void give(Block *block) {
        Pool &pool = *block->pool;
        native_.give(block);
        has_idle_ = has_idle_ || (pool.uses == 0 && pool.live == 0);
    }

    // Whether a pool may have lost its last live block after its last user, since forget_idle().
    bool has_idle() const { return has_idle_; }
    void forget_idle() { has_idle_ = false; }

    // Notes that a pool may have lost its last user.
    void note_unused(Pool &pool) {
        if (pool.uses == 0)
            unused_.add(pool);
    }
    // Calls `visit` with each private pool without users.
    template <typename Visit> void each_unused(Visit visit) {
        unused_.each([&](Pool &pool) {
            if (pool.uses == 0)
                visit(pool);
            else
                unused_.remove(pool);
        });
    }
    bool has_unused() {
        bool found = false;
        each_unused([&](Pool &) { found = true; });
        return found;
    }

    // A free block of a private pool with `use_on_oom`; null if there is none.
    Block *take_on_oom(Stream stream, std::size_t size);

    // The reserved bytes of each private pool that has or had memory, by its number.
    std::map<PoolId, PooledCounter> reserved() const;
    void reset_peaks();
    void reset_accumulated();

    // Makes room in `removed`, so that remove_unused() cannot throw.
    void reserve(std::vector<std::unique_ptr<Pool>> &removed) {
        std::size_t unused = 0;
        each_unused([&](Pool &) { ++unused; });
        removed.reserve(unused);
    }
    // Removes the heaps without memory whose streams cannot come again, and the private pools that no caller can use
    // any more. The caller destroys the removed pools without the lock, because a pool may own a library.
    void remove_unused(const AnnouncedStreams &streams, std::vector<std::unique_ptr<Pool>> &removed);

    // Drops the contents of the pools that are asleep. Called when the ledger ends, without Python's lock.
    void drop_contents() {
        common_.contents = nullptr;
        for (const auto &[key, pool] : private_)
            pool->contents = nullptr;
    }

private:
    CachingAllocator &native_;
    Pool common_;
    Pool *spare_ = nullptr; // not in `unused_`
    void take_number(Pool &pool);
    void give_number(Pool &pool, PoolId key);
    static void count_for(Pool &pool, PoolId id, std::shared_ptr<PooledCounter> reserved);
    static bool is_left(const Pool &pool) { return pool.captured && pool.uses == 0; }

    std::map<PoolId, std::unique_ptr<Pool>> private_; // by number; pools without a number have keys that no number has
    std::uint64_t nameless_ = 0; // how many pools have lost their numbers
    LinkedList<Pool, &Pool::unused> unused_; // all private pools without users, and some with users
    bool has_idle_ = false;
};

} // namespace tcuda
