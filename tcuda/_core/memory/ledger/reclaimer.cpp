#include "memory/ledger/reclaimer.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include "memory/allocator/sizes.hpp"
#include "memory/ledger/failures.hpp"

namespace tcuda {
namespace {

constexpr std::size_t everything = std::numeric_limits<std::size_t>::max();

// Memory that is given back early may have to be taken from the driver again. One byte may be given back early for this
// many bytes of allocations. This rule bounds the time that a program loses if its needs go up and down.
constexpr std::uint64_t handed_out_per_early_byte = 16;

} // namespace

void Reclaimer::give_back_idle(Lock &lock, std::size_t enough, Stream current, bool is_short) {
    if (!settings_.trim_always) {
        if (is_short)
            pools_.drop_spare();
        recycle(lock, enough, false, &current, is_short ? From::everywhere : From::destroyed_streams);
        return;
    }
    const std::uint64_t reserved = statistics_.reserved();
    const bool affordable = given_back_early_ <= reserved + native_.handed_out() / handed_out_per_early_byte;
    recycle(lock, enough, false, &current, affordable ? From::everywhere : From::destroyed_streams);
}

void Reclaimer::unmap_idle_windows(Lock &lock, Heap &heap) {
    const std::uint64_t settled = native_.frees();
    ++heap.pins;
    const bool idle = progress_.is_idle(lock, heap.stream, false);
    --heap.pins;
    if (idle)
        native_.unmap_stale_windows(heap, settled);
}

void Reclaimer::collect_garbage(Lock &lock, std::size_t size, Stream current) {
    if (settings_.garbage_collection_threshold <= 0 || !limit_.is_set())
        return;
    const auto limit = static_cast<double>(limit_.bytes(lock));
    const auto threshold = static_cast<std::size_t>(settings_.garbage_collection_threshold * limit);
    const std::size_t after = statistics_.reserved() + segment_size(size);
    if (after <= threshold)
        return;
    pools_.drop_spare();
    recycle(lock, after - threshold, true, &current, From::everywhere);
}

void Reclaimer::give_back_everything(Lock &lock, const Stream *current, bool keep_spare) {
    if (!keep_spare)
        pools_.drop_spare();
    recycle(lock, everything, true, current, From::everywhere);
    external_.empty_caches(lock);
}

void Reclaimer::give_back_unused_pools(Lock &lock) {
    keep_spare();
    recycle(lock, everything, true, nullptr, From::unused_pools);
}

// Keeps one pool of released graphs for the next capture.
void Reclaimer::keep_spare() noexcept {
    if (settings_.trim_always)
        return;
    native_.merge_recent();
    pools_.each_unused([&](Pool &pool) {
        if (checkpoint_.has_passed(pool.released) && pools_.keep_spare(pool, checkpoint_.settled()))
            native_.forget_uses(pool);
    });
}

void Reclaimer::give_back_idle_pools(Lock &lock) noexcept {
    pools_.forget_idle();
    if (shutdown_.is_closed())
        return;
    keep_spare();
    try {
        recycle(lock, everything, false, nullptr, From::unused_pools);
    } catch (const std::bad_alloc &) { // a later call gives the memory back
    }
}

// Gives back up to `enough` bytes. Takes the memory of idle streams only, or, if `wait`, waits for all streams.
// `current` is the stream of the caller, or null.
void Reclaimer::recycle(Lock &lock, std::size_t enough, bool wait, const Stream *current, From from) {
    lock.leave_interpreter();
    if (wait) {
        native_.retry();
        reported_.retry();
    }
    std::vector<Candidate> heaps = candidates(current, from, wait);
    std::vector<CachingAllocator::Settled> ready;
    ready.reserve(heaps.size());
    for (const Candidate &candidate : heaps)
        ++candidate.heap->pins;
    find_ready(lock, heaps, wait, current);
    for (const Candidate &candidate : heaps) {
        --candidate.heap->pins;
        if (candidate.ready)
            ready.push_back({candidate.heap, candidate.settled});
    }
    std::vector<ReturnedSegment> returned;
    std::vector<std::unique_ptr<Pool>> removed;
    pools_.reserve(removed); // no function may throw between release() and give_back()
    int status = success;
    const std::size_t released = native_.release(ready, enough, returned, &status);
    if (!wait && from == From::everywhere)
        given_back_early_ += released;
    if (wait && from == From::unused_pools && !heaps.empty())
        ++statistics_.num_sync_all_streams;
    pools_.remove_unused(streams_, removed);
    external_.give_back(lock, returned, removed);
    // A caller that does not wait did not ask for memory to be given back. The memory stays in its heap, and the next
    // call that waits reports a broken driver.
    if (status != success && wait)
        throw DriverError(status, "giving memory back to the driver");
}

// The heaps that have memory to give back.
std::vector<Reclaimer::Candidate> Reclaimer::candidates(const Stream *current, From from, bool wait) {
    native_.merge_recent();
    std::vector<Candidate> found;
    const std::uint64_t frees = native_.frees();
    const auto add_heap = [&](Heap &heap) {
        const bool captured = heap.pool->captured;
        const bool by_checkpoint = captured && !(wait && from == From::everywhere);
        if (by_checkpoint && !checkpoint_.has_passed(heap.pool->released))
            return;
        const std::uint64_t settled = by_checkpoint ? checkpoint_.settled() : frees;
        if (heap.free.bytes() != 0 && native_.has_releasable(heap, settled)) {
            const bool is_current = current != nullptr && *current == heap.stream;
            const bool known = heap.stream == 0 || is_current || streams_.knows(heap.stream);
            found.push_back({&heap, known && !captured, settled, by_checkpoint});
        }
    };
    const auto add_inherited = [&](Heap &heap) {
        if (current != nullptr && heap.stream == *current)
            return; // the stream is about to use the memory
        if (native_.has_releasable(heap, heap.adopted_at))
            found.push_back({&heap, true, heap.adopted_at, true});
        else
            heap.pool->inherited.remove(heap);
    };
    const auto add = [&](Pool &pool) {
        if (pool.rest == Pool::Rest::moving)
            return;
        if (from == From::destroyed_streams) {
            pool.ownerless.each(add_heap);
            pool.inherited.each(add_inherited);
        } else {
            for (const auto &heap : pool.heaps)
                add_heap(*heap);
        }
    };
    if (from != From::unused_pools)
        add(pools_.common());
    pools_.each_unused(add);
    return found;
}

// Finds the heaps whose free memory no stream works on. The heaps are pinned, so this function throws nothing.
void Reclaimer::find_ready(Lock &lock, std::vector<Candidate> &heaps, bool wait, const Stream *current) {
    // Without a usable handle and without the last work of the stream, only the whole device can be waited for.
    const bool needs_device = std::any_of(heaps.begin(), heaps.end(), [](const Candidate &candidate) {
        return !candidate.ready && !candidate.usable_handle && candidate.heap->end == nullptr;
    });
    const bool all = wait && needs_device && progress_.synchronize_device(lock, current);
    for (Candidate &candidate : heaps) {
        const std::shared_ptr<Work> end = candidate.heap->end;
        const Stream stream = candidate.heap->stream;
        if (all || candidate.ready)
            candidate.ready = true;
        else if (end != nullptr)
            candidate.ready = progress_.is_done(lock, *end, stream, wait);
        else
            candidate.ready = candidate.usable_handle && progress_.is_idle(lock, stream, wait);
    }
}

} // namespace tcuda
