#include "memory/ledger/pools.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

namespace tcuda {

std::vector<Pool *> Pools::sleepers(PoolId id) {
    std::vector<Pool *> found{&at(id)};
    if (id == common_pool)
        for (const auto &[key, pool] : private_)
            if (!pool->owned && pool->library == nullptr && (pool->uses != 0 || pool->live != 0))
                found.push_back(pool.get());
    return found;
}

Pool &Pools::open_for_capture(PoolId id) {
    reserved_.try_emplace(id); // takes the host memory first, so that nothing can fail in between
    const auto known = private_.find(id);
    if (spare_ != nullptr && (known == private_.end() || (known->second->captured && known->second->uses == 0))) {
        if (known != private_.end())
            take_number(*known->second);
        Pool &spare = *spare_;
        drop_spare();
        const bool is_usable = std::all_of(spare.heaps.begin(), spare.heaps.end(),
                                           [](const auto &heap) { return heap->end == nullptr && heap->pins == 0; });
        if (is_usable && spare.pins == 0) {
            give_number(spare, id);
            count_for(spare, id);
            spare.released = 0;
            spare.captured = false; // so that open() leaves the number to the pool
        }
    }
    Pool &pool = open(id, nullptr, true, false);
    pool.captured = true;
    return pool;
}

bool Pools::keep_spare(Pool &pool, std::uint64_t settled) {
    constexpr std::size_t most_bytes = 2 << 20; // the segment of small requests
    const bool is_plain = pool.captured && pool.library == nullptr && pool.split && !pool.use_on_oom;
    if (spare_ != nullptr || !is_plain || pool.rest != Pool::Rest::awake || pool.uses != 0 || pool.pins != 0 ||
        pool.live != 0)
        return false;
    std::size_t bytes = 0;
    bool is_idle = true;
    for (const auto &heap : pool.heaps) {
        bytes += heap->free.bytes();
        is_idle = is_idle && heap->end == nullptr && heap->pins == 0 && heap->is_unused();
        heap->free.each([&](const Block *block) { is_idle = is_idle && block->freed_at <= settled; });
    }
    if (!is_idle || bytes == 0 || bytes > most_bytes)
        return false;
    unused_.remove(pool);
    spare_ = &pool;
    return true;
}

Pool &Pools::open(PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom) {
    reserved_.try_emplace(id); // as above
    if (const auto known = private_.find(id);
        known != private_.end() && known->second->captured && known->second->uses == 0)
        take_number(*known->second);
    auto &pool = private_[id];
    if (pool == nullptr) {
        pool = std::make_unique<Pool>();
        pool->key = id;
        count_for(*pool, id);
        pool->library = std::move(library);
        pool->split = split;
        pool->use_on_oom = use_on_oom;
    }
    ++pool->uses;
    return *pool;
}

void Pools::take_number(Pool &pool) { give_number(pool, {std::numeric_limits<std::uint64_t>::max(), ++nameless_}); }

void Pools::give_number(Pool &pool, PoolId key) {
    auto node = private_.extract(pool.key);
    pool.key = node.key() = key;
    private_.insert(std::move(node));
}

// Gives a pool its number in snapshots and statistics. The memory that the pool has moves to this number.
void Pools::count_for(Pool &pool, PoolId id) {
    PooledCounter &reserved = reserved_.at(id);
    for (const auto &heap : pool.heaps) {
        const auto bytes = static_cast<std::int64_t>(heap->in_segments + heap->mapped);
        pool.reserved->decrease(heap->is_large, bytes);
        reserved.increase(heap->is_large, bytes);
    }
    pool.reserved = &reserved;
    pool.id = id;
}

void Pools::reset_peaks() {
    for (auto &[id, reserved] : reserved_)
        reserved.each([](Counter &counter) { counter.reset_peak(); });
    forget_counters();
}

void Pools::reset_accumulated() {
    for (auto &[id, reserved] : reserved_)
        reserved.each([](Counter &counter) { counter.reset_accumulated(); });
    forget_counters();
}

// Forgets the counters of pools that are gone, once both resets have left nothing to tell.
void Pools::forget_counters() {
    std::vector<const PooledCounter *> needed;
    needed.reserve(private_.size());
    for (const auto &[key, pool] : private_)
        needed.push_back(pool->reserved);
    std::sort(needed.begin(), needed.end());
    for (auto each = reserved_.begin(); each != reserved_.end();) {
        const bool is_needed = std::binary_search(needed.begin(), needed.end(), &each->second);
        each = is_needed || each->second.all.is_used() ? std::next(each) : reserved_.erase(each);
    }
}

bool Pools::release(PoolId id) {
    Pool &pool = at(id);
    if (pool.uses == 0)
        throw std::out_of_range("nobody uses the pool");
    --pool.uses;
    note_unused(pool);
    return pool.uses == 0;
}

Block *Pools::take_on_oom(Stream stream, std::size_t size) {
    for (const auto &[id, pool] : private_)
        if (pool->use_on_oom && pool->rest == Pool::Rest::awake)
            if (Block *block = native_.take(*pool, stream, size))
                return block;
    return nullptr;
}

void Pools::remove_unused(const AnnouncedStreams &streams, std::vector<std::unique_ptr<Pool>> &removed) {
    native_.remove_unneeded([&](const Heap &heap) {
        return heap.end == nullptr && (heap.stream == 0 || streams.knows(heap.stream)); // the stream can come again
    });
    each_unused([&](Pool &pool) {
        if (pool.pins != 0)
            return;
        for (std::size_t i = pool.heaps.size(); i-- > 0;)
            if (pool.heaps[i]->pins == 0 && CachingAllocator::is_empty(*pool.heaps[i]))
                native_.remove(*pool.heaps[i]);
        if (!pool.heaps.empty())
            return;
        unused_.remove(pool);
        const auto known = private_.find(pool.key);
        removed.push_back(std::move(known->second));
        private_.erase(known);
    });
}

} // namespace tcuda
