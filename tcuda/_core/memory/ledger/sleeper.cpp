#include "memory/ledger/sleeper.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "memory/host_allocator/host_allocator.hpp"
#include "memory/ledger/failures.hpp"

namespace tcuda {
namespace {

std::vector<Heap *> heaps_of(const std::vector<Pool *> &pools) {
    std::vector<Heap *> heaps;
    for (const Pool *pool : pools)
        for (const auto &heap : pool->heaps)
            heaps.push_back(heap.get());
    return heaps;
}

bool have(const std::vector<Pool *> &pools, const Pool *pool) {
    return std::find(pools.begin(), pools.end(), pool) != pools.end();
}

bool is_any(const std::vector<Pool *> &pools, Pool::Rest rest) {
    return std::any_of(pools.begin(), pools.end(), [=](const Pool *pool) { return pool->rest == rest; });
}

void keep_only(std::vector<Pool *> &pools, Pool::Rest rest) {
    pools.erase(std::remove_if(pools.begin(), pools.end(), [=](const Pool *pool) { return pool->rest != rest; }),
                pools.end());
}

// Copies of the memory of pools that are moving. The last references end without the lock, also after a failure.
class Copies {
public:
    explicit Copies(Lock &lock) : lock_(lock) {}
    ~Copies() {
        const Unlocked unlocked(lock_);
        of_pools.clear();
    }
    Copies(const Copies &) = delete;
    Copies &operator=(const Copies &) = delete;

    std::vector<std::shared_ptr<HostCopy>> of_pools; // null for a pool without contents

private:
    Lock &lock_;
};

} // namespace

// A time in which pools are moving. At the end, the pools are what they were, or what end_as() says. Constructed and
// destroyed under the lock.
class Sleeper::Move {
public:
    explicit Move(std::vector<Pool *> moving) : pools(std::move(moving)), heaps(heaps_of(pools)) {
        after_ = pools.front()->rest;
        for (Pool *pool : pools) {
            pool->rest = Pool::Rest::moving;
            ++pool->pins;
        }
        for (Heap *heap : heaps)
            ++heap->pins;
    }
    ~Move() {
        for (Pool *pool : pools) {
            pool->rest = after_;
            --pool->pins;
        }
        for (Heap *heap : heaps)
            --heap->pins;
    }
    Move(const Move &) = delete;
    Move &operator=(const Move &) = delete;

    void end_as(Pool::Rest rest) { after_ = rest; }

    const std::vector<Pool *> pools;
    const std::vector<Heap *> heaps; // a moving pool gets no new heaps

private:
    Pool::Rest after_;
};

// Sleeping

Sleeper::Refusal Sleeper::sleep(Lock &lock, PoolId id, bool keep, const std::vector<Address> &shared) {
    lock.leave_interpreter();
    std::vector<Pool *> pools = pools_.sleepers(id);
    if (is_any(pools, Pool::Rest::moving))
        return Refusal::moving;
    keep_only(pools, Pool::Rest::awake);
    if (pools.empty())
        return Refusal::none;
    Move move(std::move(pools));
    // A question about a stream would make a context on a device that the program does not use.
    const bool has_memory = std::any_of(move.heaps.begin(), move.heaps.end(),
                                        [](const Heap *heap) { return !CachingAllocator::is_empty(*heap); });
    if (captures_.any() || (has_memory && progress_.is_capturing(lock)))
        return Refusal::capture;
    native_.merge_recent();
    if (const Refusal found = refusal(move.pools, shared); found != Refusal::none)
        return found;
    const std::uint64_t settled = native_.frees();
    int status = success;
    if (has_memory) {
        const Unlocked unlocked(lock);
        status = driver_.synchronize_device(device_);
    }
    if (status != success)
        throw DriverError(status, "waiting for the device before memory falls asleep");
    release_free(move.pools, settled);
    if (std::any_of(move.heaps.begin(), move.heaps.end(), [](const Heap *heap) { return heap->segments != 0; }))
        return Refusal::segments;

    Copies made(lock);
    auto &copies = made.of_pools;
    copies.resize(move.pools.size());
    std::vector<std::vector<HostCopy::Range>> ranges(move.pools.size());
    for (std::size_t at = 0; keep && at < copies.size(); ++at) {
        copies[at] = std::make_shared<HostCopy>(device_, driver_, shutdown_);
        ranges[at] = contents(*move.pools[at]);
    }
    bool lacks_host = false;
    if (keep && has_memory) {
        const Unlocked unlocked(lock);
        for (std::size_t at = 0; status == success && at < copies.size(); ++at)
            status = copies[at]->take(ranges[at], &lacks_host);
    }
    if (lacks_host)
        throw HostMemoryError(status);
    if (status != success)
        throw DriverError(status, "copying memory to the host before the memory falls asleep");
    bool asleep = false;
    status = native_.sleep(move.heaps, &asleep);
    if (asleep) {
        move.end_as(Pool::Rest::asleep);
        for (std::size_t at = 0; at < copies.size(); ++at)
            move.pools[at]->contents = std::move(copies[at]);
    }
    if (status != success)
        throw DriverError(status, asleep ? "unmapping memory that falls asleep; the memory is asleep"
                                         : "unmapping memory that falls asleep; the memory is awake");
    return Refusal::none;
}

// Called with merged blocks.
Sleeper::Refusal Sleeper::refusal(const std::vector<Pool *> &pools, const std::vector<Address> &shared) const {
    if (std::any_of(pools.begin(), pools.end(), [](const Pool *pool) { return pool->library != nullptr; }))
        return Refusal::other_source;
    bool others = false;
    if (have(pools, &pools_.common()))
        live_.each([&](const Block *block) { others = others || block->source != nullptr; });
    if (others)
        return Refusal::other_source;
    bool segments = false;
    native_.each_segment([&](const Segment *segment) {
        const Pool *pool = segment->heap->pool;
        if (segment->expandable || !have(pools, pool))
            return;
        const bool unused = segment->first->is_free() && segment->first->after == nullptr;
        segments = segments || pool->captured || !unused;
    });
    if (segments)
        return Refusal::segments;
    for (const Address address : shared)
        if (const Block *block = live_.find(address); block != nullptr && have(pools, block->pool))
            return Refusal::shared;
    return Refusal::none;
}

// Gives the free memory of pools back, up to the count `settled` of frees. The graphs of a pool use its free memory
// too.
void Sleeper::release_free(const std::vector<Pool *> &pools, std::uint64_t settled) {
    native_.merge_recent();
    std::vector<CachingAllocator::Settled> heaps;
    for (const Pool *pool : pools)
        for (const auto &heap : pool->heaps)
            if (!pool->captured)
                heaps.push_back({heap.get(), settled});
    std::vector<ReturnedSegment> returned; // none, because no library gives the memory
    int status = success;
    native_.release(heaps, std::numeric_limits<std::size_t>::max(), returned, &status);
    if (status != success)
        throw DriverError(status, "giving memory back to the driver");
}

// The ranges of the live blocks of a pool. The graphs of a pool may keep numbers in its free memory.
std::vector<HostCopy::Range> Sleeper::contents(const Pool &pool) const {
    std::vector<HostCopy::Range> ranges;
    native_.each_segment([&](const Segment *segment) {
        if (segment->heap->pool != &pool)
            return;
        for (const Block *block = segment->first; block != nullptr; block = block->after) {
            const bool live = block->state == Block::State::allocated || block->state == Block::State::awaiting_free;
            if (!live && !(pool.captured && block->is_here()))
                continue;
            // The driver may refuse a copy from one reserved range into the next, such as from a window into another.
            const bool follows = block->before != nullptr && !ranges.empty() &&
                                 ranges.back().address + ranges.back().size == block->address;
            if (follows)
                ranges.back().size += block->size;
            else
                ranges.push_back({block->address, block->size});
        }
    });
    std::sort(ranges.begin(), ranges.end(),
              [](const auto &left, const auto &right) { return left.address < right.address; });
    return ranges;
}

// Waking

bool Sleeper::wake(Lock &lock, PoolId id, Lack *lack, Refusal *refusal) {
    lock.leave_interpreter();
    *refusal = Refusal::none;
    std::vector<Pool *> pools = pools_.sleepers(id);
    if (is_any(pools, Pool::Rest::moving)) {
        *refusal = Refusal::moving;
        return true;
    }
    keep_only(pools, Pool::Rest::asleep);
    if (pools.empty())
        return true;
    Move move(std::move(pools));
    release_free(move.pools, native_.frees());
    int status = map(lock, move.heaps, lack);
    if (status == out_of_memory) { // as an allocation, the pools get the free memory of others
        reclaimer_.give_back_everything(lock, nullptr);
        status = map(lock, move.heaps, lack);
    }
    if (status == out_of_memory)
        return false;
    if (status != success)
        throw DriverError(status, "mapping memory that wakes; the memory is asleep");

    Copies kept(lock);
    auto &copies = kept.of_pools;
    std::vector<std::vector<HostCopy::Range>> ranges;
    for (const Pool *pool : move.pools) {
        copies.push_back(pool->contents);
        ranges.push_back(pool->contents == nullptr ? std::vector<HostCopy::Range>() : contents(*pool));
    }
    {
        const Unlocked unlocked(lock);
        for (std::size_t at = 0; status == success && at < copies.size(); ++at)
            if (copies[at] != nullptr)
                status = copies[at]->give(ranges[at]);
    }
    if (status != success) {
        bool asleep; // ignored: the next wake finds memory that the driver has failed to unmap
        native_.sleep(move.heaps, &asleep);
        throw DriverError(status, "copying memory from the host; the memory is asleep");
    }
    move.end_as(Pool::Rest::awake);
    for (Pool *pool : move.pools)
        pool->contents = nullptr;
    return true;
}

// Maps the memory of heaps, within the limit. Returns a status.
int Sleeper::map(Lock &lock, const std::vector<Heap *> &heaps, Lack *lack) {
    lack->needed = 0;
    for (const Heap *heap : heaps)
        if (heap->expandable != nullptr)
            for (const auto &[address, mapping] : heap->expandable->mappings)
                lack->needed += mapping.asleep ? mapping.size : 0;
    const std::size_t left = limit_.left(lock, statistics_.reserved());
    lack->limited = lack->needed > left;
    const int status = lack->limited ? out_of_memory : native_.wake(heaps);
    if (status != out_of_memory)
        return status;
    std::size_t total = 0;
    driver_.memory_info(device_, &lack->available, &total);
    if (lack->limited)
        lack->available = std::min(lack->available, left);
    return out_of_memory;
}

} // namespace tcuda
