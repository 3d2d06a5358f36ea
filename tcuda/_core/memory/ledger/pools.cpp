#include "memory/ledger/pools.hpp"

#include <algorithm>
#include <cstdint>
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
    const auto known = private_.find(id);
    if (spare_ != nullptr && (known == private_.end() || is_left(*known->second))) {
        Pool &spare = *spare_;
        const bool is_usable = std::all_of(spare.heaps.begin(), spare.heaps.end(),
                                           [](const auto &heap) { return heap->end == nullptr && heap->pins == 0; });
        if (is_usable && spare.pins == 0) {
            auto reserved = known == private_.end() ? std::make_shared<PooledCounter>() : known->second->reserved;
            if (known != private_.end())
                take_number(*known->second);
            give_number(spare, id);
            count_for(spare, id, std::move(reserved));
            spare.released = 0;
            spare.captured = false; // so that open() leaves the number to the pool
        }
        drop_spare();
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
    auto known = private_.find(id);
    if (known == private_.end() || is_left(*known->second)) {
        auto pool = std::make_unique<Pool>();
        pool->key = pool->id = id;
        pool->reserved = known == private_.end() ? std::make_shared<PooledCounter>() : known->second->reserved;
        pool->library = std::move(library);
        pool->split = split;
        pool->use_on_oom = use_on_oom;
        if (known != private_.end())
            take_number(*known->second);
        known = private_.emplace(id, std::move(pool)).first;
    }
    ++known->second->uses;
    return *known->second;
}

void Pools::take_number(Pool &pool) { give_number(pool, {std::numeric_limits<std::uint64_t>::max(), ++nameless_}); }

void Pools::give_number(Pool &pool, PoolId key) {
    auto node = private_.extract(pool.key);
    pool.key = node.key() = key;
    private_.insert(std::move(node));
}

// Gives a pool its number in snapshots and statistics. The memory that the pool has moves to this number.
void Pools::count_for(Pool &pool, PoolId id, std::shared_ptr<PooledCounter> reserved) {
    for (const auto &heap : pool.heaps) {
        const auto bytes = static_cast<std::int64_t>(heap->in_segments + heap->mapped);
        pool.reserved->decrease(heap->is_large, bytes);
        reserved->increase(heap->is_large, bytes);
    }
    pool.reserved = std::move(reserved);
    pool.id = id;
}

std::map<PoolId, PooledCounter> Pools::reserved() const {
    std::map<PoolId, PooledCounter> found;
    for (const auto &[key, pool] : private_)
        if (pool->reserved->all.is_used())
            found.emplace(pool->id, *pool->reserved);
    return found;
}

void Pools::reset_peaks() {
    for (const auto &[key, pool] : private_)
        pool->reserved->each([](Counter &counter) { counter.reset_peak(); });
}

void Pools::reset_accumulated() {
    for (const auto &[key, pool] : private_)
        pool->reserved->each([](Counter &counter) { counter.reset_accumulated(); });
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
