// How the ledger gives memory back: to the driver, to libraries, and to pools that report their segments.
#include <algorithm>

#include "ledger/device_ledger.hpp"

namespace tcuda {

void DeviceLedger::merge_recent() {
    each_heap([&](Heap &heap) { native_.merge_recent(heap); });
}

// Gives free memory back to the driver, `enough` bytes of it or all: of the streams that are idle, or of all streams,
// which are waited for. `current` is the stream of the caller, if there is one.
void DeviceLedger::recycle(Lock &lock, std::size_t enough, bool wait, const Stream *current, From from) {
    lock.leave_interpreter();
    if (wait)
        retry();
    std::vector<Candidate> heaps = candidates(current, from);
    std::vector<Heap *> ready;
    ready.reserve(heaps.size());
    const std::uint64_t settled = native_.frees();
    for (const Candidate &candidate : heaps)
        ++candidate.heap->pins;
    find_ready(lock, heaps, wait, current);
    for (const Candidate &candidate : heaps) {
        --candidate.heap->pins;
        if (candidate.ready)
            ready.push_back(candidate.heap);
    }
    std::vector<ReturnedSegment> returned;
    std::vector<std::unique_ptr<Pool>> removed;
    removed.reserve(pools_.size()); // nothing may throw with a segment in hand
    int status = success;
    const std::size_t released = native_.release(ready, settled, enough, returned, &status);
    if (!wait && from == From::everywhere)
        recycled_ += released;
    if (wait && !heaps.empty())
        ++statistics_.num_sync_all_streams;
    remove_unused(removed);
    if (!returned.empty() || !removed.empty()) {
        const Unlocked unlocked(lock);
        driver_.enter(device_);
        for (const ReturnedSegment &segment : returned)
            segment.library->free(segment.address, segment.size, device_, segment.stream, segment.token);
        returned.clear(); // the last references to a library may go here
        removed.clear();
    }
    // Nobody has asked for it where nobody waits: the memory is kept, and a driver that is broken says so soon enough.
    if (status != success && wait)
        throw DriverError(status, "giving memory back to the driver");
}

// The heaps that have something to give back.
std::vector<DeviceLedger::Candidate> DeviceLedger::candidates(const Stream *current, From from) {
    merge_recent();
    std::vector<Candidate> found;
    const auto add = [&](const Pool &pool) {
        for (const auto &heap : pool.heaps) {
            const bool wanted = from != From::destroyed_streams || heap->end != nullptr;
            if (wanted && heap->free.bytes() != 0 && native_.has_releasable(*heap)) {
                const bool is_current = current != nullptr && *current == heap->stream;
                const bool known = heap->stream == 0 || is_current || announced_.count(heap->stream) != 0;
                found.push_back({heap.get(), known && !pool.captured});
            }
        }
    };
    if (from != From::unused_pools)
        add(common_);
    for (const auto &[id, pool] : pools_)
        if (pool->uses == 0)
            add(*pool);
    return found;
}

// Finds out of which heaps nothing that is free is used any more. Throws nothing: the heaps are pinned.
void DeviceLedger::find_ready(Lock &lock, std::vector<Candidate> &heaps, bool wait, const Stream *current) {
    const auto is_unknown = [](const Candidate &heap) { return !heap.known && heap.heap->end == nullptr; };
    // A stream of which only the handle is known: nothing tells how far it has come but the device as a whole.
    const bool all = wait && std::any_of(heaps.begin(), heaps.end(), is_unknown) && synchronize_device(lock, current);
    for (Candidate &candidate : heaps) {
        const std::shared_ptr<Work> end = candidate.heap->end;
        const Stream stream = candidate.heap->stream;
        if (all)
            candidate.ready = true;
        else if (end != nullptr)
            candidate.ready = is_done(lock, *end, stream, wait);
        else
            candidate.ready = candidate.known && is_idle(lock, stream, wait);
    }
}

// Offers the driver again what it failed to take back.
void DeviceLedger::retry() {
    native_.retry();
    for (auto segment = reported_segments_.begin(); segment != reported_segments_.end();) {
        const Address address = segment->first;
        const bool unwanted = segment->second.unwanted;
        ++segment;
        if (unwanted)
            give_back(address);
    }
}

// Takes out the heaps of which nothing is left, unless their stream may come again, and the pools that nobody can use
// any more. What a pool leads to, such as a library, must go without the lock: that is left to the caller.
void DeviceLedger::remove_unused(std::vector<std::unique_ptr<Pool>> &removed) {
    const auto remove_heaps = [&](Pool &pool, bool all) {
        for (std::size_t i = pool.heaps.size(); i-- > 0;) {
            Heap &heap = *pool.heaps[i];
            const bool comes_again = heap.end == nullptr && (heap.stream == 0 || announced_.count(heap.stream) != 0);
            if (heap.pins == 0 && CachingAllocator::is_empty(heap) && (all || !comes_again))
                native_.remove(heap);
        }
    };
    remove_heaps(common_, false);
    for (auto known = pools_.begin(); known != pools_.end();) {
        Pool &pool = *known->second;
        const bool unused = pool.uses == 0 && pool.pins == 0;
        remove_heaps(pool, unused);
        if (!unused || !pool.heaps.empty()) {
            ++known;
            continue;
        }
        removed.push_back(std::move(known->second));
        known = pools_.erase(known);
    }
}

// A pool gives its memory back when nobody uses it any more, as far as that is possible without waiting; what streams
// still work on is given back when memory is next asked for, or by empty_cache().
void DeviceLedger::release_idle_pools(Lock &lock) noexcept {
    has_idle_pools_ = false;
    if (closed_.load(std::memory_order_relaxed))
        return;
    try {
        recycle(lock, everything, false, nullptr, From::unused_pools);
    } catch (const std::bad_alloc &) { // later, too
    }
}

void DeviceLedger::collect_garbage(Lock &lock, std::size_t size, Stream stream) {
    if (settings_.garbage_collection_threshold <= 0 || fraction_ >= 1)
        return;
    const auto threshold = static_cast<std::size_t>(settings_.garbage_collection_threshold * static_cast<double>(limit(lock)));
    const std::size_t after = native_.reserved() + native_.segment_size(size);
    if (after > threshold)
        recycle(lock, after - threshold, true, &stream);
}

void DeviceLedger::empty_cache() {
    Lock lock(mutex_);
    settle(lock, true);
    give_all_back(lock, nullptr);
}

// What is free goes back to the driver, whichever source has it.
void DeviceLedger::give_all_back(Lock &lock, const Stream *current) {
    recycle(lock, everything, true, current);
    const auto sources = sources_;
    const Unlocked unlocked(lock);
    for (const auto &source : sources)
        source->empty_cache(device_);
}

Address DeviceLedger::allocate_segment(std::size_t size) {
    Lock lock(mutex_);
    lock.leave_interpreter();
    const std::size_t most = limit(lock);
    Address address = 0;
    if (size == 0 || size > most || native_.reserved() > most - size ||
        driver_.allocate(device_, size, &address) != success)
        return 0;
    try {
        reported_segments_.emplace(address, ReportedSegment{size, NotedCall::stack()});
    } catch (...) {
        driver_.free(device_, address);
        throw;
    }
    statistics_.reserved_bytes.add(native_.is_large(size), static_cast<std::int64_t>(size));
    statistics_.segment.add(native_.is_large(size), 1);
    ++statistics_.num_device_alloc;
    history_.record(Action::segment_alloc, address, size, 0, 0);
    return address;
}

void DeviceLedger::free_segment(Address address) noexcept {
    if (abandoned_.load(std::memory_order_relaxed) || closed_.load(std::memory_order_relaxed))
        return;
    Lock lock(mutex_);
    lock.leave_interpreter();
    give_back(address);
}

void DeviceLedger::give_back(Address address) noexcept {
    const auto segment = reported_segments_.find(address);
    if (segment == reported_segments_.end())
        return;
    if (driver_.free(device_, address) != success) {
        segment->second.unwanted = true;
        return;
    }
    const std::size_t size = segment->second.size;
    const StackId noted = segment->second.stack;
    reported_segments_.erase(segment);
    statistics_.reserved_bytes.add(native_.is_large(size), -static_cast<std::int64_t>(size));
    statistics_.segment.add(native_.is_large(size), -1);
    ++statistics_.num_device_free;
    history_.record(Action::segment_free, address, size, 0, noted);
}

} // namespace tcuda
